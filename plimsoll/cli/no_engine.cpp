// What builds without libtorch say of the engine.
#include "plimsoll/cli/engine_info.hpp"
#include "plimsoll/cli/training.hpp"

namespace plimsoll::cli {

EngineInfo engine_info() {
  EngineInfo info;
  info.missing =
      report::Missing{"measure: the engine needs libtorch, and this build was made without it",
                      "`./run plimsoll measure ...` installs libtorch and builds it; by hand: "
                      "cmake --preset ci with "
                      "PLIMSOLL_LIBTORCH=/path/to/torch"};
  return info;
}

Result<Output> run_training(const Training&, const TextStyle&) {
  return fail("train", "the engine is not in this build, which plans only",
              "`./run plimsoll train ...` installs libtorch and builds it; by hand: cmake --preset "
              "ci with PLIMSOLL_LIBTORCH=/path/to/torch",
              ExitCode::kEnvironment);
}

}  // namespace plimsoll::cli
