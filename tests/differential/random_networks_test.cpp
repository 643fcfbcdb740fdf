// 2,000 random networks of single operations, calculated against measured and dry-run, event
// by event.
#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/differential/differ.hpp"
#include "tests/differential/random_network.hpp"
#include "tests/engine/known_library.hpp"

namespace plimsoll {
namespace {

std::string run(std::uint64_t seed, network::DType dtype, at::Device device) {
  tests::RandomNetworkOptions options;
  options.dtype = dtype;
  options.operations = 1 + seed % 17;
  const network::Network net = tests::random_network(seed, options);
  plan::Job job;
  job.optimizer_impl =
      seed % 3 == 0 ? plan::OptimizerImpl::kTorchCpp : plan::OptimizerImpl::kPlimsoll;
  job.accumulate = seed % 5 == 0 ? 2 : 1;
  job.precision = dtype == network::DType::kFloat32    ? plan::Precision::kFp32
                  : dtype == network::DType::kBFloat16 ? plan::Precision::kBf16
                                                       : plan::Precision::kFp64;
  return tests::text_of(tests::calculated_against(net, job, device));
}

}  // namespace

TEST_CASE("2,000 random networks agree with libtorch, measured and dry, event by event" *
          tests::on_known_libtorch()) {
  tests::prepare_library();
  const char* only = std::getenv("PLIMSOLL_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 0;
  const std::uint64_t last = only != nullptr ? first + 1 : 2000;
  constexpr std::array kDtypes = {network::DType::kFloat32, network::DType::kBFloat16,
                                  network::DType::kFloat32, network::DType::kFloat64};
  for (std::uint64_t seed = first; seed < last; ++seed) {
    CAPTURE(seed);
    CHECK(run(seed, kDtypes[seed % kDtypes.size()], at::kCPU) == "equal");
    CHECK(run(seed, kDtypes[seed % kDtypes.size()], at::kMeta) == "equal");
  }
}

}  // namespace plimsoll
