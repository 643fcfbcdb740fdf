#include "plimsoll/comm/mpirun.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace plimsoll::comm {
namespace {

std::optional<int> number(const char* variable) {
  const char* text = variable == nullptr ? nullptr : std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

struct Launcher {
  const char* rank;
  const char* size;
  const char* host_size;
};

// MPICH and relatives (Slurm's PMI as well), Open MPI, other users of PMIx, Slurm's own start of tasks.
// Slurm's come last: mpirun inside of an allocation sets its own.
constexpr Launcher kLaunchers[] = {
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", nullptr},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr},
};

}  // namespace

std::optional<MpirunRank> mpirun_rank() {
  for (const Launcher& launcher : kLaunchers) {
    if (!number(launcher.rank)) continue;
    const auto size = number(launcher.size);
    // A batch script is task 0 of no step.
    const bool no_step = std::string_view(launcher.rank) == "SLURM_PROCID" && !size;
    if (no_step || size == 1) return std::nullopt;
    return MpirunRank{size, number(launcher.host_size)};
  }
  return std::nullopt;
}

}  // namespace plimsoll::comm
