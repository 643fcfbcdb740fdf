#include "plimsoll/plan/advice.hpp"

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan {
namespace {

using shard::Stage;

// What a stage is held against, at the same ranks.
struct Figures {
  std::int64_t peak = 0;
  std::int64_t traffic = 0;
};

Figures figures_at(const network::Network& network, const Job& job, Stage stage) {
  Job other = job;
  other.stage = stage;
  timeline::PeakSink sink;
  const WalkOptions options;
  const WalkResult result = walk(network, other, options, sink);
  return {sink.peak(options.steps - 1).bytes, result.traffic.bytes()};
}

std::string fewer(std::int64_t bytes) { return human(Bytes{bytes}); }

double ratio(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

// A saving below this share of the peak is not worth another way of running.
constexpr double kWorthwhile = 0.05;

std::string little_gain(const Figures& none, const Figures& own, Stage stage) {
  const std::int64_t saved = none.peak - own.peak;
  if (saved <= 0) {
    return fmt::format(
        "stage {} only costs here: --zero 0 peaks {} lower; the model's state is small beside what "
        "gathering and reducing need",
        static_cast<int>(stage), fewer(-saved));
  }
  if (static_cast<double>(saved) >= kWorthwhile * static_cast<double>(none.peak)) return "";
  return fmt::format(
      "stage {} saves only {} ({:.1f} % of --zero 0's peak): activations fill the memory; "
      "--checkpoint block or a smaller batch does more",
      static_cast<int>(stage), fewer(saved), 100 * ratio(saved, none.peak));
}

}  // namespace

std::vector<std::string> sharding_advice(const network::Network& network, const Job& job,
                                         std::int64_t peak) {
  std::vector<std::string> advice;
  if (job.stage == Stage::kNothing) return advice;
  if (job.ranks == 1) {
    const Figures none = figures_at(network, job, Stage::kNothing);
    advice.push_back(fmt::format("one rank has nothing to divide: --zero 0 peaks {} lower",
                                 fewer(std::max<std::int64_t>(peak - none.peak, 0))));
    return advice;
  }
  const Figures own = figures_at(network, job, job.stage);
  const Figures none = figures_at(network, job, Stage::kNothing);
  const Figures second = figures_at(network, job, Stage::kGradients);
  if (job.stage == Stage::kOptimizer && second.peak <= own.peak) {
    advice.push_back(
        fmt::format("stage 2 dominates stage 1: the same traffic, and a peak {} lower: --zero 2",
                    fewer(own.peak - second.peak)));
  }
  if (job.stage == Stage::kParameters && second.peak <= own.peak) {
    advice.push_back(fmt::format(
        "stage 3 only costs against stage 2 here: {:.2f} times the traffic, and a peak {} higher: "
        "--zero 2",
        ratio(own.traffic, second.traffic), fewer(own.peak - second.peak)));
  }
  if (std::string line = little_gain(none, own, job.stage); !line.empty()) advice.push_back(line);
  return advice;
}

}  // namespace plimsoll::plan
