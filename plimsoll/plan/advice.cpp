#include "plimsoll/plan/advice.hpp"

#include <algorithm>

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

// "a peak 1.00 GiB lower", or "the same peak".
std::string peak_by(std::int64_t bytes, const char* direction) {
  if (bytes == 0) return "the same peak";
  return fmt::format("a peak {} {}", human(Bytes{bytes}), direction);
}

double ratio(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

// A saving below this share of the peak is not worth another way of running.
constexpr double kWorthwhile = 0.05;

std::string little_gain(const Figures& none, const Figures& own, Stage stage) {
  const std::int64_t saved = none.peak - own.peak;
  if (saved <= 0) {
    return fmt::format("stage {} saves nothing here: --zero 0 has {}", static_cast<int>(stage),
                       peak_by(-saved, "lower"));
  }
  if (static_cast<double>(saved) >= kWorthwhile * static_cast<double>(none.peak)) return "";
  return fmt::format("stage {} saves only {}, {:.1f} % of --zero 0's peak", static_cast<int>(stage),
                     human(Bytes{saved}), 100 * ratio(saved, none.peak));
}

}  // namespace

std::vector<std::string> sharding_advice(const network::Network& network, const Job& job,
                                         std::int64_t peak) {
  std::vector<std::string> advice;
  if (job.stage == Stage::kNothing) return advice;
  if (job.ranks == 1) {
    const Figures none = figures_at(network, job, Stage::kNothing);
    advice.push_back(fmt::format("one rank has nothing to divide: --zero 0 has {}",
                                 peak_by(std::max<std::int64_t>(peak - none.peak, 0), "lower")));
    return advice;
  }
  const Figures own = figures_at(network, job, job.stage);
  const Figures none = figures_at(network, job, Stage::kNothing);
  const Figures second = figures_at(network, job, Stage::kGradients);
  if (job.stage == Stage::kOptimizer && second.peak <= own.peak) {
    advice.push_back(fmt::format("stage 2 dominates stage 1: the same traffic, and {}: --zero 2",
                                 peak_by(own.peak - second.peak, "lower")));
  }
  if (job.stage == Stage::kParameters && second.peak <= own.peak) {
    advice.push_back(fmt::format(
        "stage 3 only costs against stage 2 here: {:.2f} times the traffic, and {}: --zero 2",
        ratio(own.traffic, second.traffic), peak_by(own.peak - second.peak, "higher")));
  }
  if (std::string line = little_gain(none, own, job.stage); !line.empty()) advice.push_back(line);
  return advice;
}

}  // namespace plimsoll::plan
