// Calculated against measured and dry-run, event by event: fixed jobs that cover every option.
#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"

#include "tests/differential/differ.hpp"

namespace plimsoll {
namespace {

network::NetworkSpec measured_gpt() {
  return *formats::read_inline_model("minigpt:d=32,L=2,V=50,s=16,heads=4");
}

network::NetworkSpec small_llama() {
  network::NetworkSpec spec;
  spec.family = network::Family::kLlama;
  spec.model_type = "llama";
  spec.width = 64;
  spec.layers = 2;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.feed_forward = 160;
  spec.vocabulary = 300;
  spec.positions = 24;
  spec.tied_head = false;
  spec.activation = network::OpKind::kSilu;
  spec.norm_eps = 1e-6;
  return spec;
}

plan::Job job_of(std::int64_t batch, std::int64_t sequence) {
  plan::Job job;
  job.batch = batch;
  job.sequence = sequence;
  return job;
}

void check_both_runs(const network::NetworkSpec& spec, const plan::Job& job,
                     std::int32_t steps = 2) {
  const network::Network net = network::build_network(spec, job.build_options());
  constexpr auto kDepth = timeline::Depth::kEvents;
  CHECK(tests::text_of(tests::calculated_against(net, job, at::kCPU, kDepth, steps)) == "equal");
  CHECK(tests::text_of(tests::calculated_against(net, job, at::kMeta, kDepth, steps)) == "equal");
}

}  // namespace

TEST_CASE("calculated = dry-run = measured: precisions, batches, both families") {
  tests::prepare_library();
  for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16, plan::Precision::kFp64,
                         plan::Precision::kMixed}) {
    for (std::int64_t batch : {1, 2, 5}) {
      for (bool llama : {false, true}) {
        for (bool math : {false, true}) {
          for (auto checkpoint : {network::Checkpoint::kNone, network::Checkpoint::kBlock,
                                  network::Checkpoint::kMatmuls}) {
            const network::NetworkSpec spec = llama ? small_llama() : measured_gpt();
            plan::Job job = job_of(batch, spec.positions);
            job.precision = precision;
            job.checkpoint = checkpoint;
            if (math) job.attention = network::AttentionKernel::kMath;
            CAPTURE(plan::name(precision));
            CAPTURE(batch);
            CAPTURE(llama);
            CAPTURE(math);
            CAPTURE(network::name(checkpoint));
            check_both_runs(spec, job);
          }
        }
      }
    }
  }
}

TEST_CASE("calculated = dry-run = measured: optimizers and their implementations") {
  tests::prepare_library();
  using plan::Optimizer;
  using plan::OptimizerImpl;
  for (auto impl : {OptimizerImpl::kPlimsoll, OptimizerImpl::kTorchCpp, OptimizerImpl::kTorchPython,
                    OptimizerImpl::kTorchFused}) {
    for (auto optimizer :
         {Optimizer::kAdamW, Optimizer::kSgd, Optimizer::kSgdMomentum, Optimizer::kLion}) {
      for (int accumulate : {1, 3}) {
        for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16,
                               plan::Precision::kFp64, plan::Precision::kMixed}) {
          const network::NetworkSpec spec = measured_gpt();
          plan::Job job = job_of(2, 16);
          job.optimizer = optimizer;
          job.optimizer_impl = impl;
          job.accumulate = accumulate;
          job.precision = precision;
          if (!plan::validate(job, spec)) continue;
          CAPTURE(plan::name(impl));
          CAPTURE(plan::name(optimizer));
          CAPTURE(accumulate);
          CAPTURE(plan::name(precision));
          check_both_runs(spec, job, 3);
        }
      }
    }
  }
}

TEST_CASE(
    "calculated = dry-run = measured: dropout, held logits, shared targets, loss dtype, semantics "
    "hf") {
  tests::prepare_library();
  for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16}) {
    for (bool llama : {false, true}) {
      for (auto checkpoint : {network::Checkpoint::kNone, network::Checkpoint::kBlock}) {
        const network::NetworkSpec spec = llama ? small_llama() : measured_gpt();
        plan::Job job = job_of(2, spec.positions);
        job.precision = precision;
        job.checkpoint = checkpoint;
        CAPTURE(plan::name(precision));
        CAPTURE(llama);
        CAPTURE(network::name(checkpoint));
        plan::Job variant = job;
        variant.dropout = 0.1;
        check_both_runs(spec, variant);
        variant = job;
        variant.hold_logits = true;
        check_both_runs(spec, variant);
        variant = job;
        variant.shared_targets = true;
        check_both_runs(spec, variant);
        variant = job;
        variant.loss_dtype = network::DType::kFloat32;
        check_both_runs(spec, variant);
        variant = job;
        variant.token_first = true;
        check_both_runs(spec, variant);
        if (!llama) continue;
        variant = job;
        variant.semantics = network::Semantics::kHuggingFace;
        check_both_runs(spec, variant);
      }
    }
  }
}

}  // namespace plimsoll
