#include "tests/property/random_jobs.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/plan/recipe_checks.hpp"

#include "tests/property/adaptation_text.hpp"

namespace plimsoll::test {
namespace {

using network::DType;
using network::Family;
using network::OpKind;

constexpr std::uint64_t kSeed = 20260127;
constexpr double kDropout = 0.1;

network::NetworkSpec random_cnn(Dice& dice) {
  network::NetworkSpec spec;
  spec.family = Family::kCnn;
  for (std::int64_t i = dice.between(1, 3); i > 0; --i) {
    spec.channels.push_back(dice.between(1, 20));
  }
  spec.image = dice.between(3, 11);
  spec.classes = dice.between(2, 7);
  spec.batch_norm = dice.coin();
  spec.conv_bias = dice.coin();
  spec.relu_in_place = dice.coin();
  spec.pool_last = spec.image % 2 == 0 && dice.coin();
  return spec;
}

void shape_like_llama(network::NetworkSpec& spec, Dice& dice) {
  spec.model_type = "llama";
  spec.heads = dice.pick<std::int64_t>({1, 2, 3, 4, 6});
  std::vector<std::int64_t> divisors;
  for (std::int64_t k = 1; k <= spec.heads; ++k) {
    if (spec.heads % k == 0) divisors.push_back(k);
  }
  spec.kv_heads = dice.pick(divisors);
  spec.head_dim = 2 * dice.between(1, 5);
  spec.width = dice.between(1, 40);
}

void shape_like_gpt(network::NetworkSpec& spec, Dice& dice) {
  spec.heads = spec.kv_heads = dice.between(1, 4);
  spec.head_dim = dice.between(1, 11);
  spec.width = spec.heads * spec.head_dim;
}

network::FreezeRule random_rule(const network::NetworkSpec& spec, Dice& dice) {
  using network::FreezeKind;
  const std::int64_t last = dice.between(0, std::max<std::int64_t>(spec.layers, 1) - 1);
  return dice.pick<network::FreezeRule>({{FreezeKind::kEmbeddings, 0, 0, "embeddings"},
                                         {FreezeKind::kHead, 0, 0, "head"},
                                         {FreezeKind::kLayers, 0, last, "layers"},
                                         {FreezeKind::kLayers, last, last, "layers"},
                                         {FreezeKind::kName, 0, 0, "*.bias"},
                                         {FreezeKind::kName, 0, 0, "*.0.*.weight"}});
}

// Adapters on some matrices, frozen parts, or both.
void adapt(plan::Job& job, const network::NetworkSpec& spec, Dice& dice) {
  if (dice.one_in(4)) {
    job.lora.emplace();
    job.lora->rank =
        dice.between(1, std::min<std::int64_t>(std::max<std::int64_t>(spec.width, 1), 4));
    job.lora->scale = 2;
    for (network::Matrix matrix : network::matrices_of(spec)) {
      if (dice.coin()) job.lora->targets.push_back(matrix);
    }
  }
  if (dice.one_in(5)) job.freeze.push_back(random_rule(spec, dice));
}

// The loss in chunks of rows, which need not divide them.
void chunk(plan::Job& job, Dice& dice) {
  if (dice.one_in(6)) job.loss_chunks = static_cast<std::int32_t>(dice.between(2, 7));
}

plan::Job random_choices(const network::NetworkSpec& spec, Dice& dice) {
  using plan::Optimizer;
  using plan::OptimizerImpl;
  using plan::Precision;
  plan::Job job;
  job.batch = dice.between(1, 5);
  job.sequence = spec.family == Family::kCnn ? 0 : dice.between(1, spec.positions);
  job.accumulate = static_cast<std::int32_t>(dice.between(1, 3));
  job.precision = dice.pick<Precision>({Precision::kFp32, Precision::kBf16, Precision::kFp64,
                                        Precision::kMixed, Precision::kAutocast, Precision::kFp16});
  if (dice.one_in(5)) job.state_dtype = dice.pick<DType>({DType::kFloat32, DType::kBFloat16});
  if (dice.one_in(5)) job.loss_dtype = DType::kFloat32;
  if (dice.one_in(8)) job.grad_dtype = DType::kFloat32;
  if (dice.one_in(8)) job.master = plan::MasterChoice{DType::kFloat32};
  if (dice.one_in(12)) job.master = plan::MasterChoice{};
  job.optimizer = dice.pick<Optimizer>(
      {Optimizer::kAdamW, Optimizer::kSgd, Optimizer::kSgdMomentum, Optimizer::kLion});
  job.optimizer_impl =
      dice.pick<OptimizerImpl>({OptimizerImpl::kPlimsoll, OptimizerImpl::kTorchPython,
                                OptimizerImpl::kTorchCpp, OptimizerImpl::kTorchFused});
  if (dice.one_in(3)) {
    job.attention = dice.pick<network::AttentionKernel>({network::AttentionKernel::kFlash,
                                                         network::AttentionKernel::kEfficient,
                                                         network::AttentionKernel::kMath});
  }
  job.checkpoint = dice.one_in(3) ? network::Checkpoint::kMatmuls
                   : dice.coin()  ? network::Checkpoint::kBlock
                                  : network::Checkpoint::kNone;
  job.dropout = dice.one_in(3) ? kDropout : 0;
  job.semantics = dice.coin() ? network::Semantics::kHuggingFace : network::Semantics::kPlimsoll;
  job.backend = dice.one_in(3) ? network::Backend::kCuda : network::Backend::kCpu;
  job.threads = static_cast<int>(dice.between(1, 3));
  job.hold_logits = dice.coin();
  job.shared_targets = dice.coin();
  job.token_first = dice.coin();
  adapt(job, spec, dice);
  chunk(job, dice);
  return job;
}

// The options that the jobs seen so far covered, as "checkpoint=block".
void note(std::set<std::string>& covered, const RandomJob& random) {
  const plan::Job& job = random.job;
  covered.insert(fmt::format("family={}", name(random.spec.family)));
  covered.insert(fmt::format("precision={}", name(job.precision)));
  covered.insert(fmt::format("optimizer={}", name(job.optimizer)));
  covered.insert(fmt::format("implementation={}", name(job.optimizer_impl)));
  covered.insert(fmt::format("kernel={}", name(job.kernel())));
  covered.insert(fmt::format("checkpoint={}", name(job.checkpoint)));
  covered.insert(fmt::format("semantics={}", name(job.semantics)));
  covered.insert(fmt::format("backend={}", name(job.backend)));
  covered.insert(fmt::format("accumulate={}", job.accumulate));
  covered.insert(fmt::format("dropout={}", job.dropout));
  covered.insert(fmt::format("batch={}", job.batch));
  covered.insert(fmt::format("chunks={}", job.loss_chunks));
  covered.insert(fmt::format("lora={}", job.lora.has_value()));
  covered.insert(fmt::format("freeze={}", !job.freeze.empty()));
}

// 4 families, 6 precisions, 4 optimizers, 4 implementations, 3 kernels, 3 policies, 2 semantics,
// 2 backends, 3 accumulations, 2 dropouts, 5 batches, 7 chunks of the loss; with and without adapters,
// and frozen parts.
constexpr std::size_t kOptions = 4 + 6 + 4 + 4 + 3 + 3 + 2 + 2 + 3 + 2 + 5 + 7 + 2 + 2;

}  // namespace

network::NetworkSpec random_spec(Dice& dice) {
  network::NetworkSpec spec;
  spec.family = dice.pick<Family>(
      {Family::kMiniGpt, Family::kGpt2, Family::kLlama, Family::kLlama, Family::kCnn});
  if (spec.family == Family::kCnn) return random_cnn(dice);
  if (spec.family == Family::kLlama) {
    shape_like_llama(spec, dice);
  } else {
    shape_like_gpt(spec, dice);
    spec.architecture = network::gpt_architecture();
  }
  spec.layers = dice.between(1, 3);
  spec.feed_forward = dice.between(1, 60);
  spec.vocabulary = dice.between(2, 80);
  spec.positions = dice.between(1, 40);
  spec.tied_head = dice.coin();
  spec.attention_bias = dice.coin();
  spec.mlp_bias = dice.coin();
  spec.activation =
      dice.pick<OpKind>({OpKind::kGelu, OpKind::kGeluTanh, OpKind::kSilu, OpKind::kRelu});
  return spec;
}

void deepen(network::NetworkSpec& spec, Dice& dice) {
  const std::int64_t period = spec.layer_facts.empty() ? 1 : dice.between(1, 3);
  spec.layers = period * dice.between(9, 11) + dice.between(0, period - 1);
  if (spec.layer_facts.empty()) return;
  const auto facts = spec.layer_facts;
  spec.layer_facts.clear();
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const auto one = static_cast<std::size_t>(i % period) % facts.size();
    spec.layer_facts.push_back(facts[one]);
  }
}

