#include "plimsoll/cli/engine_info.hpp"

#include "plimsoll/comm/mpi/mpi.hpp"
#include "plimsoll/engine/library/version.hpp"
#include "plimsoll/engine/torch.hpp"

namespace plimsoll::cli {

EngineInfo engine_info() {
  EngineInfo info;
  info.available = true;
  info.libtorch = engine::libtorch_version();
  info.mpi = comm::mpi_is_available();
  info.cuda = torch::cuda::is_available();
  info.threads = at::get_num_threads();
  return info;
}

}  // namespace plimsoll::cli
