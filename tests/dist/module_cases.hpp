// The cases of oracle 1 on modules (module_ranks.cpp): what a sharded step depends on.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/zero.hpp"

#include "tests/dist/sharded_model.hpp"

namespace plimsoll::tests {

struct ModuleCase {
  Stage stage = Stage::kParameters;
  at::ScalarType type = at::kFloat;
  bool mixed = false;  // bf16 computation over fp32 masters
  bool checkpoint = false;
  int micro_batches = 1;
  bool reduce_each = true;
  double clip = 0;
  int prefetch = 1;
  bool reshard_root = false;
  Optimizer optimizer = Optimizer::kAdamW;
  TinyShape shape;  // with dropout
};
std::string text_of(const ModuleCase& c);

// Every pair of choices of two things occurs in one of the cases, which are `count` at least; others for
// another number of ranks.
std::vector<ModuleCase> pairwise_cases(int ranks, std::size_t count);
// Every combination of stage, precision, dropout, checkpointing, accumulation, clipping and optimizer, with
// prefetch, root and shape in turn.
std::vector<ModuleCase> all_cases();

}  // namespace plimsoll::tests
