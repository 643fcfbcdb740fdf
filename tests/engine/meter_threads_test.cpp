// The meter while other threads allocate, and while operations end on other threads.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include "plimsoll/engine/library/operation_names.hpp"
#include "plimsoll/engine/meter/meter.hpp"

namespace plimsoll::engine {
namespace {

using timeline::EventKind;
using timeline::Timeline;

// Makes and drops blocks until told to stop.
class BusyThread {
 public:
  BusyThread() : thread_([this] { work(); }) {}
  ~BusyThread() {
    stop_ = true;
    thread_.join();
  }

 private:
  void work() {
    std::vector<at::Tensor> ring(16);
    for (std::size_t i = 0; !stop_; ++i) ring[i % ring.size()] = torch::empty({25});
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Releases of blocks that are neither older than the meter nor allocated in its timeline.
std::int64_t unexplained_releases(const Timeline& timeline) {
  constexpr timeline::BlockId kOlder = timeline::BlockId{1} << 31U;  // counted from 2^32 downwards
  std::set<timeline::BlockId> alive;
  std::int64_t unexplained = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == EventKind::kAllocate) alive.insert(event.block);
    if (event.kind != EventKind::kRelease || event.block >= kOlder) continue;
    if (alive.erase(event.block) == 0) ++unexplained;
  }
  return unexplained;
}

struct AsynchronousOperation {
  std::unique_ptr<at::RecordFunction> record =
      std::make_unique<at::RecordFunction>(at::RecordScope::FUNCTION);
  explicit AsynchronousOperation(const char* name) {
    record->before(name);
    record->_setAsync();
  }
};

std::string name_of_next_block() {
  Meter meter;
  const at::Tensor x = torch::empty({4});
  const Timeline timeline = meter.finish();
  return timeline.operations.at(timeline.events.at(0).operation);
}

}  // namespace

TEST_CASE("a meter that starts while other threads allocate misses no event") {
  std::int64_t unexplained = 0;
  for (int round = 0; round < 100; ++round) {
    std::unique_ptr<Meter> meter;
    {
      const BusyThread first;
      const BusyThread second;
      meter = std::make_unique<Meter>();
      std::this_thread::yield();
    }
    // Nothing allocates now: what the meter followed must be what is there.
    REQUIRE(meter->current() == total(live_bytes()));
    unexplained += unexplained_releases(meter->finish());
  }
  CHECK(unexplained == 0);
}

TEST_CASE("an operation that ends on another thread leaves both threads' names right") {
  const OperationWatch watch;
  AsynchronousOperation operation("begun_here");
  CHECK(name_of_next_block() == "begun_here");
  std::string there;
  std::thread([&] {
    AsynchronousOperation running("runs_there");
    operation.record.reset();  // ends it on this thread
    there = name_of_next_block();
  }).join();
  CHECK(there == "runs_there");
  CHECK(name_of_next_block() == "aten::empty");
}

TEST_CASE("long names are cut, deep ones left out, and the ones around them stay right") {
  const OperationWatch watch;
  {
    const AsynchronousOperation operation(std::string(200, 'n').c_str());
    CHECK(name_of_next_block() == std::string(110, 'n'));
  }
  std::vector<AsynchronousOperation> nested;
  for (int depth = 0; depth < 100; ++depth) nested.emplace_back(depth == 0 ? "first" : "deeper");
  CHECK(name_of_next_block() == "first");
  while (!nested.empty()) nested.pop_back();
  CHECK(name_of_next_block() == "aten::empty");
}

}  // namespace plimsoll::engine
