// The memory notebook's device run: the first step in the allocator's model, as differences from the
// base of two cuBLAS workspaces. tests/truth/notebook.json, device_timeline.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/plan/memory.hpp"
#include "plimsoll/plan/walk.hpp"

#include "tests/golden/notebook.hpp"

namespace plimsoll::test {

inline const nlohmann::json& device_figures() { return notebook().at("device_timeline"); }

inline plan::Job notebook_device_job() {
  plan::Job job = notebook_job(device_figures().at("B"), device_figures().at("s"));
  job.hold_logits = true;
  job.shared_targets = true;
  return job;
}

inline std::string device_figure(const char* key) {
  return printed(device_figures().at(key).get<double>(), 2) + " MiB";
}

// The first step in the allocator, whose base was there before the model.
class NotebookDevice {
 public:
  NotebookDevice()
      : job_(notebook_device_job()),
        network_(network::build_network(notebook_model(device_figures()), job_.build_options())),
        libraries_(plan::library_blocks(network_, job_)),
        sink_(libraries_) {
    plan::WalkOptions options;
    plan::walk(network_, job_, options, sink_);
  }

  std::int64_t base() const { return libraries_.bytes(); }
  std::string end_of(timeline::Phase phase) const {
    return from_base(figures_of(phase).end, phase);
  }
  std::string peak() const {
    return mib(static_cast<double>(sink_.allocated_peak(0).bytes - base()), 2);
  }

 private:
  const timeline::PhaseFigures& figures_of(timeline::Phase phase) const {
    for (const timeline::PhaseFigures& f : sink_.phases()) {
      if (f.key.phase == phase && f.key.step == 0) return f;
    }
    FAIL("no such phase");
    return sink_.phases().front();
  }
  // Before backward one of the two workspaces does not exist, before forward none does.
  std::string from_base(std::int64_t bytes, timeline::Phase phase) const {
    std::int64_t taken = 0;
    if (phase >= timeline::Phase::kForward) taken += libraries_.forward.at(0);
    if (phase >= timeline::Phase::kBackward) taken += libraries_.backward.at(0);
    return mib(static_cast<double>(bytes - taken), 2);
  }

  plan::Job job_;
  network::Network network_;
  plan::allocator::LibraryBlocks libraries_;
  plan::allocator::AllocatorSink sink_;
};

}  // namespace plimsoll::test
