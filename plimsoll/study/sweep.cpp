// A over the sequence length or the width.
#include <string>

#include <fmt/format.h>

#include "plimsoll/study/runs.hpp"
#include "plimsoll/study/studies.hpp"

namespace plimsoll::study {
namespace {

// The spec at another width: heads keep their number, feed-forward its ratio.
Result<network::NetworkSpec> at_width(const network::NetworkSpec& spec, std::int64_t width) {
  network::NetworkSpec result = spec;
  if (width % spec.heads != 0) {
    return fail("width", fmt::format("{} heads do not divide it", spec.heads));
  }
  result.width = width;
  result.head_dim = spec.head_dim * width / spec.width;
  result.feed_forward = spec.feed_forward * width / spec.width;
  if (auto valid = network::validate(result); !valid) return tl::unexpected(valid.error());
  return result;
}

report::SweepPoint sweep_point(const network::NetworkSpec& spec, const plan::Job& job,
                               std::int64_t value) {
  report::SweepPoint point;
  point.value = value;
  const network::Network net = network_of(spec, job);
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

// An inline model is its sizes: another length is another model.
Result<network::NetworkSpec> at_length(const network::NetworkSpec& spec, std::int64_t length) {
  network::NetworkSpec result = spec;
  if (spec.family == network::Family::kMiniGpt) result.positions = length;
  return result;
}

class Sweep {
 public:
  Sweep(const network::NetworkSpec& spec, const plan::Job& job, report::SweepAxis axis,
        Progress& progress)
      : spec_(spec), job_(job), axis_(axis), progress_(progress) {}

  report::SweepReport run() {
    report::SweepReport report;
    report.axis = axis_;
    report.batch = job_.batch;
    report.measured_reason = no_measurement(job_).value_or("");
    if (over_sequence() && spec_.family == network::Family::kMiniGpt) {
      report.notes.push_back("the model is built anew for each length, with that many positions");
    }
    const std::int64_t center = over_sequence() ? job_.sequence : spec_.width;
    for (std::int64_t value : {center / 4, center / 2, center, 2 * center}) {
      if (value >= 1) add_point(value, report);
    }
    return report;
  }

 private:
  bool over_sequence() const { return axis_ == report::SweepAxis::kSequence; }

  void add_point(std::int64_t value, report::SweepReport& report) {
    plan::Job job = job_;
    if (over_sequence()) job.sequence = value;
    const Result<network::NetworkSpec> spec =
        over_sequence() ? at_length(spec_, value) : at_width(spec_, value);
    const Result<void> valid = spec.and_then(
        [&](const network::NetworkSpec& changed) { return plan::validate(job, changed); });
    if (!valid) {
      report.notes.push_back(
          fmt::format("{} {}: left out, {}", name(axis_), value, valid.error().what));
      return;
    }
    progress_.update(fmt::format("sweep: {} {}", name(axis_), value));
    report.points.push_back(sweep_point(*spec, job, value));
  }

  const network::NetworkSpec& spec_;
  const plan::Job& job_;
  const report::SweepAxis axis_;
  Progress& progress_;
};

}  // namespace

Result<report::SweepReport> sweep(const network::NetworkSpec& spec, const plan::Job& job,
                                  const Options& options, Progress& progress) {
  if (spec.family == network::Family::kCnn) {
    return fail("--sweep", "an image network has neither a sequence nor a width to sweep");
  }
  return guarded<report::SweepReport>([&] {
    prepare_library(job);
    return Sweep(spec, job, *options.sweep, progress).run();
  });
}

}  // namespace plimsoll::study
