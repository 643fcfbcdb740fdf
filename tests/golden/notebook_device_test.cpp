// The memory notebook's device timeline: allocated bytes of the caching allocator as differences from
// a base of two cuBLAS workspaces. tests/truth/notebook.json, device_timeline.
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/plan/memory.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/golden/notebook.hpp"

namespace plimsoll::test {
namespace {

using timeline::Phase;

const nlohmann::json& figures() { return notebook().at("device_timeline"); }

plan::Job device_job() {
  plan::Job job = notebook_job(figures().at("B"), figures().at("s"));
  job.hold_logits = true;
  job.shared_targets = true;
  return job;
}

std::string printed_figure(const char* key) {
  return printed(figures().at(key).get<double>(), 2) + " MiB";
}

// The first step in the allocator, whose base was there before the model.
class DeviceRun {
 public:
  DeviceRun()
      : job_(device_job()),
        network_(network::build_network(notebook_model(figures()), job_.build_options())),
        libraries_(plan::library_blocks(network_, job_)),
        sink_(libraries_) {
    plan::WalkOptions options;
    plan::walk(network_, job_, options, sink_);
  }

  std::int64_t base() const { return libraries_.bytes(); }
  std::string end_of(Phase phase) const { return from_base(figures_of(phase).end, phase); }
  std::string peak() const {
    return mib(static_cast<double>(sink_.allocated_peak(0).bytes - base()), 2);
  }

 private:
  const timeline::PhaseFigures& figures_of(Phase phase) const {
    for (const timeline::PhaseFigures& f : sink_.phases()) {
      if (f.key.phase == phase && f.key.step == 0) return f;
    }
    FAIL("no such phase");
    return sink_.phases().front();
  }
  // Before backward one of the two workspaces does not exist, before forward none does.
  std::string from_base(std::int64_t bytes, Phase phase) const {
    std::int64_t taken = 0;
    if (phase >= Phase::kForward) taken += libraries_.forward.at(0);
    if (phase >= Phase::kBackward) taken += libraries_.backward.at(0);
    return mib(static_cast<double>(bytes - taken), 2);
  }

  plan::Job job_;
  network::Network network_;
  plan::allocator::LibraryBlocks libraries_;
  plan::allocator::AllocatorSink sink_;
};

}  // namespace

TEST_CASE("notebook: the base of the device run is two cuBLAS workspaces") {
  const DeviceRun run;
  CHECK(run.base() == 2 * 8'519'680);
  CHECK(mib(static_cast<double>(run.base()), 2) == printed_figure("base_MiB"));
}

TEST_CASE("notebook: the device timeline from the base, to the printed digit") {
  const DeviceRun run;
  CHECK(run.end_of(Phase::kModel) == printed_figure("after_model_MiB"));
  CHECK(run.end_of(Phase::kForward) == printed_figure("after_forward_MiB"));
  CHECK(run.peak() == printed_figure("peak_MiB"));
  CHECK(run.end_of(Phase::kOptimizer) == printed_figure("after_optimizer_step_MiB"));
}

}  // namespace plimsoll::test
