// Walks of networks with layers left out: event by event those of the whole networks.
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/plan/fold/folded_walk.hpp"

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

using timeline::Event;
using timeline::EventKind;

// With blocks numbered by their allocation.
std::vector<Event> numbered(const timeline::Timeline& timeline) {
  std::vector<Event> events = timeline.events;
  std::unordered_map<timeline::BlockId, timeline::BlockId> numbers;
  for (Event& event : events) {
    if (event.kind == EventKind::kBeginPhase || event.kind == EventKind::kEndPhase) continue;
    if (event.kind == EventKind::kAllocate) {
      const auto number = static_cast<timeline::BlockId>(numbers.size() + 1);
      numbers[event.block] = number;
    }
    event.block = numbers.at(event.block);
  }
  // What is dropped after the last phase is nobody's memory any more.
  while (!events.empty() && events.back().kind != EventKind::kEndPhase) events.pop_back();
  return events;
}

bool same(const Event& a, const Event& b) {
  return a.bytes == b.bytes && a.block == b.block && a.operation == b.operation &&
         a.kind == b.kind && a.tag == b.tag && a.to == b.to && a.phase == b.phase;
}

bool same(const network::FlopCount& a, const network::FlopCount& b) {
  return a.matmul == b.matmul && a.attention_full == b.attention_full &&
         a.attention_exact == b.attention_exact && a.convolution == b.convolution;
}

// Whether it could be folded.
bool check_one(const RandomJob& random) {
  const auto folded = plan::fold::FoldedNetwork::of(random.spec, random.job);
  if (!folded) return false;
  timeline::Recorder unfolded;
  const plan::WalkOptions options;
  const auto brief = plan::fold::walk(*folded, random.job, options, unfolded);
  if (!brief) return false;
  timeline::Recorder whole;
  const auto result = plan::walk(random.network(), random.job, options, whole);
  const std::vector<Event> expected = numbered(whole.timeline());
  const std::vector<Event> seen = numbered(unfolded.timeline());
  REQUIRE(seen.size() == expected.size());
  const auto differs = std::mismatch(seen.begin(), seen.end(), expected.begin(),
                                     [](const Event& a, const Event& b) { return same(a, b); });
  CHECK_MESSAGE(differs.first == seen.end(),
                fmt::format("event {} of {}", differs.first - seen.begin(), seen.size()));
  CHECK(same(brief->flops.forward, result.flops.forward));
  CHECK(same(brief->flops.backward, result.flops.backward));
  CHECK(same(brief->flops.recompute, result.flops.recompute));
  CHECK(brief->traffic == result.traffic);
  return true;
}

}  // namespace

TEST_CASE("1,000 random jobs of many layers: folded and whole walks are one stream of events") {
  Dice dice(41);
  int folded = 0;
  int tried = 0;
  for_each_random_job(1000, [&](RandomJob random) {
    if (random.spec.family == network::Family::kCnn || !random.job.freeze.empty()) return;
    deepen(random.spec, dice);
    if (!plan::validate(random.job, random.spec)) return;
    CAPTURE(to_text(random));
    ++tried;
    folded += check_one(random) ? 1 : 0;
  });
  // The others are updated as lists with nothing that learns behind the layers: their temporaries die after
  // the last layer's.
  CAPTURE(tried);
  CHECK(folded >= tried - tried / 40);
}

}  // namespace plimsoll::test
