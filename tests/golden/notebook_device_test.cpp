// The memory notebook's device timeline: allocated bytes of the caching allocator as differences from
// a base of two cuBLAS workspaces. tests/truth/notebook.json, device_timeline.
#include "tests/golden/notebook_device.hpp"

#include <doctest/doctest.h>

namespace plimsoll::test {
using timeline::Phase;

TEST_CASE("notebook: the base of the device run is two cuBLAS workspaces") {
  const NotebookDevice run;
  CHECK(run.base() == 2 * 8'519'680);
  CHECK(mib(static_cast<double>(run.base()), 2) == device_figure("base_MiB"));
}

TEST_CASE("notebook: the device timeline from the base, to the printed digit") {
  const NotebookDevice run;
  CHECK(run.end_of(Phase::kModel) == device_figure("after_model_MiB"));
  CHECK(run.end_of(Phase::kForward) == device_figure("after_forward_MiB"));
  CHECK(run.peak() == device_figure("peak_MiB"));
  CHECK(run.end_of(Phase::kOptimizer) == device_figure("after_optimizer_step_MiB"));
}

}  // namespace plimsoll::test
