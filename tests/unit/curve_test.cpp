// The curve of a step: what thinning keeps.
#include "plimsoll/timeline/curve.hpp"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/timeline/timeline.hpp"

#include "tests/property/dice.hpp"

namespace plimsoll::timeline {
namespace {

struct Alive {
  BlockId block;
  std::int64_t bytes;
  Tag tag;
};

// A random run of two steps; something happens between phases too.
Timeline random_run(std::uint64_t seed, std::int64_t events_per_phase) {
  test::Dice dice(seed);
  Recorder recorder;
  std::vector<Alive> alive;
  BlockId next = 0;
  const auto some_event = [&] {
    const std::int64_t kind = dice.between(0, 4);
    if (alive.empty() || kind < 2) {
      const Alive block{next++, dice.between(1, 1000), static_cast<Tag>(dice.between(0, 3))};
      const auto operation = static_cast<OperationId>(dice.between(1, 9));
      recorder.allocate(block.block, block.bytes, block.tag, operation);
      alive.push_back(block);
      return;
    }
    const auto chosen = alive.begin() + dice.between(0, std::ssize(alive) - 1);
    if (kind == 2) {
      const Tag to = static_cast<Tag>(dice.between(0, 3));
      recorder.retag(chosen->block, chosen->bytes, chosen->tag, to);
      chosen->tag = to;
    } else {
      recorder.release(chosen->block, chosen->bytes, chosen->tag, 3);
      alive.erase(chosen);
    }
  };
  for (std::int32_t step = 0; step < 2; ++step) {
    for (const Phase phase : {Phase::kForward, Phase::kLoss, Phase::kBackward}) {
      recorder.begin_phase({phase, step, 0});
      for (std::int64_t i = dice.between(0, events_per_phase); i > 0; --i) some_event();
      recorder.end_phase();
      some_event();
    }
  }
  return recorder.timeline();
}

Curve curve_of(const Timeline& run, std::int64_t width, const std::vector<PhaseKey>& shown) {
  CurveSink sink(shown, width);
  replay(run, sink);
  return sink.curve();
}

const std::vector<PhaseKey> kSecondStep = {
    {Phase::kForward, 1, 0}, {Phase::kLoss, 1, 0}, {Phase::kBackward, 1, 0}};

TEST_CASE("a thinned curve has the figures of phases and the peak of the whole stream") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Timeline run = random_run(seed, 200);
    const std::vector<PhaseFigures> all = phase_figures(run);
    const Peak peak = find_peak(run, 1);
    for (const std::int64_t width : {1, 2, 7, 50, 100000}) {
      CAPTURE(width);
      const Curve curve = curve_of(run, width, kSecondStep);
      REQUIRE(curve.phases.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) {
        const PhaseFigures& figures = all[3 + i];
        CHECK(curve.phases[i].key == figures.key);
        std::vector<const Instant*> points;
        for (const Instant& point : curve.points) {
          if (point.phase == i) points.push_back(&point);
        }
        REQUIRE_FALSE(points.empty());
        CHECK(points.front()->event == curve.phases[i].first);
        CHECK(points.back()->event == curve.phases[i].last);
        CHECK(points.front()->bytes == figures.start);
        CHECK(points.back()->bytes == figures.end);
        std::int64_t highest = 0;
        for (const Instant* point : points) highest = std::max(highest, point->bytes);
        CHECK(highest == figures.peak);
      }
      const Instant& top = curve.points[curve.peak];
      CHECK(top.bytes == peak.bytes);
      CHECK(top.alive == peak.alive);
      CHECK(top.operation == peak.operation);
    }
  }
}

TEST_CASE("points are instants of the whole curve, in order, their tags sum to their bytes") {
  const Timeline run = random_run(7, 500);
  const Curve whole = curve_of(run, 1, kSecondStep);
  CHECK(static_cast<std::int64_t>(whole.points.size()) == whole.events);
  const Curve thin = curve_of(run, 20, kSecondStep);
  CHECK(thin.events == whole.events);
  CHECK(thin.points.size() < whole.points.size() / 5);
  std::int64_t before = -1;
  for (const Instant& point : thin.points) {
    CHECK(point.event > before);
    before = point.event;
    CHECK(point.alive == whole.points[static_cast<std::size_t>(point.event)].alive);
    std::int64_t sum = 0;
    for (const std::int64_t bytes : point.alive) sum += bytes;
    CHECK(sum == point.bytes);
  }
}

TEST_CASE("phases that are not shown move no event, but their bytes stay") {
  const Timeline run = random_run(3, 100);
  const Curve both = curve_of(run, 1, kSecondStep);
  const Curve alone = curve_of(run, 1, {kSecondStep[2]});
  REQUIRE(alone.phases.size() == 1);
  CHECK(alone.phases[0].first == 0);
  CHECK(alone.events == both.events - both.phases[2].first);
  CHECK(alone.points[0].alive == both.points[static_cast<std::size_t>(both.phases[2].first)].alive);
}

}  // namespace
}  // namespace plimsoll::timeline
