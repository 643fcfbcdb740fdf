#include "plimsoll/comm/mpi/mpi.hpp"

#include <cstdio>
#include <memory>
#include <mpi.h>
#include <stdexcept>

#include <fmt/format.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/mpi/group.hpp"
#include "plimsoll/comm/mpi/world.hpp"
#include "plimsoll/comm/mpirun.hpp"
#include "plimsoll/comm/torchrun.hpp"

namespace plimsoll::comm {
namespace {

// What `body` returns; its exceptions are told to all and become an exit code. A rank that is through
// waits for the others, as long as for any collective.
int run_body(Communicator& group, const std::function<int(Communicator&)>& body) {
  try {
    const int code = body(group);
    if (code == 0) group.barrier({"the end"}).wait();
    return code;
  } catch (const InternalError& error) {
    group.abort(error.what());
    return static_cast<int>(ExitCode::kInternal);
  } catch (const std::exception& error) {
    group.abort(error.what());
    return static_cast<int>(ExitCode::kEnvironment);
  }
}

// A process that the launcher counts as one of several, and MPI as the only one.
bool is_cut_off(const MpiWorld& world) {
  const auto launched = mpirun_rank();
  if (!launched || launched->size.value_or(world.size()) == world.size()) return false;
  std::fputs(
      fmt::format("[mpi] ranks={} in MPI, expected {} as the launcher says. Hint: its mpirun "
                  "must belong to the MPI of this build (for Slurm: srun --mpi=pmi2)\n",
                  world.size(), *launched->size)
          .c_str(),
      stderr);
  return true;
}

int run_rank(const std::function<int(Communicator&)>& body, const MpiOptions& options) {
  MpiWorld world(options.grace);
  if (is_cut_off(world)) return static_cast<int>(ExitCode::kEnvironment);
  const auto group = make_mpi_group(MPI_COMM_WORLD, world, options.timeout);
  const int code = run_body(*group, body);
  world.end(code);
  return code;
}

}  // namespace

bool mpi_is_available() { return true; }

int launch_mpi(int argc, char** argv, const std::function<int(Communicator&)>& body,
               const MpiOptions& options) {
  if (started_by_torchrun() && !started_by_mpi())
    return refuse_torchrun("start the program with mpirun -n R");
  int level = 0;
  require_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  const int code = run_rank(body, options);
  MPI_Finalize();
  return code;
}

}  // namespace plimsoll::comm
