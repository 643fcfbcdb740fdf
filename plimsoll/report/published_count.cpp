#include "plimsoll/report/published_count.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/number_text.hpp"

namespace plimsoll::report {
namespace {

using network::Family;
using network::NetworkSpec;

// --- the ways in which counts differ

class Habits {
 public:
  explicit Habits(const NetworkSpec& spec) : s_(spec) {}

  std::vector<DifferencePart> list() {
    if (s_.family == Family::kCnn) {
      add("convolutions' biases left out", "- sum of Cout", -channel_sum(s_.conv_bias));
      add("running statistics counted", "2 (sum of Cout)", 2 * channel_sum(s_.batch_norm));
      return parts_;
    }
    add_embeddings();
    add_norms_and_biases();
    add_buffers();
    add_padding();
    return parts_;
  }

 private:
  void add(std::string name, std::string formula, std::int64_t count) {
    if (count != 0) parts_.push_back({std::move(name), std::move(formula), count});
  }

  std::int64_t channel_sum(bool counted) const {
    std::int64_t sum = 0;
    for (std::int64_t channels : s_.channels) sum += counted ? channels : 0;
    return sum;
  }

  bool learned() const { return s_.architecture.positions == network::Positions::kLearned; }

  void add_embeddings() {
    const std::int64_t vd = s_.vocabulary * s_.width;
    if (s_.architecture.embedding_width > 0) return;
    if (s_.tied_head) {
      add("tied head counted twice", "V D", vd);
    } else {
      add("head left out", "- V D", -vd);
    }
    add("token embedding left out", "- V D", -vd);
    if (!learned()) return;
    add("position embedding left out", "- T D", -s_.positions * s_.width);
    add("two more position rows", "2 D", 2 * s_.width);
  }

  void add_norms_and_biases() {
    const network::Architecture& a = s_.architecture;
    const std::int64_t per_norm = !a.norm_weight ? 0 : a.norm_bias ? 2 : 1;
    const std::int64_t in_layer = per_norm * network::norms_per_layer(a);
    add("norms of the blocks left out", fmt::format("- {} L D", in_layer),
        -in_layer * s_.layers * s_.width);
    add("final norm left out", per_norm == 2 ? "- 2 D" : "- D",
        a.final_norm ? -per_norm * s_.width : 0);
    for (const network::ParameterTerm& term : parameter_terms(s_)) {
      if (term.name.ends_with("_bias")) {
        add(fmt::format("{} left out", term.name), fmt::format("- {}", term.formula), -term.count);
      }
    }
  }

  void add_buffers() {
    if (s_.architecture.positions == network::Positions::kRotary) {
      add("rotary frequencies of each layer counted", "L H / 2", s_.layers * s_.head_dim / 2);
      return;
    }
    if (!learned() || !s_.architecture.causal) return;
    // Nobody stores masks of more positions, and their square would leave 64 bits.
    if (s_.positions > std::int64_t{1} << 20) return;
    const std::int64_t mask = s_.layers * s_.positions * s_.positions;
    add("causal masks counted", "L T^2", mask);
    add("causal masks and their fill values counted", "L (T^2 + 1)", mask + s_.layers);
  }

  void add_padding() {
    std::int64_t last = s_.vocabulary;
    for (const std::int64_t multiple : {8, 64, 128, 256, 512, 1024}) {
      const std::int64_t padded = (s_.vocabulary + multiple - 1) / multiple * multiple;
      if (padded == last) continue;
      last = padded;
      const std::int64_t matrices = s_.tied_head ? 1 : 2;
      add(fmt::format("vocabulary padded to {}, a multiple of {}", padded, multiple),
          matrices == 1 ? "(V' - V) D" : "2 (V' - V) D",
          matrices * (padded - s_.vocabulary) * s_.width);
    }
  }

