#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll {

TEST_CASE("recorder: releasing what is alive never needs memory, at 1,000 moments") {
  constexpr std::int64_t kBytes = 8;
  std::mt19937 random(7);
  timeline::Recorder recorder;
  std::vector<timeline::BlockId> alive;
  timeline::BlockId next = 0;
  for (int moment = 0; moment < 1000; ++moment) {
    for (auto n = random() % 40; n > 0; --n) {
      recorder.allocate(next, kBytes, timeline::Tag::kActivations, 0);
      alive.push_back(next++);
    }
    if (random() % 4 == 0) recorder.begin_phase({});
    if (random() % 4 == 0)
      recorder.retag(0, kBytes, timeline::Tag::kBackward, timeline::Tag::kInputs);
    if (random() % 4 == 0) recorder.end_phase();
    const std::size_t room = recorder.timeline().events.capacity();
    const std::size_t kept = random() % 3 == 0 ? 0 : alive.size() / 2;
    while (alive.size() > kept) {
      recorder.release(alive.back(), kBytes, timeline::Tag::kActivations, 0);
      alive.pop_back();
    }
    REQUIRE(recorder.timeline().events.capacity() == room);
  }
}

TEST_CASE("recorder: a block older than the recording may be released") {
  timeline::Recorder recorder;
  recorder.release(0, 8, timeline::Tag::kActivations, 0);
  CHECK(recorder.timeline().events.size() == 1);
}

}  // namespace plimsoll
