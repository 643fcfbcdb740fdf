#include "plimsoll/plan/inference_job.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace plimsoll::plan {
namespace {

// What stands in an option that only training has.
struct TrainingOnly {
  std::string_view option;
  bool used;
};

std::vector<TrainingOnly> training_settings(const Job& job) {
  return {{"--accumulate", job.accumulate != 1},
          {"--master-dtype", job.master.has_value()},
          {"--grad-dtype", job.grad_dtype.has_value()},
          {"--state-dtype", job.state_dtype.has_value()},
          {"--loss-dtype", job.loss_dtype.has_value()},
          {"--optimizer", job.optimizer != Optimizer::kAdamW},
          {"--optimizer-impl", job.optimizer_impl != OptimizerImpl::kPlimsoll},
          {"--checkpoint", job.checkpoint != Checkpoint::kNone},
          {"--dropout", job.dropout != 0},
          {"--loss-chunks", job.loss_chunks != 1},
          {"--lora", job.lora.has_value()},
          {"--freeze", !job.freeze.empty()},
          {"--hold-logits", job.hold_logits},
          {"--targets", job.shared_targets},
          {"--prefetch", job.prefetch != 1},
          {"--reshard-root", job.reshard_root},
          {"--no-sync", !job.reduce_each},
          {"--snapshot", job.snapshot}};
}

Result<void> validate_model(const Job& job, const network::NetworkSpec& spec) {
  const auto refuse = [&](std::string_view of) {
    return fail("--mode",
                fmt::format("{} of {}, expected train: there is no cache of keys and values",
                            name(job.mode), of));
  };
  if (spec.family == network::Family::kCnn) return refuse("an image network");
  if (!spec.architecture.causal) return refuse("an encoder");
  return {};
}

}  // namespace

bool is_of_training(std::string_view option) {
  const std::vector<TrainingOnly> all = training_settings({});
  return option == "--ranks" || option == "--zero" ||
         std::any_of(all.begin(), all.end(),
                     [&](const TrainingOnly& one) { return one.option == option; });
}

Result<void> validate_inference(const Job& job, const network::NetworkSpec& spec) {
  if (!job.infers()) {
    if (!job.kv_dtype) return {};
    return fail("--kv-dtype", "training has no cache, expected --mode prefill or decode");
  }
  if (auto ok = validate_model(job, spec); !ok) return ok;
  const std::string mode(name(job.mode));
  if (job.semantics == Semantics::kHuggingFace) {
    return fail("--semantics",
                fmt::format("hf with mode {} is not in this version, expected plimsoll", mode));
  }
  if (is_formula(job.precision)) {
    return fail("--precision",
                fmt::format("{} is a formula of training, expected another with mode {}",
                            name(job.precision), mode));
  }
  if (job.ranks != 1 || job.stage != shard::Stage::kNothing) {
    return fail(job.ranks != 1 ? "--ranks" : "--zero",
                fmt::format("mode {} is planned for one rank, expected --ranks 1 --zero 0", mode));
  }
  for (const TrainingOnly& setting : training_settings(job)) {
    if (!setting.used) continue;
    return fail(std::string(setting.option),
                fmt::format("is of training, expected none with mode {}", mode));
  }
  return {};
}

std::vector<std::string> inference_assumptions(const Job& job) {
  if (!job.infers()) return {};
  const std::string_view operand = network::name(job.recipe().operand);
  std::vector<std::string> lines;
  lines.emplace_back("logits of the last position only");
  lines.emplace_back("the cache lies whole in memory from the start: no pages, no free rows");
  if (job.precision == Precision::kMixed) {
    lines.push_back(fmt::format("precision mixed: weights in {} alone, no masters", operand));
  }
  if (job.precision == Precision::kFp16) {
    lines.emplace_back("precision fp16: kernels as those of bf16");
  }
  if (network::size_of(job.cache_dtype()) == 1) {
    lines.push_back(fmt::format("kv-dtype {}: one byte a value, scales are not counted",
                                network::name(job.cache_dtype())));
  }
  if (job.mode != Mode::kDecode) return lines;
  lines.push_back(fmt::format("context {}: tokens after the step, the new one is the last of them",
                              job.sequence));
  if (job.cache_dtype() != job.recipe().operand) {
    lines.push_back(fmt::format("a layer's cache is cast whole to {} while it is read", operand));
  }
  if (job.backend == Backend::kCuda) {
    lines.emplace_back("buffers of kernels that split the keys of one query are not counted");
  }
  return lines;
}

}  // namespace plimsoll::plan
