#include "plimsoll/plan/job.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/network/families/hf_style.hpp"
#include "plimsoll/network/rules/attention.hpp"
#include "plimsoll/plan/adaptation.hpp"
#include "plimsoll/plan/inference_job.hpp"
#include "plimsoll/plan/recipe_checks.hpp"

namespace plimsoll::plan {

std::string_view name(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return "adamw";
    case Optimizer::kSgd:
      return "sgd";
    case Optimizer::kSgdMomentum:
      return "sgd-momentum";
    case Optimizer::kLion:
      return "lion";
    case Optimizer::kAdafactor:
      return "adafactor";
    case Optimizer::kAdamW8bit:
      return "adamw-8bit";
  }
  return "?";
}

bool has_step_counters(Optimizer optimizer, OptimizerImpl impl) {
  const bool keeps = impl == OptimizerImpl::kTorchPython || impl == OptimizerImpl::kTorchFused;
  return keeps && (optimizer == Optimizer::kAdamW || optimizer == Optimizer::kAdafactor);
}

OptimizerImpl usual_implementation(Optimizer optimizer) {
  if (optimizer == Optimizer::kAdafactor) return OptimizerImpl::kTorchPython;
  if (optimizer == Optimizer::kAdamW8bit) return OptimizerImpl::kBitsAndBytes;
  return OptimizerImpl::kPlimsoll;
}

int moments(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return 2;
    case Optimizer::kSgd:
    case Optimizer::kAdafactor:
    case Optimizer::kAdamW8bit:
      return 0;
    case Optimizer::kSgdMomentum:
    case Optimizer::kLion:
      return 1;
  }
  return 0;
}

std::string_view name(OptimizerImpl impl) {
  switch (impl) {
    case OptimizerImpl::kPlimsoll:
      return "plimsoll";
    case OptimizerImpl::kTorchPython:
      return "torch-python";
    case OptimizerImpl::kTorchCpp:
      return "torch-cpp";
    case OptimizerImpl::kTorchFused:
      return "torch-fused";
    case OptimizerImpl::kBitsAndBytes:
      return "bitsandbytes";
  }
  return "?";
}

