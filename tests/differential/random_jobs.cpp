#include "tests/differential/random_jobs.hpp"

#include <fmt/format.h>

#include "tests/property/adaptation_text.hpp"

namespace plimsoll::tests {
namespace {

using network::Family;
using network::OpKind;

network::NetworkSpec random_spec(Chooser& choose) {
  using I = std::int64_t;
  network::NetworkSpec spec;
  spec.layers = choose.of<I>({1, 2, 3});
  spec.vocabulary = choose.of<I>({5, 33, 50});
  spec.positions = choose.of<I>({1, 2, 5, 9, 33});
  if (choose.chance(50)) {
    spec.family = choose.of({Family::kMiniGpt, Family::kGpt2});
    spec.architecture = network::gpt_architecture();
    spec.heads = spec.kv_heads = choose.of<I>({1, 2, 3, 4});
    spec.head_dim = choose.of<I>({1, 2, 5, 8});
    spec.width = spec.heads * spec.head_dim;
    spec.feed_forward = choose.of<I>({4 * spec.width, 7});
    spec.attention_bias = choose.chance(50);
    spec.mlp_bias = choose.chance(50);
    spec.tied_head = choose.chance(70);
    spec.activation = choose.of({OpKind::kGelu, OpKind::kGeluTanh, OpKind::kRelu, OpKind::kSilu});
    return spec;
  }
  spec.family = Family::kLlama;
  spec.model_type = "llama";
  spec.kv_heads = choose.of<I>({1, 2});
  spec.heads = spec.kv_heads * choose.of<I>({1, 2, 3});
  spec.head_dim = choose.of<I>({2, 4, 8});
  spec.width = spec.heads * choose.of<I>({2, 4, 6});
  spec.feed_forward = choose.of<I>({3, 16});
  spec.attention_bias = choose.chance(20);
  spec.mlp_bias = choose.chance(20);
  spec.tied_head = choose.chance(50);
  spec.activation = choose.of({OpKind::kSilu, OpKind::kSilu, OpKind::kGelu});
  return spec;
}

void adapt(Chooser& choose, plan::Job& job, const network::NetworkSpec& spec) {
  using network::FreezeKind;
  if (choose.chance(20)) {
    job.lora.emplace();
    job.lora->rank = choose.of<std::int64_t>({1, 2});
    job.lora->scale = 2;
    for (network::Matrix matrix : network::matrices_of(spec)) {
      if (choose.chance(60)) job.lora->targets.push_back(matrix);
    }
  }
  if (!choose.chance(20)) return;
  const std::int64_t last = spec.layers - 1;
  job.freeze.push_back(
      choose.of<network::FreezeRule>({{FreezeKind::kEmbeddings, 0, 0, "embeddings"},
                                      {FreezeKind::kLayers, 0, last, "layers"},
                                      {FreezeKind::kLayers, last, last, "layers"},
                                      {FreezeKind::kHead, 0, 0, "head"},
                                      {FreezeKind::kName, 0, 0, "*.bias"}}));
}

}  // namespace

plan::Job random_choices(Chooser& choose, const network::NetworkSpec& spec) {
  plan::Job job;
  job.batch = choose.of<std::int64_t>({1, 1, 2, 3, 5});
  job.sequence = spec.positions;
  job.accumulate = choose.of({1, 1, 2, 3});
  job.precision =
      choose.of({plan::Precision::kFp32, plan::Precision::kBf16, plan::Precision::kMixed,
                 plan::Precision::kFp64, plan::Precision::kAutocast});
  if (choose.chance(10)) job.grad_dtype = network::DType::kFloat32;
  if (choose.chance(10)) job.master = plan::MasterChoice{network::DType::kFloat32};
  if (choose.chance(10)) job.master = plan::MasterChoice{};
  job.optimizer =
      choose.of({plan::Optimizer::kAdamW, plan::Optimizer::kAdamW, plan::Optimizer::kSgd,
                 plan::Optimizer::kSgdMomentum, plan::Optimizer::kLion});
  job.optimizer_impl =
      choose.of({plan::OptimizerImpl::kPlimsoll, plan::OptimizerImpl::kTorchCpp,
                 plan::OptimizerImpl::kTorchPython, plan::OptimizerImpl::kTorchFused});
  if (choose.chance(30)) job.attention = network::AttentionKernel::kMath;
  job.checkpoint = choose.of(
      {network::Checkpoint::kNone, network::Checkpoint::kBlock, network::Checkpoint::kMatmuls});
  job.dropout = choose.chance(30) ? 0.1 : 0.0;
  job.hold_logits = choose.chance(20);
  job.shared_targets = choose.chance(20);
  job.token_first = choose.chance(30);
  if (spec.family == Family::kLlama && choose.chance(30)) {
    job.semantics = network::Semantics::kHuggingFace;
  }
  if (choose.chance(20)) job.loss_dtype = network::DType::kFloat32;
  if (choose.chance(10)) job.state_dtype = network::DType::kBFloat16;
  adapt(choose, job, spec);
  if (choose.chance(15)) job.loss_chunks = choose.of({2, 3, 5});
  return job;
}

RandomJob random_job(std::uint64_t seed) {
  Chooser choose(seed);
  while (true) {
    RandomJob result;
    result.spec = random_spec(choose);
    result.job = random_choices(choose, result.spec);
    if (network::validate(result.spec) && plan::validate(result.job, result.spec)) return result;
  }
}

std::string describe(const RandomJob& r) {
  return fmt::format(
      "{} L={} D={} N={} K={} H={} F={} V={} T={} B={} accumulate={} {} {} {} attention={} "
      "checkpoint={} dropout={} semantics={} hold={} shared={}{}",
      network::name(r.spec.family), r.spec.layers, r.spec.width, r.spec.heads, r.spec.kv_heads,
      r.spec.head_dim, r.spec.feed_forward, r.spec.vocabulary, r.job.sequence, r.job.batch,
      r.job.accumulate, plan::name(r.job.precision), plan::name(r.job.optimizer),
      plan::name(r.job.optimizer_impl), network::name(r.job.kernel()),
      network::name(r.job.checkpoint), r.job.dropout, network::name(r.job.semantics),
      r.job.hold_logits, r.job.shared_targets, test::adaptation_text(r.job));
}

}  // namespace plimsoll::tests
