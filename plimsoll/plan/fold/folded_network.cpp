#include "plimsoll/plan/fold/folded_network.hpp"

#include <algorithm>
#include <utility>

#include "plimsoll/plan/network_units.hpp"

namespace plimsoll::plan::fold {
namespace {

constexpr std::int64_t kLongestPeriod = 8;

// Layers of the shortest pattern that repeats to the end; 0: none.
std::int64_t period_of(const network::NetworkSpec& spec) {
  const auto& facts = spec.layer_facts;
  if (facts.empty()) return 1;
  for (std::int64_t period = 1; period <= kLongestPeriod && period < spec.layers; ++period) {
    if (std::equal(facts.begin() + period, facts.end(), facts.begin())) return period;
  }
  return 0;
}

// What is sized by the whole model, or tells layers apart by their number, cannot be folded.
bool is_foldable(const network::NetworkSpec& spec, const Job& job) {
  return spec.family != network::Family::kCnn && !job.infers() && job.freeze.empty();
}

network::NetworkSpec with_layers(network::NetworkSpec spec, std::int64_t layers) {
  spec.layers = layers;
  if (!spec.layer_facts.empty()) spec.layer_facts.resize(static_cast<std::size_t>(layers));
  return spec;
}

// The layer of every operation, of every parameter, and of every unit; -1: the root's.
std::vector<std::int32_t> units_of_operations(const network::Network& network) {
  std::vector<std::int32_t> units;
  for (const network::Operation& op : network.operations) {
    units.push_back(network.label_units[op.label]);
  }
  return units;
}

std::vector<std::int32_t> units_of_parameters(const network::Network& network) {
  std::vector<std::int32_t> units;
  for (const network::Parameter& p : network.parameters) units.push_back(p.unit);
  return units;
}

std::vector<std::int32_t> units_themselves(const network::Network& network) {
  const auto count = static_cast<std::int32_t>(unit_names(network).size());
  std::vector<std::int32_t> units;
  for (std::int32_t u = 0; u + 1 < count; ++u) units.push_back(u);
  units.push_back(-1);
  return units;
}

}  // namespace

FoldedNetwork::FoldedNetwork(network::Network network, std::int32_t period, std::int32_t inner)
    : network_(std::move(network)), period_(period), inner_(inner), places_(1), weights_{1} {}

std::optional<FoldedNetwork> FoldedNetwork::of(const network::NetworkSpec& spec, const Job& job) {
  if (!is_foldable(spec, job)) return std::nullopt;
  const std::int64_t period = period_of(spec);
  if (period == 0) return std::nullopt;
  const std::int64_t inner = spec.layers / period - 2;
  if (inner <= kInner) return std::nullopt;
  const network::NetworkSpec brief = with_layers(spec, spec.layers - (inner - kInner) * period);
  FoldedNetwork folded(network::build_network(brief, job.build_options()),
                       static_cast<std::int32_t>(period), static_cast<std::int32_t>(inner));
  const network::Network& network = folded.network_;
  const bool regular = folded.add_places(units_of_operations(network)) &&
                       folded.add_places(units_of_parameters(network)) &&
                       folded.add_places(units_themselves(network));
  if (!regular) return std::nullopt;
  const std::size_t units = unit_names(network).size();
  std::for_each(folded.places_.end() - static_cast<std::ptrdiff_t>(units), folded.places_.end(),
                [](Place& place) { place.is_unit = true; });
  return folded;
}

// The next ids, of which `units` says the layer. False unless those of the inner periods stand one period
// behind the other and are equally many.
bool FoldedNetwork::add_places(const std::vector<std::int32_t>& units) {
  const auto period_at = [&](std::size_t i) {
    return units[i] < 0 ? Place::kRoot : std::min(units[i] / period_, kInner + 1);
  };
  std::int64_t counts[kInner + 2] = {};
  std::int32_t last = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::int32_t period = period_at(i);
    if (period == Place::kRoot) {
      if (last > 0 && last <= kInner) return false;
      continue;
    }
    if (period < last || period > last + 1) return false;
    last = period;
    ++counts[period];
  }
  const std::int64_t stride = counts[kRepeated];
  if (!std::all_of(counts + 1, counts + kInner + 1, [&](std::int64_t n) { return n == stride; })) {
    return false;
  }
  const std::int64_t left_out = (inner_ - kInner) * stride;
  bool behind = false;  // the inner periods
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::int32_t period = period_at(i);
    behind = behind || period > kInner;
    const std::int64_t id = ids_ + static_cast<std::int64_t>(i);
    if (period == Place::kRoot) {
      places_.push_back({period, false, id + (behind ? left_out : 0), 0});
    } else {
      places_.push_back({period, false, id - period * stride, stride});
    }
    weights_.push_back(period == kRepeated ? inner_ - kInner + 1 : 1);
  }
  ids_ += static_cast<std::int64_t>(units.size()) + left_out;
  return true;
}

}  // namespace plimsoll::plan::fold
