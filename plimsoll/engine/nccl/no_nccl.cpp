// The backend `nccl` of a build without it.
#include <cstdio>

#include "plimsoll/base/error.hpp"
#include "plimsoll/engine/nccl/nccl.hpp"

namespace plimsoll::engine {

bool nccl_is_available() { return false; }

int launch_nccl(const std::function<int(comm::Communicator&)>&, const NcclOptions&) {
  std::fputs(
      "[nccl] this build has no NCCL: its libtorch has no CUDA backend, expected one that has. "
      "Hint: "
      "name a CUDA wheel's folder with -DPLIMSOLL_LIBTORCH=/path/to/torch and configure again; "
      "--ranks R needs neither on one host\n",
      stderr);
  return static_cast<int>(ExitCode::kEnvironment);
}

}  // namespace plimsoll::engine
