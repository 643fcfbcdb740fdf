// Random jobs: styles, odd sizes, policies, precisions, accumulation, dropout, optimizers.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

#include "tests/differential/chooser.hpp"

namespace plimsoll::tests {

struct RandomJob {
  network::NetworkSpec spec;
  plan::Job job;
};

// A valid job, the same for the same seed.
RandomJob random_job(std::uint64_t seed);

// Choices for a run of this model, at its full length; not always valid.
plan::Job random_choices(Chooser& choose, const network::NetworkSpec& spec);

// What distinguishes it, in one line.
std::string describe(const RandomJob& job);

}  // namespace plimsoll::tests
