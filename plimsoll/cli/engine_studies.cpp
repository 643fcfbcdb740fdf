// The studies of `measure`: the fit over batches, families by shape, sweeps, and bisection.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "plimsoll/cli/engine_runs.hpp"
#include "plimsoll/cli/machine.hpp"
#include "plimsoll/cli/measure.hpp"
#include "plimsoll/engine/run/library_calls.hpp"
#include "plimsoll/engine/run/saved_tensors.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::cli {
namespace {

using network::Network;
using network::NetworkSpec;

Network network_of(const NetworkSpec& spec, const plan::Job& job) {
  return network::build_network(spec, job.build_options());
}

plan::Job with_batch(plan::Job job, std::int64_t batch) {
  job.batch = batch;
  return job;
}

std::vector<network::SavedRecord> records_of(const Network& net, const plan::Job& job) {
  timeline::PeakSink sink;
  plan::WalkOptions options;
  options.steps = 1;
  options.keep_ledger = true;
  return plan::walk(net, job, options, sink).ledger;
}

// --- families

// Shape, dtype, parameter or not: what names a family.
using FamilyKey = std::tuple<std::string, std::string, bool>;

std::map<FamilyKey, std::int64_t> measured_families(const Network& net, const plan::Job& job) {
  std::map<FamilyKey, std::int64_t> bytes;
  for (const engine::SavedTensor& s : engine::saved_tensors(net, job, at::kCPU)) {
    network::Dims shape;
    for (std::int64_t d : s.shape) shape.push_back(d);
    network::DType dtype = network::DType::kBool;
    for (auto candidate :
         {network::DType::kBool, network::DType::kInt64, network::DType::kFloat16,
          network::DType::kBFloat16, network::DType::kFloat32, network::DType::kFloat64}) {
      if (engine::scalar_type(candidate) == s.dtype) dtype = candidate;
    }
    bytes[{to_text(shape), std::string(name(dtype)), s.parameter}] += s.bytes;
  }
  return bytes;
}

FamilyKey key_of(const plan::ShapeFamily& family) {
  return {to_text(family.shape), std::string(network::name(family.dtype)), family.parameters};
}

// The same family at twice the batch: the batch dimension, or rows made of it, doubled.
bool doubles_into(const network::Dims& shape, const network::Dims& doubled) {
  if (shape.size() != doubled.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (doubled[i] == shape[i]) continue;
    network::Dims grown = shape;
    grown[i] *= 2;
    return grown == doubled;
  }
  return false;
}

// Dimensions that no shape can tell apart, such as a sequence as long as the model is wide.
std::vector<std::string> collisions(const NetworkSpec& spec, const plan::Job& job) {
  const std::vector<std::pair<std::string, std::int64_t>> sizes = {
      {"B T", job.batch * std::max<std::int64_t>(job.sequence, 1)},
      {"T", job.sequence},
      {"D", spec.width},
      {"F", spec.feed_forward},
      {"V", spec.vocabulary},
      {"H", spec.head_dim},
      {"N", spec.heads}};
  std::vector<std::string> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t j = i + 1; j < sizes.size(); ++j) {
      const bool one_row = sizes[i].first == "B T" && sizes[j].first == "T" && job.batch == 1;
      if (sizes[i].second != sizes[j].second || sizes[i].second <= 1 || one_row) continue;
      result.push_back(
          fmt::format("{} = {} = {}", sizes[i].first, sizes[j].first, sizes[i].second));
    }
  }
  return result;
}

report::FamilyRow row_of(const plan::ShapeFamily& family) {
  report::FamilyRow row;
  row.shape = to_text(family.shape);
  row.dtype = network::name(family.dtype);
  row.saved_by = family.saved_by;
  row.calculated = row.calculated_doubled = family.bytes;
  return row;
}

