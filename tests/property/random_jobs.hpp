// Small random models and jobs, the same on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/network/families/families.hpp"
#include "plimsoll/plan/job.hpp"

#include "tests/property/dice.hpp"

namespace plimsoll::test {

struct RandomJob {
  network::NetworkSpec spec;
  plan::Job job;

  network::Network network() const { return network::build_network(spec, job.build_options()); }
};

// All fields that decide a run, for messages.
std::string to_text(const RandomJob& random);

// Where a job can be run, beside being planned.
enum class RunsOn { kPlanOnly, kCpu };

// A valid job, the same for the same dice. kCpu: one that this engine runs at one thread.
RandomJob random_job(Dice& dice, RunsOn runs_on);

// A valid spec of any family, with odd sizes and sizes of 1.
network::NetworkSpec random_spec(Dice& dice);

// Many layers, so that a search leaves some out; where they differ, in a pattern of 1 to 3.
void deepen(network::NetworkSpec& spec, Dice& dice);

// How many of `count` random cases a build runs: all of them, a tenth with a sanitizer, which makes each
// ten times slower and looks for faults that few cases show.
constexpr int cases(int count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (count + 9) / 10;
#else
  return count;
#endif
}

// Calls `check` with cases(count) valid jobs of all families, precisions, policies, optimizers, backends
// and semantics; each is captured for doctest's messages.
void for_each_random_job(int count, const std::function<void(const RandomJob&)>& check);

}  // namespace plimsoll::test
