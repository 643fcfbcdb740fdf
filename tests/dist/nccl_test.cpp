// The backend `nccl` where it cannot run: without a CUDA libtorch, without torchrun, without a device.
#include "plimsoll/engine/nccl/nccl.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/dist/run_ranks.hpp"

namespace plimsoll::test {
namespace {

Outcome run_nccl(const std::vector<std::string>& environment) {
  return Started({PLIMSOLL_NCCL_RANKS}, environment).finish(std::chrono::seconds(60));
}

const std::vector<std::string> kTorchrun = {"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=900000",
                                            "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"};

}  // namespace

TEST_CASE("nccl: a build without it says what is missing" *
          doctest::skip(engine::nccl_is_available())) {
  const Outcome outcome = run_nccl(kTorchrun);
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("[nccl] this build has no NCCL") != std::string::npos);
  CHECK(outcome.err.find("Hint: name a CUDA wheel's folder") != std::string::npos);
}

TEST_CASE("nccl: ranks come from torchrun, one for each device" *
          doctest::skip(!engine::nccl_is_available())) {
  const Outcome plain = run_nccl({});
  CHECK(plain.code == 2);
  CHECK(plain.err.find("[nccl] WORLD_SIZE is not set") != std::string::npos);
  std::vector<std::string> environment = kTorchrun;
  environment[1] = "WORLD_SIZE=1000000";
  const Outcome outcome = run_nccl(environment);
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("on this host, expected more than LOCAL_RANK=900000") !=
        std::string::npos);
}

}  // namespace plimsoll::test