report::FamiliesReport families_report(const NetworkSpec& spec, const plan::Job& job) {
  const plan::Job twice = with_batch(job, 2 * job.batch);
  const Network net = network_of(spec, job);
  const Network net_twice = network_of(spec, twice);
  const auto families = plan::shape_families(records_of(net, job));
  const auto doubled = plan::shape_families(records_of(net_twice, twice));
  report::FamiliesReport report;
  report.batch = job.batch;
  report.collisions = collisions(spec, job);
  report.measured_reason = no_measurement(job).value_or("");
  std::map<FamilyKey, std::int64_t> measured;
  std::map<FamilyKey, std::int64_t> measured_twice;
  if (report.measured_reason.empty()) {
    measured = measured_families(net, job);
    measured_twice = measured_families(net_twice, twice);
  }
  for (const plan::ShapeFamily& family : families) {
    report::FamilyRow row = row_of(family);
    FamilyKey key = key_of(family);
    if (report.measured_reason.empty()) row.measured = measured[key];
    for (const plan::ShapeFamily& other : doubled) {
      const bool same_kind = other.dtype == family.dtype && other.parameters == family.parameters;
      if (family.parameters || !same_kind || !doubles_into(family.shape, other.shape)) continue;
      row.calculated_doubled = other.bytes;
      key = key_of(other);
    }
    if (report.measured_reason.empty()) row.measured_doubled = measured_twice[key];
    if (family.parameters) report.parameter_bytes += family.bytes;
    report.rows.push_back(std::move(row));
  }
  return report;
}

// --- sweeps

// The spec at another width: heads keep their number, feed-forward its ratio. None when the width
// cannot be.
std::optional<NetworkSpec> at_width(const NetworkSpec& spec, std::int64_t width) {
  NetworkSpec result = spec;
  if (spec.width == 0 || width % spec.heads != 0) return std::nullopt;
  result.width = width;
  result.head_dim = spec.head_dim * width / spec.width;
  result.feed_forward = spec.feed_forward * width / spec.width;
  if (!network::validate(result)) return std::nullopt;
  return result;
}

report::SweepPoint sweep_point(const NetworkSpec& spec, const plan::Job& job, std::int64_t value) {
  report::SweepPoint point;
  point.value = value;
  const Network net = network_of(spec, job);
  point.calculated = calculated_activations(net, job);
  point.measured = measured_activations(net, job);
  // From two batches on growth is linear; batch 1 may keep whole storages through views.
  const plan::Job two = with_batch(job, 2);
  const plan::Job three = with_batch(job, 3);
  const std::int64_t at_two = calculated_activations(network_of(spec, two), two);
  const std::int64_t at_three = calculated_activations(network_of(spec, three), three);
  point.k = at_three - at_two;
  point.A0 = at_two - 2 * *point.k;
  return point;
}

report::SweepReport sweep_report(const NetworkSpec& spec, const plan::Job& job,
                                 report::SweepAxis axis, Progress& progress) {
  report::SweepReport report;
  report.axis = axis;
  report.batch = job.batch;
  report.measured_reason = no_measurement(job).value_or("");
  const bool sequence = axis == report::SweepAxis::kSequence;
  const std::int64_t center = sequence ? job.sequence : spec.width;
  for (std::int64_t value : {center / 4, center / 2, center, 2 * center}) {
    plan::Job changed = job;
    std::optional<NetworkSpec> changed_spec = spec;
    if (sequence) {
      changed.sequence = value;
      // The models of a sweep are built with the length they are run at.
      if (spec.architecture.positions == network::Positions::kLearned) {
        changed_spec->positions = value;
      }
    } else {
      changed_spec = at_width(spec, value);
    }
    if (value < 1 || !changed_spec) continue;
    progress.update(fmt::format("{} = {}", name(axis), value));
    report.points.push_back(sweep_point(*changed_spec, changed, value));
  }
  return report;
}

// --- bisection

