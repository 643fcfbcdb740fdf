// The largest batch whose real run stays within a limit.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/study/runs.hpp"
#include "plimsoll/study/studies.hpp"

namespace plimsoll::study {
namespace {

class Bisection {
 public:
  Bisection(const network::NetworkSpec& spec, const plan::Job& job, std::int64_t limit,
            Progress& progress)
      : spec_(spec), job_(job), progress_(progress) {
    report_.limit = limit;
  }

  report::BisectReport run() {
    progress_.update("bisection: calculating the largest batch");
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
    const std::string what = fmt::format("bisection: trying batch {}", batch);
    const std::int64_t peak = measured_peak(network_of(spec_, job), job, what, progress_);
    report_.tries.push_back({batch, peak, peak <= report_.limit});
    return peak <= report_.limit;
  }

  static constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const network::NetworkSpec& spec_;
  const plan::Job& job_;
  Progress& progress_;
  report::BisectReport report_;
};

}  // namespace

Result<report::BisectReport> bisect(const network::NetworkSpec& spec, const plan::Job& job,
                                    const Options& options, Progress& progress) {
  if (const auto reason = no_measurement(job)) {
    return fail("--bisect", "bisection needs real runs: " + *reason, "", ExitCode::kEnvironment);
  }
  const std::optional<std::int64_t> available = options.memory_available;
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

}  // namespace plimsoll::study
