// What this build and this machine have, and what they lack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

struct Missing {
  std::string what;
  std::string how_to_get;
};

struct Doctor {
  std::string version;
  std::vector<std::string> model_types;          // whose steps can be planned
  std::vector<std::string> counted_model_types;  // whose parameters are known besides
  std::int64_t builtin_models = 0;

  bool engine = false;                  // compiled in
  std::optional<std::string> libtorch;  // version, when the engine is there
  bool cuda_backend = false;            // libtorch has CUDA kernels, and a device answers
  bool mpi = false;                     // ranks can be started by mpirun
  std::string known_libtorch;           // whose behaviour the byte-exact facts describe
  bool facts_apply = false;             // the two are the same version

  std::int64_t cores = 0;                        // usable by this process
  std::optional<std::int64_t> memory_total;      // bytes; none: the system does not say
  std::optional<std::int64_t> memory_available;  // bytes
  std::string threads;                           // how many threads operations use, and who says so
  std::vector<Missing> missing;
};

std::string doctor_text(const Doctor& doctor, const TextStyle& style);
Json doctor_json(const Doctor& doctor);  // schema plimsoll.doctor/1

}  // namespace plimsoll::report