DType Job::gradient_dtype() const {
  const Recipe r = recipe();
  if (!sharded()) return r.accumulator.value_or(r.compute);
  return r.compute == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

shard::Arithmetic Job::arithmetic() const {
  const Recipe r = recipe();
  shard::Arithmetic arithmetic;
  arithmetic.master = r.master ? network::size_of(*r.master) : 0;
  arithmetic.sum = network::size_of(r.accumulator.value_or(gradient_dtype()));
  arithmetic.moment = network::size_of(r.state);
  arithmetic.moments = moments(optimizer);
  arithmetic.local_sums = r.accumulator && (!sharded() || !reduce_each);
  return arithmetic;
}

shard::ScheduleOptions Job::schedule_options() const {
  return {stage, ranks, prefetch, reshard_root, reduce_each};
}

AttentionKernel Job::kernel(bool grouped) const {
  if (attention) return *attention;
  return network::rules::chosen_kernel(facts(), {recipe().operand, dropout > 0, grouped});
}

network::LibraryFacts Job::facts() const {
  if (backend == Backend::kCpu) return network::cpu_facts(threads);
  network::Card card;
  if (device) card.compute_capability = device->compute_capability.value.value_or(0);
  return network::cuda_facts(card);
}

network::BuildOptions Job::build_options() const {
  const Recipe r = recipe();
  network::BuildOptions options;
  options.mode = mode;
  options.batch = batch;
  options.sequence = mode == Mode::kDecode ? 1 : sequence;
  options.context = sequence;
  options.kv_dtype = cache_dtype();
  options.dtype = r.compute;
  options.loss_dtype = r.loss;
  options.kernel = kernel();
  options.dropout = dropout;
  options.autocast = precision == Precision::kAutocast;
  options.checkpoint = checkpoint;
  options.semantics = semantics;
  options.shared_targets = shared_targets;
  options.loss_chunks = loss_chunks;
  options.lora = lora;
  options.freeze = freeze;
  options.position_first = !token_first;
  return options;
}

DType Job::cache_dtype() const { return kv_dtype.value_or(recipe().operand); }

namespace {

Result<void> validate_sizes(const Job& job, const network::NetworkSpec& spec) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (job.batch < 1 || job.batch > kMost) {
    return fail("--batch", fmt::format("batch={}, expected 1 to 2^40", job.batch));
  }
  if (job.accumulate < 1 || job.accumulate > 65536) {
    return fail("--accumulate", fmt::format("accumulate={}, expected 1 to 65536", job.accumulate));
  }
  if (job.threads < 1 || job.threads > 4096) {
    return fail("--threads", fmt::format("threads={}, expected 1 to 4096", job.threads));
  }
  if (!(job.dropout >= 0) || job.dropout >= 1) {
    return fail("--dropout", fmt::format("dropout={}, expected 0 <= p < 1", job.dropout));
  }
  if (spec.family == network::Family::kCnn) return {};
  const std::string tokens = job.mode == Mode::kDecode ? "context" : "seq";
  if (job.sequence < 1 || job.sequence > kMost) {
    return fail("--" + tokens, fmt::format("{}={}, expected 1 to 2^40", tokens, job.sequence));
  }
  const bool learned = spec.architecture.positions == network::Positions::kLearned;
  if (learned && job.sequence > spec.positions) {
    return fail("--" + tokens,
                fmt::format("{}={}, expected at most {} (the model's learned positions)", tokens,
                            job.sequence, spec.positions),
                "a model with learned positions cannot read a longer sequence");
  }
  return {};
}

Result<void> validate_sharding(const Job& job) {
  if (job.ranks < 1 || job.ranks > 65536) {
    return fail("--ranks", fmt::format("ranks={}, expected 1 to 65536", job.ranks));
  }
  if (job.prefetch < 0 || job.prefetch > 1024) {
    return fail("--prefetch", fmt::format("prefetch={}, expected 0 to 1024", job.prefetch));
  }
  if (!job.sharded() || job.optimizer_impl == OptimizerImpl::kPlimsoll) return {};
  return fail("--optimizer-impl",
              fmt::format("implementation {} steps whole parameters of one process, expected "
                          "plimsoll with several ranks or a stage",
                          name(job.optimizer_impl)),
              "leave --optimizer-impl out, or use --ranks 1 --zero 0");
}

std::string kernel_hint(const Job& job, bool grouped) {
  if (*job.attention == AttentionKernel::kEfficient && job.backend == Backend::kCpu) {
    return "--backend cuda plans the memory-efficient kernel";
  }
  if (*job.attention == AttentionKernel::kEfficient && grouped) {
    return "the memory-efficient kernel reads as many key heads as query heads";
  }
  if (job.backend == Backend::kCuda) return "--precision bf16 or mixed can use flash";
  return "leave --attention out, or use --dropout 0";
}

Result<void> validate_kernel(const Job& job, const network::NetworkSpec& spec) {
  if (!job.attention || job.attention == AttentionKernel::kEager) return {};
  const network::LibraryFacts facts = job.facts();
  const bool grouped = spec.heads != spec.kv_heads;
  const network::rules::AttentionUse use{job.recipe().operand, job.dropout > 0, grouped};
  if (network::rules::kernel_exists(facts, *job.attention, use)) return {};
  std::vector<std::string_view> known;
  for (const AttentionKernel kernel :
       {AttentionKernel::kFlash, AttentionKernel::kEfficient, AttentionKernel::kMath}) {
    if (network::rules::kernel_exists(facts, kernel, use)) known.push_back(network::name(kernel));
  }
  std::string what =
      fmt::format("attention={} does not exist on {} for {}", network::name(*job.attention),
                  network::name(job.backend), network::name(use.dtype));
  if (use.dropout) what += fmt::format(" with dropout={}", job.dropout);
  if (grouped) what += fmt::format(" with {} heads over {}", spec.heads, spec.kv_heads);
  return fail("--attention", fmt::format("{}, expected {}", what, fmt::join(known, " or ")),
              kernel_hint(job, grouped));
}

// Optimizers that only one library has, and the library that has only one.
Result<void> validate_implementation(const Job& job) {
  const OptimizerImpl usual = usual_implementation(job.optimizer);
  const bool special = usual != OptimizerImpl::kPlimsoll;
  const bool theirs = job.optimizer_impl == OptimizerImpl::kBitsAndBytes;
  if (job.optimizer_impl == usual || (!special && !theirs)) return {};
  const std::string expected(special ? name(usual) : "plimsoll or one of torch's");
  return fail("--optimizer-impl",
              fmt::format("optimizer={} has no implementation {}, expected {}", name(job.optimizer),
                          name(job.optimizer_impl), expected));
}

Result<void> validate_optimizer(const Job& job) {
  if (auto ok = validate_implementation(job); !ok) return ok;
  if (job.optimizer_impl == OptimizerImpl::kPlimsoll) return {};
  if (job.optimizer == Optimizer::kLion) {
    return fail("--optimizer-impl",
                fmt::format("optimizer=lion has no implementation {}, expected plimsoll",
                            name(job.optimizer_impl)));
  }
  if (job.optimizer != Optimizer::kAdamW && job.optimizer_impl == OptimizerImpl::kTorchFused) {
    return fail("--optimizer-impl",
                fmt::format("implementation torch-fused of {} is not modelled, expected plimsoll, "
                            "torch-cpp or torch-python",
                            name(job.optimizer)));
  }
  // They read .grad of the parameters and keep states in their dtype.
  const Recipe recipe = job.recipe();
  if (recipe.master || recipe.accumulator || job.precision == Precision::kMixed) {
    return fail("--optimizer-impl",
                fmt::format("implementation {} keeps no master weights (precision {}), expected "
                            "plimsoll",
                            name(job.optimizer_impl), name(job.precision)),
                "use --precision fp32 or bf16 with torch's optimizers");
  }
  if (job.state_dtype && *job.state_dtype != job.recipe().compute) {
    return fail("--state-dtype",
                fmt::format("implementation {} chooses the dtype of its states itself",
                            name(job.optimizer_impl)),
                "use --optimizer-impl plimsoll");
  }
  return {};
}

Result<void> validate_reserve(const Job& job) {
  if (job.reserve.value_or(0) == 0) return {};
  if (!job.device) {
    return fail("--reserve", fmt::format("reserve={} without a device", *job.reserve),
                "--device says of what it is kept free");
  }
  const std::int64_t usable = hardware::memory_budget(*job.device, job.reserve).usable;
  if (*job.reserve >= 0 && *job.reserve < usable) return {};
  return fail("--reserve", fmt::format("reserve={}, expected less than the {} bytes that {} has",
                                       *job.reserve, usable, job.device->name));
}

Result<void> validate_loss_chunks(const Job& job, const network::NetworkSpec& spec) {
  if (job.loss_chunks == 1) return {};
  const auto refuse = [&](std::string what, std::string hint = {}) {
    return fail("--loss-chunks", fmt::format("loss-chunks={} {}", job.loss_chunks, what),
                std::move(hint));
  };
  if (spec.family == network::Family::kCnn) return refuse("of a cnn, expected 1");
  const std::int64_t rows = checked_mul(job.batch, job.sequence);
  if (job.loss_chunks < 1 || job.loss_chunks > std::min(rows, kMostLossChunks)) {
    return fail("--loss-chunks",
                fmt::format("loss-chunks={}, expected 1 to {} (rows of logits, at most {})",
                            job.loss_chunks, std::min(rows, kMostLossChunks), kMostLossChunks));
  }
  if (job.semantics == Semantics::kHuggingFace) {
    return refuse("with semantics hf, expected 1: transformers computes all logits at once",
                  "leave --semantics out");
  }
  if (job.hold_logits) return refuse("leaves no logits to hold, expected no --hold-logits");
  if (job.stage == shard::Stage::kParameters && job.reshard_root) {
    return refuse("reads the head after forward, expected no --reshard-root");
  }
  return {};
}

// What only transformers has, and what it has not.
Result<void> validate_hugging_face(const Job& job, const network::NetworkSpec& spec) {
  const bool eager = job.attention == AttentionKernel::kEager;
  if (job.semantics != Semantics::kHuggingFace) {
    if (eager) {
      return fail("--attention", "attention=eager is transformers' own, expected flash or math",
                  "--semantics hf plans transformers' forward function");
    }
    return {};
  }
  if (const std::string part = network::hf::unknown_part(spec); !part.empty()) {
    return fail("--semantics",
                fmt::format("semantics=hf is not known for {}, expected plimsoll", part),
                fmt::format("hf is known for model types {}", network::hf::known_types()));
  }
  if (job.attention && !eager && !network::hf::style_of(spec).sdpa) {
    return fail("--attention",
                fmt::format("attention={} does not exist in transformers for {}, expected eager",
                            network::name(*job.attention), spec.model_type));
  }
  return {};
}

}  // namespace

