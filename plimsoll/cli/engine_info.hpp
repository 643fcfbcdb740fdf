// What the engine of this build is. Two files define it: no_engine.cpp, and one that asks libtorch.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/report/doctor.hpp"

namespace plimsoll::cli {

struct EngineInfo {
  bool available = false;
  std::optional<std::string> libtorch;  // version as the library says it: "2.13.0+cpu"
  bool cuda = false;                    // CUDA kernels compiled in and a device there
  bool mpi = false;                     // ranks can be started by mpirun
  std::optional<int> threads;           // of operations, when the library says
  std::optional<report::Missing> missing;
};

EngineInfo engine_info();

}  // namespace plimsoll::cli
