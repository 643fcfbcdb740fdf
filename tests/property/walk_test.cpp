// What holds for every calculated run: 2,000 random jobs.
#include "plimsoll/plan/walk.hpp"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/property/audit.hpp"
#include "tests/property/listing.hpp"
#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

constexpr int kWalks = 2000;
// The first step makes states, the second is steady, the third must repeat it.
constexpr std::int32_t kSteps = 3;

plan::WalkOptions options() {
  plan::WalkOptions result;
  result.steps = kSteps;
  return result;
}

bool same(const timeline::PhaseFigures& a, const timeline::PhaseFigures& b) {
  return a.key == b.key && a.start == b.start && a.end == b.end && a.peak == b.peak;
}

bool same(const timeline::Peak& a, const timeline::Peak& b) {
  return a.bytes == b.bytes && a.phase == b.phase && a.operation == b.operation &&
         a.alive == b.alive;
}

plan::Ledger ledger_at(const RandomJob& random, std::int64_t batch) {
  RandomJob other = random;
  other.job.batch = batch;
  plan::WalkOptions one_step;
  one_step.steps = 1;
  one_step.keep_ledger = true;
  timeline::PeakSink sink;
  return plan::count_ledger(plan::walk(other.network(), other.job, one_step, sink).ledger);
}

}  // namespace

TEST_CASE("2,000 jobs: blocks are released once with their bytes, tags sum, nothing is left") {
  for_each_random_job(kWalks, [](const RandomJob& random) {
    Audit audit;
    const plan::WalkResult result = plan::walk(random.network(), random.job, options(), audit);
    CHECK(audit.problem() == "");
    CHECK(audit.blocks_alive() == 0);
    CHECK(audit.current() == 0);
    CHECK(result.tensors_leaked == 0);
  });
}

TEST_CASE("2,000 jobs: a phase's peak is at least its start and its end") {
  for_each_random_job(kWalks, [](const RandomJob& random) {
    timeline::PeakSink sink;
    plan::walk(random.network(), random.job, options(), sink);
    for (const timeline::PhaseFigures& f : sink.phases()) {
      CHECK(f.peak >= f.start);
      CHECK(f.peak >= f.end);
      CHECK(sink.peak(f.key.step).bytes >= f.peak);
    }
  });
}

TEST_CASE("2,000 jobs: figures without events, of the recording, and by counting are the same") {
  for_each_random_job(kWalks, [](const RandomJob& random) {
    const network::Network network = random.network();
    timeline::PeakSink sink;
    plan::walk(network, random.job, options(), sink);
    const timeline::Timeline recorded = plan::walk_timeline(network, random.job, options());
    const std::vector<timeline::PhaseFigures> figures = timeline::phase_figures(recorded);
    const std::vector<timeline::PhaseFigures> listed = listed_figures(recorded);
    REQUIRE(figures.size() == listed.size());
    REQUIRE(sink.phases().size() == listed.size());
    for (std::size_t i = 0; i < listed.size(); ++i) {
      CHECK(same(figures[i], listed[i]));
      CHECK(same(sink.phases()[i], listed[i]));
    }
    timeline::Peak highest;
    for (std::int32_t step = 0; step < kSteps; ++step) {
      const timeline::Peak peak = listed_peak(recorded, step);
      CHECK(same(timeline::find_peak(recorded, step), peak));
      CHECK(same(sink.peak(step), peak));
      if (peak.bytes > highest.bytes) highest = peak;
    }
    CHECK(same(timeline::find_peak(recorded), highest));
  });
}

TEST_CASE("2,000 jobs: the second step repeats") {
  for_each_random_job(kWalks, [](const RandomJob& random) {
    timeline::PeakSink sink;
    plan::walk(random.network(), random.job, options(), sink);
    std::vector<timeline::PhaseFigures> second;
    std::vector<timeline::PhaseFigures> third;
    for (timeline::PhaseFigures f : sink.phases()) {
      std::vector<timeline::PhaseFigures>* step = f.key.step == 1   ? &second
                                                  : f.key.step == 2 ? &third
                                                                    : nullptr;
      if (step == nullptr) continue;
      f.key.step = 0;
      step->push_back(f);
    }
    REQUIRE(second.size() == third.size());
    for (std::size_t i = 0; i < second.size(); ++i) CHECK(same(second[i], third[i]));
  });
}

TEST_CASE("2,000 jobs: from two sequences on, saved bytes are affine in the batch") {
  for_each_random_job(kWalks, [](const RandomJob& random) {
    if (random.job.loss_chunks > 1) return;  // the last chunk is what remains
    const plan::Ledger two = ledger_at(random, 2);
    const plan::Ledger three = ledger_at(random, 3);
    const plan::Ledger four = ledger_at(random, 4);
    for (const auto line : {&plan::Ledger::as_saved, &plan::Ledger::without_parameters,
                            &plan::Ledger::distinct, &plan::Ledger::distinct_hf}) {
      CHECK((four.*line).bytes - (three.*line).bytes == (three.*line).bytes - (two.*line).bytes);
      CHECK((four.*line).count == (two.*line).count);
    }
  });
}

}  // namespace plimsoll::test