Result<void> validate(const Job& job, const network::NetworkSpec& spec) {
  if (auto ok = validate_inference(job, spec); !ok) return ok;
  if (auto ok = validate_reserve(job); !ok) return ok;
  if (auto ok = validate_sizes(job, spec); !ok) return ok;
  if (auto ok = validate_kernel(job, spec); !ok) return ok;
  if (auto ok = validate_recipe(job, spec); !ok) return ok;
  if (auto ok = validate_optimizer(job); !ok) return ok;
  if (auto ok = validate_sharding(job); !ok) return ok;
  if (auto ok = validate_hugging_face(job, spec); !ok) return ok;
  if (auto ok = validate_loss_chunks(job, spec); !ok) return ok;
  if (auto ok = validate_adaptation(job, spec); !ok) return ok;
  if (spec.family == network::Family::kCnn && job.checkpoint != Checkpoint::kNone) {
    return fail("--checkpoint", fmt::format("checkpoint={} does not exist for cnn, expected none",
                                            network::name(job.checkpoint)));
  }
  if (spec.family == network::Family::kCnn && job.shared_targets) {
    return fail("--targets", "targets=shared: classes cannot be the image, expected separate");
  }
  if (spec.family == network::Family::kCnn && job.dropout > 0) {
    return fail("--dropout", "the cnn has no dropout, expected 0");
  }
  return {};
}

}  // namespace plimsoll::plan
