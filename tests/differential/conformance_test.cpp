// Every primitive alone: a network of one operation, for several layouts of its operand and every
// choice of which parameters learn.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/differential/differ.hpp"
#include "tests/differential/one_operation.hpp"

namespace plimsoll {
namespace {

using network::DType;
using network::Network;
using network::OpKind;

std::vector<OpKind> all_kinds() {
  std::vector<OpKind> kinds;
  for (std::size_t i = 0; i < static_cast<std::size_t>(OpKind::kCount); ++i) {
    kinds.push_back(static_cast<OpKind>(i));
  }
  return kinds;
}

bool has(const Network& net, OpKind kind) {
  return std::any_of(net.operations.begin(), net.operations.end(),
                     [&](const network::Operation& op) { return op.kind == kind; });
}

std::string compare(const Network& net, DType dtype, at::Device device) {
  plan::Job job;
  job.precision = dtype == DType::kFloat32    ? plan::Precision::kFp32
                  : dtype == DType::kBFloat16 ? plan::Precision::kBf16
                                              : plan::Precision::kFp64;
  return tests::text_of(tests::calculated_against(net, job, device));
}

// Parameter i learns when bit i of `learning` is set.
void freeze_others(Network& net, unsigned learning) {
  for (std::size_t i = 0; i < net.parameters.size(); ++i) {
    net.parameters[i].trainable = (learning >> i & 1U) != 0;
  }
}

void check_every_choice(tests::OneOperation& one, DType dtype) {
  CAPTURE(one.variant);
  const unsigned choices = 1U << one.network.parameters.size();
  for (unsigned learning = 1; learning < choices; ++learning) {
    CAPTURE(learning);
    freeze_others(one.network, learning);
    CHECK(compare(one.network, dtype, at::kCPU) == "equal");
    CHECK(compare(one.network, dtype, at::kMeta) == "equal");
  }
}

}  // namespace

TEST_CASE("conformance: every kind of operation has a network that contains it") {
  for (OpKind kind : all_kinds()) {
    CAPTURE(network::name(kind));
    if (kind == OpKind::kCacheRows) continue;  // no gradient passes a cache: inference_test has it
    const auto networks = tests::networks_of(kind, tests::Layout::kContiguous, DType::kFloat32);
    CHECK_FALSE(networks.empty());
    for (const tests::OneOperation& one : networks) CHECK(has(one.network, kind));
  }
}

TEST_CASE("conformance: every operation, layout, dtype, and choice of what learns") {
  tests::prepare_library();
  for (OpKind kind : all_kinds()) {
    CAPTURE(network::name(kind));
    for (tests::Layout layout : tests::kLayouts) {
      CAPTURE(tests::name(layout));
      for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64}) {
        CAPTURE(network::name(dtype));
        for (tests::OneOperation& one : tests::networks_of(kind, layout, dtype)) {
          check_every_choice(one, dtype);
        }
      }
    }
  }
}

}  // namespace plimsoll