std::string to_text(const RandomJob& random) {
  const network::NetworkSpec& s = random.spec;
  const plan::Job& j = random.job;
  return fmt::format(
      "{} D={} L={} N={} K={} H={} F={} V={} tied={} biases={}{} channels={} image={} bn={} "
      "conv_bias={} inplace={} pool={} | B={} T={} accumulate={} {} state={} loss={} {} {} {} "
      "checkpoint={} dropout={} {} {} threads={} hold={} shared={} token_first={}{}",
      name(s.family), s.width, s.layers, s.heads, s.kv_heads, s.head_dim, s.feed_forward,
      s.vocabulary, s.tied_head, s.attention_bias, s.mlp_bias, s.channels, s.image, s.batch_norm,
      s.conv_bias, s.relu_in_place, s.pool_last, j.batch, j.sequence, j.accumulate,
      name(j.precision), name(j.recipe().state), name(j.recipe().loss), name(j.optimizer),
      name(j.optimizer_impl), name(j.kernel()), name(j.checkpoint), j.dropout, name(j.semantics),
      name(j.backend), j.threads, j.hold_logits, j.shared_targets, j.token_first,
      adaptation_text(j));
}

RandomJob random_job(Dice& dice, RunsOn runs_on) {
  while (true) {
    RandomJob random;
    random.spec = random_spec(dice);
    REQUIRE(network::validate(random.spec));
    random.job = random_choices(random.spec, dice);
    if (runs_on == RunsOn::kCpu) {
      random.job.backend = network::Backend::kCpu;
      random.job.threads = 1;
    }
    if (runs_on == RunsOn::kCpu && !plan::validate_runs(random.job, "a test")) continue;
    if (plan::validate(random.job, random.spec)) return random;
  }
}

void for_each_random_job(int count, const std::function<void(const RandomJob&)>& check) {
  Dice dice(kSeed);
  std::set<std::string> covered;
  for (int i = 1; i <= cases(count); ++i) {
    const RandomJob random = random_job(dice, RunsOn::kPlanOnly);
    note(covered, random);
    INFO(i, ": ", to_text(random));
    check(random);
  }
  // Fewer jobs cannot meet every option.
  if (cases(count) >= 500) CHECK(covered.size() == kOptions);
}

}  // namespace plimsoll::test
