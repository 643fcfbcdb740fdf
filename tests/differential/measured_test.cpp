// Calculated against measured, event by event: fixed jobs that cover every option.
#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"

#include "tests/differential/differ.hpp"

namespace plimsoll {
namespace {

network::NetworkSpec small_gpt() {
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

}  // namespace

TEST_CASE("calculated = measured: precisions, batches, both families") {
  tests::prepare_library();
  for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16, plan::Precision::kFp64,
                         plan::Precision::kMixed}) {
    for (std::int64_t batch : {1, 2, 5}) {
      for (bool llama : {false, true}) {
        for (bool math : {false, true}) {
          for (auto checkpoint : {network::Checkpoint::kNone, network::Checkpoint::kBlock,
                                  network::Checkpoint::kMatmuls}) {
            const network::NetworkSpec spec = llama ? small_llama() : small_gpt();
            plan::Job job = job_of(batch, spec.positions);
            job.precision = precision;
            job.checkpoint = checkpoint;
            if (math) job.attention = network::AttentionKernel::kMath;
            CAPTURE(plan::name(precision));
            CAPTURE(batch);
            CAPTURE(llama);
            CAPTURE(math);
            CAPTURE(network::name(checkpoint));
            CHECK(tests::text_of(tests::calculated_against(spec, job, at::kCPU)) == "equal");
          }
        }
      }
    }
  }
}

TEST_CASE("calculated = measured: optimizers and their implementations") {
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
          const network::NetworkSpec spec = small_gpt();
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
          CHECK(tests::text_of(tests::calculated_against(spec, job, at::kCPU,
                                                         timeline::Depth::kEvents, 3)) == "equal");
        }
      }
    }
  }
}

TEST_CASE("calculated = measured: dropout, held logits, shared targets, loss dtype, semantics hf") {
  tests::prepare_library();
  for (auto precision : {plan::Precision::kFp32, plan::Precision::kBf16}) {
    for (bool llama : {false, true}) {
      for (auto checkpoint : {network::Checkpoint::kNone, network::Checkpoint::kBlock}) {
        const network::NetworkSpec spec = llama ? small_llama() : small_gpt();
        plan::Job job = job_of(2, spec.positions);
        job.precision = precision;
        job.checkpoint = checkpoint;
        CAPTURE(plan::name(precision));
        CAPTURE(llama);
        CAPTURE(network::name(checkpoint));
        const auto compare = [&](const plan::Job& variant) {
          return tests::text_of(tests::calculated_against(spec, variant, at::kCPU));
        };
        plan::Job variant = job;
        variant.dropout = 0.1;
        CHECK(compare(variant) == "equal");
        variant = job;
        variant.hold_logits = true;
        CHECK(compare(variant) == "equal");
        variant = job;
        variant.shared_targets = true;
        CHECK(compare(variant) == "equal");
        variant = job;
        variant.loss_dtype = network::DType::kFloat32;
        CHECK(compare(variant) == "equal");
        variant = job;
        variant.token_first = true;
        CHECK(compare(variant) == "equal");
        if (!llama) continue;
        variant = job;
        variant.semantics = network::Semantics::kHuggingFace;
        CHECK(compare(variant) == "equal");
      }
    }
  }
}

}  // namespace plimsoll
