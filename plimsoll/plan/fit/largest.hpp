// The largest value of one size of a job with which it still fits.
//
// Requested bytes grow with the batch as A0 + k B from B = 2 on, so two walks predict the largest
// batch, and two more show that B fits and B + 1 does not. What allocators round up, other sizes, and
// batches whose kernels change take a few walks more: the same search ends in bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "plimsoll/plan/closed_form.hpp"
#include "plimsoll/plan/fit/need.hpp"

namespace plimsoll::plan {

using NeedOf = std::function<std::optional<Need>(std::int64_t)>;

// A value in 1 .. most that fits while the next one does not (or there is none); none when 1 does not
// fit. `need_of` returns none for what does not exist, which does not fit. Allocators make laws that
// go up and down a little, with more than one such value: the one found is at least `asked` when that
// fits, and below it when it does not.
std::optional<std::int64_t> largest_that_fits(const NeedOf& need_of, std::int64_t most,
                                              std::int64_t asked = 1);

// --- of the batch, all else as in `job`
std::optional<std::int64_t> largest_batch(NeedSearch& search, const Job& job);

// On paper: the sum of the posts within the same bytes. With A0 = e Psi, and as the memory notebook
// has it, without. None for image networks, and when not even one row fits.
struct LargestByClosedForm {
  std::optional<std::int64_t> with_A0;
  std::optional<std::int64_t> without_A0;
};
LargestByClosedForm closed_form_largest(const network::NetworkSpec& spec, const Job& job,
                                        const network::ParameterCount& parameters);

// --- of the sequence: up to the positions of the model. None for image networks too.
std::optional<std::int64_t> longest_sequence(NeedSearch& search, const Job& job);

// --- of the ranks: the fewest with which `job` fits at its stage, or at stage 3 when it divides
// nothing; each rank keeps its batch. None when no number of ranks helps.
struct FewestRanks {
  std::optional<std::int32_t> ranks;
  shard::Stage stage = shard::Stage::kParameters;  // at which they were counted
};
FewestRanks fewest_ranks(NeedSearch& search, const Job& job);

}  // namespace plimsoll::plan
