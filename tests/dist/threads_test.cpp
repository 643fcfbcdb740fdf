// The backends of one process, and what threads alone can show.
#include "plimsoll/comm/threads.hpp"

#include <atomic>
#include <functional>
#include <numeric>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/checked.hpp"
#include "plimsoll/comm/faulty.hpp"
#include "plimsoll/comm/self.hpp"

#include "tests/dist/conformance.hpp"
#include "tests/dist/on_threads.hpp"

namespace plimsoll::test {
namespace {

using comm::Communicator;

template <class Error>
bool is(const std::exception_ptr& thrown) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const Error&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

comm::ConstView numbers(const std::vector<float>& of) { return comm::view(std::span(of)); }
comm::View numbers(std::vector<float>& of) { return comm::view(std::span(of)); }

comm::ThreadsOptions deadline_of(int milliseconds) {
  comm::ThreadsOptions options;
  options.timeout = comm::Milliseconds(milliseconds);
  return options;
}

}  // namespace

TEST_CASE("threads: conformance at 1, 2, 3, 4 and 8 ranks, with random pauses") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    ConformanceOptions options;
    options.large_bytes = 1 << 20;
    options.random_pauses = true;
    const auto thrown =
        comm::run_threads(ranks, [&](Communicator& world) { run_conformance(world, options); });
    for (const auto& one : thrown) CHECK(message_of(one) == "");
  }
}

TEST_CASE("self: conformance") {
  const auto world = comm::make_self();
  CHECK_NOTHROW(run_conformance(*world));
}

TEST_CASE("fake: any rank of any world, with and without memory") {
  const auto world = comm::make_fake(5, 7);
  CHECK(world->rank() == 5);
  CHECK(world->size() == 7);
  // Full size without memory.
  const std::int64_t huge = std::int64_t{1} << 40;
  world
      ->all_gather({nullptr, huge, comm::DType::kBFloat16},
                   {nullptr, 7 * huge, comm::DType::kBFloat16})
      .wait();
  world
      ->reduce_scatter({nullptr, 7 * huge, comm::DType::kBFloat16},
                       {nullptr, huge, comm::DType::kFloat32})
      .wait();
  std::vector<float> input(14);
  std::iota(input.begin(), input.end(), 0.F);
  std::vector<float> output(2);
  world->reduce_scatter(numbers(std::as_const(input)), numbers(output)).wait();
  CHECK(output[0] == 70.F);  // 7 ranks with its own piece 5: 10, 11
  CHECK(output[1] == 77.F);
  CHECK_THROWS_AS(
      world->all_gather({nullptr, 3, comm::DType::kFloat32}, {nullptr, 20, comm::DType::kFloat32})
          .wait(),
      InternalError);
}

TEST_CASE("what no backend may be asked for is refused before anything is sent") {
  for (const int ranks : {1, 2}) {
    run_cleanly(ranks, [&](Communicator& world) {
      std::vector<float> some(8);
      std::vector<float> none;
      const auto bytes = comm::View{some.data(), 8, comm::DType::kUInt8};
      CHECK_THROWS_AS(world.all_reduce(numbers(std::as_const(none)), numbers(none)).wait(),
                      InternalError);
      CHECK_THROWS_AS(world.all_reduce(bytes, bytes).wait(), InternalError);
      CHECK_THROWS_AS(world.broadcast(numbers(some), ranks).wait(), InternalError);
      CHECK_THROWS_AS(world
                          .reduce_scatter({some.data(), 4 * ranks, comm::DType::kBFloat16},
                                          {some.data(), 4, comm::DType::kBFloat16})
                          .wait(),
                      InternalError);
    });
  }
}

TEST_CASE("threads: an exception of one rank ends all, with its message") {
  const auto thrown = comm::run_threads(3, [](Communicator& world) {
    if (world.rank() == 1) throw std::runtime_error("found NaN");
    world.barrier({"layers.3", 12}).wait();
  });
  CHECK(is<comm::PeerLost>(thrown[0]));
  CHECK(message_of(thrown[0]).find("rank 1: found NaN") != std::string::npos);
  CHECK(message_of(thrown[1]) == "found NaN");
  CHECK(is<comm::PeerLost>(thrown[2]));
}

