// The training loop of one rank.
//
// Every rank has a trainer, and all of them are given the same; what is reported is of the whole world
// and the same on all ranks, times apart.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/data/rows.hpp"
#include "plimsoll/engine/data/token_file.hpp"
#include "plimsoll/engine/train/failure.hpp"
#include "plimsoll/engine/train/learning_rate.hpp"
#include "plimsoll/engine/train/not_finite.hpp"
#include "plimsoll/engine/train/saver.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::engine {

struct TrainingOptions {
  std::string model;                // as checkpoints keep it: formats::describe_model()
  LearningRate learning_rate;       // its `steps` are those of the run
  double clip = 0;                  // largest norm of the mean gradient; 0: no clipping
  std::uint64_t seed = 0;           // of parameters, rows and dropout
  std::string init;                 // weights of transformers to begin with; empty: random ones
  double held_out = 0;              // share of the tokens; 0: no evaluation
  std::int64_t evaluate_every = 0;  // steps; 0: after the last one alone
  OnNotFinite not_finite = OnNotFinite::kStop;
  SaveOptions save;
};

struct StepMetrics {
  std::int64_t step = 0;     // from 1
  double loss = 0;           // mean over the step's rows; added up in rank order
  double gradient_norm = 0;  // of the mean gradient, before clipping
  double learning_rate = 0;
  double tokens_per_second = 0;  // of all ranks together, this step alone
  std::int64_t peak_bytes =
      0;                 // highest of this step, of the rank that has most; see engine::Meter
  bool skipped = false;  // the gradient was not finite: nothing was updated
};

struct Evaluation {
  std::int64_t step = 0;  // after which step; 0: before the first
  double loss = 0;        // mean over the rows
  std::int64_t rows = 0;
};

// Hears what happened, on every rank. What it throws ends the run.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void stepped(const StepMetrics& metrics) = 0;
  virtual void evaluated(const Evaluation& evaluation) = 0;
  // The run goes on after this step of an earlier one (0: it begins anew), before its first step.
  virtual void resumed(std::int64_t after_step) = 0;
  // A line for the user: what resuming found, checkpoints, signals.
  virtual void told(const std::string& line) = 0;
};

struct TrainingEnd {
  std::int64_t step = 0;  // after which it ended
  bool stopped = false;   // by a signal, before the last one
};

// What evaluation uses: whole batches of all ranks, from the start of the held-out part; rows that do
// not fill one more are left out.
std::int64_t evaluated_rows(const Split& split, const plan::Job& job);

// Whether options.init holds weights of this model (checkpoint/pretrained.hpp). Reads what
// PretrainedWeights::open() reads.
Result<void> check_init(const network::NetworkSpec& spec, const plan::Job& job,
                        const TrainingOptions& options);

// Whether this job can be trained on this file: models of images and of masked tokens, semantics whose
// targets are not inputs, files too short for a row (or an evaluation). Does not read the file.
Result<void> check_training(const network::NetworkSpec& spec, const plan::Job& job,
                            const TrainingOptions& options, const TokenFile& file);

// Runs all steps, or those that a resumed run still lacks; a run that begins anew reads options.init
// first. Collective. Evaluates, when there is a held-out part, every so many steps and after the last
// one; dropout is off then and nothing is kept for backward.
// SIGTERM or SIGINT on any rank end it after the step, with a checkpoint; there is one after the last step
// as well. Saves in the background with job.snapshot. Throws TrainingFailed, comm::CommError and what
// reading and writing throws. Precondition: check_training(), check_init(), tokens within the vocabulary,
// optimizer_impl plimsoll, backend cpu, world.size() = job.ranks.
TrainingEnd train(const network::NetworkSpec& spec, const plan::Job& job,
                  const TrainingOptions& options, const TokenFile& file, comm::Communicator& world,
                  TrainingObserver& observer);

}  // namespace plimsoll::engine
