// Random jobs: styles, odd sizes, policies, precisions, accumulation, dropout, optimizers.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::tests {

struct RandomJob {
  network::NetworkSpec spec;
  plan::Job job;
};

// A valid job, the same for the same seed.
RandomJob random_job(std::uint64_t seed);

// What distinguishes it, in one line.
std::string describe(const RandomJob& job);

}  // namespace plimsoll::tests