TEST_CASE("threads: a rank that leaves early is named by the operation that misses it") {
  const auto thrown = comm::run_threads(3, [](Communicator& world) {
    if (world.rank() != 2) world.barrier({"layers.3", 12}).wait();
  });
  CHECK(is<comm::PeerLost>(thrown[0]));
  CHECK(message_of(thrown[0]).find("rank 2: ended with exit code 0 without this operation; "
                                   "operation=barrier, unit=layers.3, step=12") !=
        std::string::npos);
  CHECK(is<comm::PeerLost>(thrown[1]));
  CHECK(!thrown[2]);
}

TEST_CASE("threads: a late rank is a Timeout that names all missing ones") {
  std::atomic<bool> too_late = false;
  const auto thrown = comm::run_threads(
      4,
      [&](Communicator& world) {
        while (world.rank() % 2 == 1 && !too_late) {
          std::this_thread::sleep_for(comm::Milliseconds(1));
        }
        std::vector<float> input(3);
        std::vector<float> output(12);
        try {
          world.all_gather(numbers(std::as_const(input)), numbers(output), {"state", 3}).wait();
        } catch (const comm::Timeout&) {
          too_late = true;
          throw;
        }
      },
      deadline_of(200));
  for (const auto& one : thrown) CHECK(is<comm::Timeout>(one));
  CHECK(message_of(thrown[0]).find("did not arrive within 0.2 s (missing: ranks 1, 3)") !=
        std::string::npos);
  CHECK(message_of(thrown[0]).find("operation=all_gather, unit=state, step=3") !=
        std::string::npos);
}

TEST_CASE("threads: two equal layers in another order are a Mismatch naming both") {
  for (const bool checked : {false, true}) {
    const auto thrown = comm::run_threads(2, [&](Communicator& world) {
      comm::Checked checking(world);
      Communicator& group = checked ? static_cast<Communicator&>(checking) : world;
      std::vector<float> full(8);
      std::vector<float> shard(4);
      const bool swapped = group.rank() == 1;
      for (const char* unit :
           {swapped ? "layers.2" : "layers.1", swapped ? "layers.1" : "layers.2"}) {
        group.reduce_scatter(numbers(std::as_const(full)), numbers(shard), {unit, 0}).wait();
      }
    });
    for (const auto& one : thrown) {
      CHECK(is<comm::Mismatch>(one));
      CHECK(message_of(one).find("unit=layers.1 (8 fp32)") != std::string::npos);
      CHECK(message_of(one).find("unit=layers.2 (8 fp32)") != std::string::npos);
    }
  }
}

TEST_CASE("threads: a group of one inside a larger one is refused on every rank, by name") {
  const auto thrown = comm::run_threads(3, [](Communicator& world) {
    const auto group = world.split(world.rank() == 2 ? 7 : 0, {"replicas"});
  });
  for (const auto& one : thrown) {
    CHECK(is<comm::Mismatch>(one));
    CHECK(
        message_of(one).find("rank 2: alone in a group of size 1 (colour 7) inside a group of 3") !=
        std::string::npos);
  }
}

TEST_CASE("threads: a collective that nobody waits for ends the world") {
  const auto thrown = comm::run_threads(2, [](Communicator& world) {
    if (world.rank() == 0) {
      const comm::Work dropped = world.barrier({"forgotten"});
    } else {
      world.barrier({"forgotten"}).wait();
      world.barrier({"next"}).wait();
    }
  });
  CHECK(message_of(thrown[1]).find("rank 0: dropped a collective without waiting for it") !=
        std::string::npos);
}

TEST_CASE("threads: after a failure every call throws the same cause") {
  run_cleanly(2, [](Communicator& world) {
    world.abort("out of memory");
    for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(world.barrier().wait(), comm::PeerLost);
  });
}

TEST_CASE("threads: released buffers are used again") {
  run_cleanly(2, [](Communicator& world) {
    const std::byte* first = world.allocate(1 << 20).data();
    for (int i = 0; i < 5000; ++i) {  // 5 GB in all, of an arena of 1 GB
      const comm::Buffer one = world.allocate(1 << 20);
      CHECK(one.data() == first);
    }
    const comm::Buffer a = world.allocate(100);
    const comm::Buffer b = world.allocate(100);
    CHECK(a.data() + 128 == b.data());
    CHECK_THROWS_AS(world.allocate(std::int64_t{2} << 30), std::bad_alloc);
  });
}

}  // namespace plimsoll::test