class Bisection {
 public:
  Bisection(const NetworkSpec& spec, const plan::Job& job, std::int64_t limit, Progress& progress)
      : spec_(spec), job_(job), progress_(progress) {
    report_.limit = limit;
  }

  report::BisectReport run() {
    report_.calculated_largest = search([this](std::int64_t b) { return calculated_fits(b); });
    report_.largest = search([this](std::int64_t b) { return measured_fits(b); });
    return std::move(report_);
  }

 private:
  template <class Fits>
  std::optional<std::int64_t> search(const Fits& fits) {
    if (!fits(1)) return std::nullopt;
    std::int64_t good = 1;
    while (good < kMost && fits(2 * good)) good *= 2;
    std::int64_t bad = 2 * good;
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    return good;
  }

  bool calculated_fits(std::int64_t batch) const {
    const plan::Job job = with_batch(job_, batch);
    return calculated_peak(network_of(spec_, job), job) <= report_.limit;
  }

  bool measured_fits(std::int64_t batch) {
    const plan::Job job = with_batch(job_, batch);
    progress_.update(fmt::format("trying batch {}", batch));
    const std::int64_t peak = measured_peak(network_of(spec_, job), job);
    report_.tries.push_back({batch, peak, peak <= report_.limit});
    return peak <= report_.limit;
  }

  static constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const NetworkSpec& spec_;
  const plan::Job& job_;
  Progress& progress_;
  report::BisectReport report_;
};

}  // namespace

Result<report::AffineFit> measure_fit_batch(const NetworkSpec& spec, const plan::Job& job,
                                            const MeasureOptions&, Progress& progress) {
  return guarded<report::AffineFit>([&] {
    prepare_library(job);
    std::vector<report::AffinePoint> points;
    for (std::int64_t batch : {1, 2, 4, 8}) {
      progress.update(fmt::format("batch {}", batch));
      const plan::Job changed = with_batch(job, batch);
      const Network net = network_of(spec, changed);
      points.push_back(
          {batch, calculated_activations(net, changed), measured_activations(net, changed), 0});
    }
    return report::fit_affine(std::move(points));
  });
}

Result<report::FamiliesReport> measure_families(const NetworkSpec& spec, const plan::Job& job,
                                                const MeasureOptions&, Progress& progress) {
  if (job.checkpoint != network::Checkpoint::kNone) {
    return fail("--families", "families are saved tensors, and a checkpointed region saves none",
                "use --checkpoint none");
  }
  return guarded<report::FamiliesReport>([&] {
    prepare_library(job);
    progress.update("families at one and two times the batch");
    return families_report(spec, job);
  });
}

Result<report::SweepReport> measure_sweep(const NetworkSpec& spec, const plan::Job& job,
                                          const MeasureOptions& options, Progress& progress) {
  if (spec.family == network::Family::kCnn) {
    return fail("--sweep", "an image network has neither a sequence nor a width to sweep");
  }
  return guarded<report::SweepReport>([&] {
    prepare_library(job);
    return sweep_report(spec, job, *options.sweep, progress);
  });
}

Result<report::BisectReport> measure_bisect(const NetworkSpec& spec, const plan::Job& job,
                                            const MeasureOptions& options, Progress& progress) {
  if (const auto reason = no_measurement(job)) {
    return fail("--bisect", "bisection needs real runs: " + *reason, "", ExitCode::kEnvironment);
  }
  // Twice the limit may be allocated before a try is known not to fit.
  const auto available = this_machine().memory_available;
  if (available && *options.bisect_bytes > *available / 2) {
    return fail("--bisect",
                fmt::format("size={} B, expected at most half of the {} B that are free here",
                            *options.bisect_bytes, *available),
                "", ExitCode::kEnvironment);
  }
  return guarded<report::BisectReport>([&] {
    prepare_library(job);
    return Bisection(spec, job, *options.bisect_bytes, progress).run();
  });
}

}  // namespace plimsoll::cli
