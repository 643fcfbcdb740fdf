// Walks one after the other in one AutogradMemory, also after a walk that ended by an exception.
#include <cstdint>
#include <stdexcept>

#include <doctest/doctest.h>

#include "plimsoll/plan/walk.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

// Records, and throws at the given allocation.
class FailingSink final : public timeline::Sink {
 public:
  explicit FailingSink(std::size_t last) : last_(last) {}

  void begin_phase(timeline::PhaseKey) override {}
  void end_phase() override {}
  void allocate(timeline::BlockId, std::int64_t, timeline::Tag, timeline::OperationId) override {
    if (++count_ == last_) throw std::runtime_error("as planned");
  }
  void release(timeline::BlockId, std::int64_t, timeline::Tag, timeline::OperationId) override {}
  void retag(timeline::BlockId, std::int64_t, timeline::Tag, timeline::Tag) override {}

 private:
  const std::size_t last_;
  std::size_t count_ = 0;
};

bool same(const timeline::Event& a, const timeline::Event& b) {
  return a.bytes == b.bytes && a.block == b.block && a.operation == b.operation &&
         a.kind == b.kind && a.tag == b.tag && a.to == b.to && a.phase == b.phase;
}

bool same(const timeline::Timeline& a, const timeline::Timeline& b) {
  if (a.events.size() != b.events.size()) return false;
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    if (!same(a.events[i], b.events[i])) return false;
  }
  return true;
}

std::size_t allocations(const timeline::Timeline& timeline) {
  std::size_t count = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == timeline::EventKind::kAllocate) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("500 jobs in one memory, after a walk that fails midway: the events of fresh memory") {
  network::AutogradMemory memory;
  Dice dice(7);
  for_each_random_job(500, [&](const RandomJob& random) {
    const network::Network net = random.network();
    plan::WalkOptions options;
    const timeline::Timeline fresh = plan::walk_timeline(net, random.job, options);

    options.memory = &memory;
    const auto last = static_cast<std::int64_t>(allocations(fresh));
    FailingSink failing(static_cast<std::size_t>(dice.between(1, last)));
    CHECK_THROWS_AS(plan::walk(net, random.job, options, failing), std::runtime_error);
    CHECK(memory.tensors.alive() == 0);
    CHECK(memory.nodes.alive() == 0);
    CHECK(memory.frames.alive() == 0);

    plan::WalkResult result;
    CHECK(same(plan::walk_timeline(net, random.job, options, &result), fresh));
    CHECK(result.tensors_leaked == 0);
  });
}

}  // namespace plimsoll::test
