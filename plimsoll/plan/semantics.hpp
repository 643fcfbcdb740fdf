// The same job in transformers' operations, which is what most people run: beside a plan of plimsoll's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

struct SemanticsFigures {
  std::int64_t peak = 0;         // requested bytes of the steady step
  std::int64_t activations = 0;  // A, the ledger's `distinct`, in bytes
  std::int64_t flops = 0;        // of one micro-batch, all passes, attention in full
};

// `figures` of semantics hf, or the reason why there are none.
struct HuggingFace {
  std::optional<SemanticsFigures> figures;
  std::string reason;
};

// One walk of one step. `job` has passed plan::validate.
HuggingFace hugging_face_of(const network::NetworkSpec& spec, const Job& job);

}  // namespace plimsoll::plan