  const NetworkSpec& s_;
  std::vector<DifferencePart> parts_;
};

// --- the fewest terms that add up

using Parts = std::vector<DifferencePart>;

// Appends to `chosen` exactly `count` of the habits from `from` on that sum to `rest`.
bool choose(const Parts& habits, std::size_t from, std::size_t count, std::int64_t rest,
            Parts& chosen) {
  if (count == 0) return rest == 0;
  for (std::size_t i = from; i < habits.size(); ++i) {
    chosen.push_back(habits[i]);
    if (choose(habits, i + 1, count - 1, rest - habits[i].count, chosen)) return true;
    chosen.pop_back();
  }
  return false;
}

Parts explain(const Parts& habits, std::int64_t difference) {
  constexpr std::size_t kMostTerms = 5;
  for (std::size_t count = 1; count <= kMostTerms; ++count) {
    Parts chosen;
    if (choose(habits, 0, count, difference, chosen)) return chosen;
  }
  return {};
}

// Half a unit of the last digit that is not 0: 6700000000 -> 50000000.
std::optional<DifferencePart> rounding(std::int64_t published, std::int64_t difference) {
  std::int64_t unit = 1;
  constexpr std::int64_t kLargestUnit = 1'000'000'000'000'000;
  while (unit < kLargestUnit && published % (unit * 10) == 0) unit *= 10;
  if (unit < 1000 || std::abs(difference) > unit / 2) return std::nullopt;
  return DifferencePart{fmt::format("the published count is a multiple of {}", grouped(unit)),
                        "rounding", difference};
}

PublishedCount explained(const Parts& habits, std::int64_t calculated, std::int64_t published) {
  PublishedCount result;
  result.published = published;
  result.difference = published - calculated;
  result.unexplained = result.difference;
  if (result.difference == 0) return result;
  result.parts = explain(habits, result.difference);
  if (result.parts.empty()) {
    if (auto part = rounding(published, result.difference)) result.parts.push_back(*part);
  }
  for (const DifferencePart& part : result.parts) result.unexplained -= part.count;
  return result;
}

// --- weights files

// Sizes above 1, largest first: transposed and unsqueezed matrices look alike.
std::vector<std::int64_t> shape_key(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  std::sort(shape.begin(), shape.end(), std::greater<>());
  return shape;
}

// "model.layers.12.mlp" -> "model.layers.*.mlp".
std::string pattern(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    const bool begins = i == 0 || name[i - 1] == '.';
    if (digit && begins) result += '*';
    const bool continues = digit && !result.empty() && result.back() == '*';
    if (!continues) result += name[i];
  }
  return result;
}

struct Ours {
  std::string name;
  std::vector<std::int64_t> key;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  bool matched = false;
};

std::vector<Ours> parameters_of(const network::Network& network) {
  std::vector<Ours> ours;
  for (const network::Parameter& p : network.parameters) {
    const std::vector<std::int64_t> shape(p.shape.begin(), p.shape.end());
    ours.push_back({p.name, shape_key(shape), shape, network::element_count(p.shape), false});
  }
  return ours;
}

// "transformer.wte.weight" and "wte.weight" are one: files may leave the model's prefix out.
bool same_name(std::string_view ours, std::string_view theirs) {
  if (ours == theirs) return true;
  const auto ends = [](std::string_view text, std::string_view tail) {
    return text.size() > tail.size() && text.ends_with(tail) &&
           text[text.size() - tail.size() - 1] == '.';
  };
  return ends(ours, theirs) || ends(theirs, ours);
}

bool take(std::vector<Ours>& ours, const formats::TensorEntry& tensor, bool by_name) {
  const auto key = shape_key(tensor.shape);
  const auto found = std::find_if(ours.begin(), ours.end(), [&](const Ours& o) {
    return !o.matched && o.key == key && (!by_name || same_name(o.name, tensor.name));
  });
  if (found == ours.end()) return false;
  found->matched = true;
  return true;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// One part per pattern of names, each tensor adding to it.
class Groups {
 public:
  void add(std::string_view what, const std::string& name, const std::vector<std::int64_t>& shape,
           std::int64_t elements) {
    const std::string title = fmt::format("{}: {} {}", what, pattern(name), shape_text(shape));
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Group& g) { return g.title == title; });
    Group& group = found != groups_.end() ? *found : groups_.emplace_back(Group{title, 0, 0});
    ++group.tensors;
    group.elements = checked_add(group.elements, elements);
  }

  Parts parts() const {
    Parts parts;
    for (const Group& g : groups_) {
      parts.push_back({g.title, fmt::format("{} tensors", g.tensors), g.elements});
    }
    return parts;
  }

 private:
  struct Group {
    std::string title;
    std::int64_t tensors;
    std::int64_t elements;
  };
  std::vector<Group> groups_;
};

bool counts_as_parameters(const formats::TensorEntry& tensor) {
  return formats::count_by_dtype({&tensor, 1}).front().parameters;
}

}  // namespace

PublishedCount explain_number(const NetworkSpec& spec, std::int64_t calculated,
                              std::int64_t published) {
  return explained(Habits(spec).list(), calculated, published);
}

PublishedCount explain_number(std::int64_t calculated, std::int64_t published) {
  return explained({}, calculated, published);
}

PublishedCount explain_weights(const network::Network& network,
                               std::span<const formats::TensorEntry> tensors, std::string file) {
  std::vector<Ours> ours = parameters_of(network);
  std::vector<const formats::TensorEntry*> rest;
  PublishedCount result;
  result.file = std::move(file);
  for (const formats::TensorEntry& tensor : tensors) {
    if (!counts_as_parameters(tensor)) continue;
    result.published = checked_add(result.published, tensor.elements);
    if (!take(ours, tensor, /*by_name=*/true)) rest.push_back(&tensor);
  }
  Groups groups;
  for (const formats::TensorEntry* tensor : rest) {
    if (take(ours, *tensor, /*by_name=*/false)) continue;
    groups.add("only in the file", tensor->name, tensor->shape, tensor->elements);
  }
  for (const Ours& o : ours) {
    if (!o.matched) groups.add("not in the file", o.name, o.shape, -o.elements);
  }
  result.difference = result.published - network.parameter_elements();
  result.parts = groups.parts();
  result.unexplained = result.difference;
  for (const DifferencePart& part : result.parts) result.unexplained -= part.count;
  return result;
}

}  // namespace plimsoll::report
