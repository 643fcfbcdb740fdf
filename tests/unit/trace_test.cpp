// The trace: valid trace events, slices that nest, counters that are the timeline.
#include "plimsoll/report/trace.hpp"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/some_plan.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using plan::Plan;

// Follows a trace as a viewer does, and keeps what it says.
struct Viewer {
  std::map<int, std::vector<std::string>> open;  // slices by row
  std::map<std::string, std::int64_t> counters;
  std::int64_t highest = 0;  // of all tags
  std::int64_t steady_highest = 0;
  std::vector<std::string> slices;  // of the row of phases, as they begin
  std::vector<json> marks;
  std::map<std::string, int> operations;
  std::string phase_of_peak;

  void take(const json& event) {
    const std::string kind = event["ph"];
    const int row = event["tid"];
    const std::string name = event.value("name", "");
    if (kind == "B") {
      open[row].push_back(name);
      if (row == 1) slices.push_back(name);
      if (row == 2) ++operations[name];
    } else if (kind == "E") {
      REQUIRE_FALSE(open[row].empty());
      open[row].pop_back();
    } else if (kind == "C") {
      counters[name] = event["args"]["bytes"];
      if (name != "all tags") return;
      highest = std::max(highest, counters[name]);
      const bool steady = !open[1].empty() && open[1][0] == "steady step";
      if (steady && counters[name] > steady_highest) {
        steady_highest = counters[name];
        phase_of_peak = open[1].back();
      }
    } else if (kind == "i") {
      marks.push_back(event);
    } else {
      CHECK(kind == "M");
    }
  }

  std::int64_t sum_of_tags() const {
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : counters) sum += name == "all tags" ? 0 : bytes;
    return sum;
  }
};

Viewer view(const Plan& plan) {
  const json trace = json::parse(report::trace_json(plan));
  Viewer viewer;
  std::int64_t now = 0;
  const json& events = trace["traceEvents"];
  for (std::size_t i = 0; i < events.size(); ++i) {
    const json& event = events[i];
    CHECK(event["pid"] == 1);
    const std::int64_t when = event.value("ts", now);
    CHECK(when >= now);
    // All counters of an instant are written before the next one begins.
    if (when != now) CHECK(viewer.sum_of_tags() == viewer.counters["all tags"]);
    now = when;
    viewer.take(event);
  }
  for (const auto& [row, slices] : viewer.open) CHECK(slices.empty());
  return viewer;
}

TEST_CASE("slices nest, counters sum to the current bytes, the peaks are the plan's") {
  for (const Plan& plan : {test::some_plan("minigpt:d=128,L=4,V=1000,s=64,heads=4",
                                           [](plan::Job& job) { job.batch = 8; }),
                           test::some_plan("minigpt:d=128,L=4,V=1000,s=64,heads=4",
                                           [](plan::Job& job) {
                                             job.ranks = 3;
                                             job.stage = shard::Stage::kParameters;
                                             job.accumulate = 4;
                                             job.precision = plan::Precision::kMixed;
                                           }),
                           test::some_plan("cnn:", [](plan::Job& job) {
                             job.sequence = 0;
                             job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
                           })}) {
    const Viewer viewer = view(plan);
    CHECK(viewer.steady_highest == plan.steady.peak.bytes);
    CHECK(viewer.highest == std::max(plan.first.peak.bytes, plan.steady.peak.bytes));
    REQUIRE(viewer.marks.size() == 2);
    CHECK(viewer.marks[0]["args"]["bytes"] == plan.first.peak.bytes);
    CHECK(viewer.marks[1]["args"]["bytes"] == plan.steady.peak.bytes);
    CHECK(viewer.marks[1]["args"]["at"] == plan.steady.peak_operation);
    CHECK(viewer.phase_of_peak.starts_with(timeline::name(plan.steady.peak.phase.phase)));
  }
}

// The reference network of docs/cli.md, where the same figures stand.
TEST_CASE("golden facts of one trace") {
  const Viewer viewer = view(test::some_plan("minigpt:d=128,L=4,V=1000,s=64,heads=4",
                                             [](plan::Job& job) { job.batch = 8; }));
  CHECK(viewer.steady_highest == 34'622'984);
  CHECK(viewer.phase_of_peak == "backward");
  CHECK(viewer.marks[1]["name"] == "peak of the steady step: 33.02 MiB");
  CHECK(viewer.marks[1]["args"]["at"] == "loss cross_entropy");
  const std::vector<std::string> step = {"zero_grad", "forward", "loss", "backward", "optimizer"};
  std::vector<std::string> slices = {"model", "first step"};
  slices.insert(slices.end(), step.begin(), step.end());
  slices.emplace_back("steady step");
  slices.insert(slices.end(), step.begin(), step.end());
  CHECK(viewer.slices == slices);
  // What is alive at the end: weights, gradients, states, inputs, and the loss.
  CHECK(viewer.counters.at("parameters") == 3'699'712);
  CHECK(viewer.counters.at("gradients") == 3'699'712);
  CHECK(viewer.counters.at("optimizer") == 7'399'424);
  CHECK(viewer.counters.at("all tags") == 14'807'044);
  CHECK(viewer.operations.contains("loss cross_entropy"));
}

}  // namespace
}  // namespace plimsoll
