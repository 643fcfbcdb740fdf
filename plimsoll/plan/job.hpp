// Job: what is run, apart from the model. Every field is an option of the command line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/hardware/device.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/shard/memory.hpp"
#include "plimsoll/shard/schedule.hpp"

namespace plimsoll::plan {

using network::AttentionKernel;
using network::Backend;
using network::Checkpoint;
using network::DType;
using network::Mode;
using network::Semantics;

// Recipes by name, so that nobody means different things. Bytes per parameter with AdamW:
enum class Precision : std::uint8_t {
  kFp64,      // 8 + 8 + 16
  kFp32,      // 4 + 4 + 8
  kBf16,      // 2 + 2 + 4: everything in bf16
  kFp16,      // 2 + 2 + 4: everything in fp16 but the loss, with a loss scaler's state
  kAutocast,  // 4 + 4 + 8, bf16 copies of weights and operands around matrix products
  kMixed,  // fp32 masters 4 + bf16 copy 2 + bf16 gradient 2 + 8; accumulators fp32 when accumulating
           // (on one rank; several: see shard/memory.hpp)
  kZeroPaper,  // 2 + 2 + 12: formulas of the ZeRO paper, see model_states.hpp
  kMegatron,   // 2 + 4 + 12: formulas of Megatron-LM
};
std::string_view name(Precision precision);
// Recipes that are formulas of P, G and O alone: everything else of their plans is that of kMixed.
bool is_formula(Precision precision);

// Bytes that torch.amp.GradScaler keeps on the device between steps: _scale and _growth_tracker, 4
// bytes each (source: torch/amp/grad_scaler.py).
inline constexpr std::int64_t kLossScalerBytes = 8;

enum class Optimizer : std::uint8_t {
  kAdamW,
  kSgd,
  kSgdMomentum,
  kLion,
  kAdafactor,  // torch.optim.Adafactor: rows and columns of each matrix's second moment
  kAdamW8bit,  // bitsandbytes.optim.AdamW8bit: moments of one byte, scaled by blocks
};
std::string_view name(Optimizer optimizer);
// Moments of a parameter's size and of the recipe's state dtype: adamw 2, sgd-momentum and lion 1, others
// 0 (see optimizer_states.hpp).
int moments(Optimizer optimizer);

// Whose optimizer: decides transients and step counters.
enum class OptimizerImpl : std::uint8_t {
  kPlimsoll,      // one pass over each parameter, no transient; states exist from the start
  kTorchPython,   // torch.optim's loop: transients, a 4-byte step tensor per parameter
  kTorchCpp,      // torch::optim: transients; states made at the first step
  kTorchFused,    // at::_fused_adamw_: no transient, a 4-byte step tensor per parameter
  kBitsAndBytes,  // one kernel per parameter, no transient; states made at the first step
};
std::string_view name(OptimizerImpl impl);
// The one that an optimizer has when nobody names another.
OptimizerImpl usual_implementation(Optimizer optimizer);
// Whether it keeps the step count in a 4-byte tensor beside the moments of each parameter.
bool has_step_counters(Optimizer optimizer, OptimizerImpl impl);

// The dtypes of a run.
struct Recipe {
  DType compute = DType::kFloat32;   // parameters that forward reads, activations, gradients
  std::optional<DType> master;       // fp32 copies that the optimizer updates
  std::optional<DType> accumulator;  // of gradients over micro-batches, when not .grad itself
  DType state = DType::kFloat32;     // moments
  DType loss = DType::kFloat32;      // logits are cast to it before the loss
  DType operand = DType::kFloat32;   // of matrix products and attention
  bool loss_scaler = false;          // the loss is scaled, gradients are unscaled before the step
};

// A recipe's master copies, overridden.
struct MasterChoice {
  std::optional<DType> dtype;  // none: no master copies
};

// Chunks of the loss beyond this would only make a network of too many operations.
inline constexpr std::int64_t kMostLossChunks = 65536;

struct Job {
  Mode mode = Mode::kTrain;
  std::int64_t batch = 1;
  // T; decode: S, tokens in the cache at the pass's end, the one of this pass among them.
  std::int64_t sequence = 0;
  std::optional<DType> kv_dtype;  // of the cache; none: what the products read
  std::int32_t accumulate = 1;
  Precision precision = Precision::kFp32;
  // Parts of the recipe that are overridden.
  std::optional<MasterChoice> master;
  std::optional<DType> grad_dtype;  // of the gradients that the optimizer reads
  std::optional<DType> state_dtype;
  std::optional<DType> loss_dtype;
  Optimizer optimizer = Optimizer::kAdamW;
  OptimizerImpl optimizer_impl = OptimizerImpl::kPlimsoll;
  std::optional<AttentionKernel> attention;  // none: what the library would choose
  Checkpoint checkpoint = Checkpoint::kNone;
  double dropout = 0;
  Semantics semantics = Semantics::kPlimsoll;
  Backend backend = Backend::kCpu;
  int threads = 1;
  bool hold_logits = false;
  bool shared_targets = false;
  std::int32_t loss_chunks = 1;             // logits and loss in at most that many chunks of rows
  std::optional<network::Lora> lora;        // adapters; everything else is frozen
  std::vector<network::FreezeRule> freeze;  // parts that do not learn
  bool token_first = false;                 // order of the two embeddings of GPT style models
  // Where it should fit: null when nobody asked. Shared by the jobs of a search.
  std::shared_ptr<const hardware::Device> device;
  std::optional<std::int64_t> reserve;  // bytes kept free; none: the device's own figure
  std::int32_t ranks = 1;               // R, data-parallel
  shard::Stage stage = shard::Stage::kNothing;
  std::int32_t prefetch = 1;             // units gathered ahead at stage 3
  bool reshard_root = false;             // stage 3: gather the root again for backward
  bool reduce_each = true;               // micro-batches are reduced one by one; false: once a step
  bool snapshot = false;                 // a checkpoint is being written from a copy
  std::vector<std::string> assumptions;  // "batch 1: not given", ...

  // Forward passes alone: see inference_job.hpp.
  bool infers() const { return mode != Mode::kTrain; }
  DType cache_dtype() const;
  // Whether parts of the network run again in backward.
  bool recomputes() const { return checkpoint != Checkpoint::kNone || loss_chunks > 1; }
  // Whether some parameters do not learn.
  bool adapts() const { return lora.has_value() || !freeze.empty(); }
  // Whether ranks have anything to exchange. World size 1 with a stage takes the same path.
  bool sharded() const { return shard::shards(stage, ranks); }
  shard::Arithmetic arithmetic() const;
  shard::ScheduleOptions schedule_options() const;
  // Of the gradients that the optimizer reads. Sums over ranks of 16-bit gradients are fp32.
  DType gradient_dtype() const;
  Recipe recipe() const;
  // What runs; `grouped`: the model has fewer key heads than query heads.
  AttentionKernel kernel(bool grouped = false) const;
  network::LibraryFacts facts() const;
  network::BuildOptions build_options() const;
};

// Combinations that do not exist, sizes out of range, sequence beyond learned positions.
Result<void> validate(const Job& job, const network::NetworkSpec& spec);

}  // namespace plimsoll::plan
