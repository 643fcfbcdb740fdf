// A plan: everything plimsoll can say about one job without running it. Text and JSON are printed
// from this struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/closed_form.hpp"
#include "plimsoll/plan/cost.hpp"
#include "plimsoll/plan/fit/fit.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/plan/logits.hpp"
#include "plimsoll/plan/memory.hpp"
#include "plimsoll/plan/semantics.hpp"
#include "plimsoll/plan/traffic.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::plan {

// The four posts, in bytes per rank.
struct Posts {
  std::int64_t parameters = 0;     // P: weights, master copies included
  std::int64_t gradients = 0;      // G: alive when the optimizer steps
  std::int64_t moments = 0;        // O without counters
  std::int64_t step_counters = 0;  // O: one 4-byte tensor per parameter tensor in some optimizers
  std::int64_t loss_scaler = 0;    // O: of recipe fp16
  std::int64_t activations = 0;    // A: the ledger's `distinct`
  bool counters_on_host = false;   // then no bytes of the device
  bool by_formula = false;         // P, G and O are a recipe's formulas, not what is alive
  std::int64_t optimizer() const { return moments + step_counters + loss_scaler; }
};

// What fills the memory of a pass of inference, in bytes of one rank. With the weights of Posts the
// first three sum to the peak.
struct InferencePosts {
  std::int64_t kv_cache = 0;
  std::int64_t inputs = 0;      // token ids, rotary tables, masks
  std::int64_t transients = 0;  // most that the pass holds at once, logits among them
  std::int64_t logits = 0;      // alive when the pass ends
};

struct StepTimeline {
  std::vector<timeline::PhaseFigures> phases;
  timeline::Peak peak;
  std::string peak_operation;
};

struct Plan {
  network::NetworkSpec spec;
  Job job;
  std::string library;  // whose facts
  network::ParameterCount parameters;
  Posts posts;
  std::optional<InferencePosts> inference;  // none for training
  Ledger ledger;
  StepTimeline first;
  StepTimeline steady;
  Memory memory;                          // of the steady step
  std::optional<LogitCopies> logits;      // of the steady step; none for images and inference
  PassFlops flops;                        // of one micro-batch, or of the pass of inference
  std::int64_t rule_6nt = 0;              // 6 Psi B T; 0 for inference
  std::optional<ClosedForm> closed_form;  // none for images and inference
  std::vector<TrafficLine> traffic;       // per rank and step; none on one rank
  std::vector<std::string> advice;        // about the stage, one sentence each
  HuggingFace hugging_face;               // the same job in transformers' operations
  std::optional<Fit> fit;                 // none without a device
  // Of a training step, when the job's device has known speeds and everything learns.
  std::optional<TimeBound> time;
};

// Plans a training step, or a pass of inference: then G, O, A and the ledger are empty. Errors: what
// validate() refuses, and sizes that leave 64 bits.
Result<Plan> make_plan(const network::NetworkSpec& spec, const Job& job);

}  // namespace plimsoll::plan
