// Recording, Delayed and Faulty, on threads.
#include <functional>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

#include "plimsoll/comm/checked.hpp"
#include "plimsoll/comm/delayed.hpp"
#include "plimsoll/comm/faulty.hpp"
#include "plimsoll/comm/recording.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/comm/threads.hpp"

#include "tests/dist/on_threads.hpp"

namespace plimsoll::test {
namespace {

using comm::Communicator;
using comm::DType;
using comm::Kind;

std::exception_ptr first_of(const std::vector<std::exception_ptr>& thrown) {
  for (const auto& one : thrown) {
    if (one) return one;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("recorded traffic is what has to come from other ranks") {
  const auto world = comm::make_fake(2, 3);
  comm::Recording recording(*world);
  const auto bf16 = [](std::int64_t n) { return comm::View{nullptr, n, DType::kBFloat16}; };
  const auto fp32 = [](std::int64_t n) { return comm::View{nullptr, n, DType::kFloat32}; };
  recording.all_gather(bf16(1000), bf16(3000)).wait();
  recording.reduce_scatter(bf16(3000), fp32(1000)).wait();
  recording.all_reduce(bf16(1000), fp32(1000)).wait();  // slices of 334, 334, 332
  recording.broadcast(fp32(100), 0).wait();
  recording.broadcast(fp32(100), 2).wait();
  recording.barrier().wait();
  const comm::Traffic& traffic = recording.traffic();
  CHECK(traffic.of(Kind::kAllGather).bytes == 2 * 1000 * 2);
  CHECK(traffic.of(Kind::kReduceScatter).bytes == 2 * 1000 * 2);
  CHECK(traffic.of(Kind::kAllReduce).bytes == 2 * 332 * 2 + 668 * 4);
  CHECK(traffic.of(Kind::kBroadcast).bytes == 400);
  CHECK(traffic.of(Kind::kBroadcast).calls == 2);
  CHECK(traffic.of(Kind::kBarrier).bytes == 0);
  CHECK(traffic.bytes() == 4000 + 4000 + 4000 + 400);
  CHECK(traffic.small.calls == 0);
}

TEST_CASE("scalars and order checks are counted apart, 64 bytes each at most") {
  run_cleanly(2, [](Communicator& world) {
    comm::Recording recording(world);
    comm::Checked checked(recording);
    std::vector<double> norm(1, 1.0);
    checked.all_reduce(comm::view(std::span<const double>(norm)), comm::view(std::span(norm)))
        .wait();
    std::vector<float> full(1000);
    std::vector<float> shard(500);
    checked.reduce_scatter(comm::view(std::span<const float>(full)), comm::view(std::span(shard)))
        .wait();
    CHECK(recording.traffic().small.calls == 3);  // two order checks and the norm
    CHECK(recording.traffic().small.bytes == 2 * 64 + 8);
    CHECK(recording.traffic().bytes() == 500 * 4);
  });
}

TEST_CASE("a delay costs nothing when computation covers it, and adds up when nothing does") {
  run_cleanly(2, [](Communicator& world) {
    comm::Delayed delayed(world, comm::Milliseconds(40));
    comm::Work hidden = delayed.barrier();
    std::this_thread::sleep_for(comm::Milliseconds(60));
    hidden.wait();
    CHECK(delayed.slept() == comm::Clock::duration::zero());
    const auto begin = comm::Clock::now();
    comm::Work first = delayed.barrier();
    comm::Work second = delayed.barrier();
    first.wait();
    second.wait();
    CHECK(comm::Clock::now() - begin >= comm::Milliseconds(80));  // one link
  });
}

TEST_CASE("a fault strikes at its call and nowhere else") {
  for (const int call : {0, 3}) {
    std::vector<int> made(2);
    const auto thrown = comm::run_threads(2, [&](Communicator& world) {
      comm::Fault fault{comm::FaultKind::kThrow, world.rank() == 1 ? call : -1};
      comm::Faulty faulty(world, fault);
      for (int i = 0; i < 5; ++i) {
        faulty.barrier().wait();
        made[static_cast<std::size_t>(world.rank())] = i + 1;
      }
    });
    CHECK(made[1] == call);
    CHECK(made[0] == call);
    CHECK_THROWS_AS(std::rethrow_exception(thrown[1]), std::runtime_error);
    CHECK_THROWS_AS(std::rethrow_exception(first_of(thrown)), comm::PeerLost);
  }
}

TEST_CASE("decorators stay on after a split") {
  run_cleanly(4, [](Communicator& world) {
    comm::Recording recording(world);
    const auto half = recording.split(world.rank() / 2);
    const std::int64_t before = recording.traffic().bytes();
    std::vector<float> data(1000, 1.F);
    half->all_reduce(comm::view(std::span<const float>(data)), comm::view(std::span(data))).wait();
    CHECK(half->size() == 2);
    CHECK(data[0] == 2.F);
    CHECK(recording.traffic().bytes() - before == 500 * 4 + 500 * 4);
  });
}

}  // namespace plimsoll::test
