// The loss in chunks of rows is the loss, and its run is the calculated one.
#include <cmath>

#include <doctest/doctest.h>

#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/formats/inline_model.hpp"

#include "tests/differential/differ.hpp"

namespace plimsoll {
namespace {

network::NetworkSpec small_gpt() {
  return *formats::read_inline_model("minigpt:d=16,L=1,V=50,s=10,heads=2");
}

struct Trained {
  double loss = 0;
  double gradient_norm = 0;
};

// The second step of a run in fp64: the first one's update is in it.
Trained trained(std::int32_t chunks) {
  const network::NetworkSpec spec = small_gpt();
  plan::Job job;
  job.batch = 3;
  job.sequence = 10;
  job.precision = plan::Precision::kFp64;
  job.loss_chunks = chunks;
  const network::Network net = network::build_network(spec, job.build_options());
  engine::Runner runner(net, job, {});
  runner.step();
  return {runner.step(), runner.gradient_norm()};
}

}  // namespace

TEST_CASE("loss in chunks: the same loss and gradients as at once") {
  tests::prepare_library();
  const Trained whole = trained(1);
  for (std::int32_t chunks : {2, 3, 7, 30}) {
    CAPTURE(chunks);
    const Trained parts = trained(chunks);
    // Sums of 30 doubles in another order.
    CHECK(std::abs(parts.loss - whole.loss) <= 1e-13 * whole.loss);
    CHECK(std::abs(parts.gradient_norm - whole.gradient_norm) <= 1e-12 * whole.gradient_norm);
  }
}

TEST_CASE("loss in chunks: calculated = dry-run = measured, every event") {
  tests::prepare_library();
  for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16, plan::Precision::kMixed}) {
    for (std::int32_t chunks : {2, 3, 7, 30}) {
      CAPTURE(plan::name(precision));
      CAPTURE(chunks);
      plan::Job job;
      job.batch = 3;
      job.sequence = 10;
      job.precision = precision;
      job.loss_chunks = chunks;
      for (at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
        CHECK(tests::text_of(tests::calculated_against(small_gpt(), job, device)) == "equal");
      }
    }
  }
}

}  // namespace plimsoll
