// What can be changed about a job, one option or two that belong together, from mild to strong.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/fit/changes.hpp"

namespace plimsoll::plan {

struct Level {
  std::vector<Setting> settings;
  std::function<void(Job&)> apply;
};

struct Move {
  std::string what;  // "checkpointing"
  ChangeCost cost = ChangeCost::kSameStep;
  std::vector<Level> levels;  // at least one; later ones save more, as a rule
};

// Every way of this job; an option that is at its strongest already has no move. Levels that
// plan::validate refuses may be among them.
std::vector<Move> moves_of(const network::NetworkSpec& spec, const Job& job);

}  // namespace plimsoll::plan
