// What `plimsoll train` asks of the engine. Two files define run_training(): no_engine.cpp, and one
// that starts the ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/base/terminal.hpp"
#include "plimsoll/cli/command.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::cli {

enum class Schedule : std::uint8_t { kConstant, kLinear, kCosine };

struct Training {
  network::NetworkSpec spec;
  std::string model;  // formats::describe_model()
  plan::Job job;
  std::string data;     // path
  int token_bytes = 1;  // 1: text
  std::string out;      // folder
  std::string init;     // path of weights; empty: random ones
  std::int64_t steps = 1;
  double learning_rate = 0;
  Schedule schedule = Schedule::kCosine;
  std::int64_t warm_up = 0;  // steps
  double clip = 0;           // 0: none
  std::uint64_t seed = 0;
  double held_out = 0;                  // share of the tokens
  std::int64_t evaluate_every = 0;      // steps; 0: at the end alone
  std::int64_t save_every_steps = 0;    // 0: not by steps
  std::int64_t save_every_minutes = 0;  // 0: not by time
  std::int64_t keep = 2;                // checkpoints
  bool resume = false;
  std::int64_t restarts = 0;     // after a fault, from the newest checkpoint
  bool skip_not_finite = false;  // false: a step with numbers that are not finite ends the run
  std::optional<std::int64_t> memory_available;  // bytes that are free here; none: not known
  bool force = false;  // although it does not fit, and over what another run left in `out`
  std::vector<std::string> call;  // words of the call, for ranks: they are started with them
};

// Checks the data, prints the plan on stderr, and when it fits trains on job.ranks processes of this
// program. Returns in the first process and, since ranks run the same command, in each rank: there
// with what stdout is to show. Started by mpirun, this process is one of the ranks; rank 0 checks for all.
Result<Output> run_training(const Training& training, const TextStyle& style);

}  // namespace plimsoll::cli
