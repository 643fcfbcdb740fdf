// The Llama family against transformers 5.24 on PyTorch 2.13 (CPU): the scaled-down models of
// tests/truth/hf, read from their configs, with the semantics hf. Variants with scaled dot product
// attention, without dropout and autocast.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/formats/config.hpp"

#include "tests/golden/saved_list.hpp"
#include "tests/golden/truth_run.hpp"

namespace plimsoll::test {
namespace {

const std::vector<std::string> kLlamaFiles = {"llama", "llama-3.2-tied", "llama-mha-large",
                                              "mistral-nemo-like"};
constexpr std::size_t kLlamaVariants = 52;
constexpr std::size_t kTimelines = 22;
constexpr std::size_t kFusedTimelines = 7;

plan::Job llama_job(const nlohmann::json& variant) {
  plan::Job job;
  job.batch = variant.at("batch");
  job.sequence = variant.at("seq");
  job.precision =
      variant.at("dtype") == "bfloat16" ? plan::Precision::kBf16 : plan::Precision::kFp32;
  job.attention = network::AttentionKernel::kFlash;
  job.checkpoint = variant.at("ckpt") ? network::Checkpoint::kBlock : network::Checkpoint::kNone;
  job.semantics = network::Semantics::kHuggingFace;
  job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
  job.shared_targets = true;  // labels = input_ids
  return job;
}

// Calls check(spec, variant) for each variant with sdpa and without dropout and autocast.
template <class Check>
std::size_t for_each_llama_variant(Check check) {
  std::size_t seen = 0;
  for (const std::string& name : kLlamaFiles) {
    const nlohmann::json file = truth("hf/activations/" + name + ".json");
    const auto spec = formats::read_config(file.at("config").dump(), name);
    REQUIRE(spec.has_value());
    for (const nlohmann::json& variant : file.at("variants")) {
      if (variant.at("attn") != "sdpa" || variant.at("dropout") != 0) continue;
      if (variant.at("amp_bf16")) continue;
      ++seen;
      CAPTURE(name);
      CAPTURE(variant.at("dtype").get<std::string>());
      CAPTURE(variant.at("ckpt").get<bool>());
      CAPTURE(variant.at("batch").get<int>());
      CAPTURE(variant.at("seq").get<int>());
      check(*spec, variant);
    }
  }
  return seen;
}

// What hooks see of a checkpointed block is its input; its random state lives in a closure.
plan::Ledger without_random_states(const Run& run) {
  std::vector<network::SavedRecord> seen = run.saved();
  seen.erase(std::remove_if(
                 seen.begin(), seen.end(),
                 [](const network::SavedRecord& r) { return r.dtype == network::DType::kUInt8; }),
             seen.end());
  return plan::count_ledger(seen);
}

void check_flops(const network::NetworkSpec& spec, const nlohmann::json& entry) {
  plan::Job job;
  job.semantics = network::Semantics::kHuggingFace;
  job.batch = entry.at("batch");
  job.sequence = entry.at("seq");
  job.checkpoint = entry.at("ckpt") ? network::Checkpoint::kBlock : network::Checkpoint::kNone;
  const plan::PassFlops flops = Run(spec, job).flops();
  const nlohmann::json& forward = entry.at("fwd").at("by_op");
  const nlohmann::json& both = entry.at("fwd_bwd").at("by_op");
  CHECK(flops.forward.matmul == forward.at("mm"));
  CHECK(flops.forward.matmul + flops.backward.matmul + flops.recompute.matmul == both.at("mm"));
  // Eager attention multiplies the whole square: the full convention, and 4 products in backward
  // where flash has 5. torch counts 0 for its flash kernel.
  if (entry.at("attn") != "eager") return;
  CHECK(flops.forward.attention_full == forward.at("bmm"));
  CHECK(flops.forward.attention_full + flops.backward.attention_full * 4 / 5 +
            flops.recompute.attention_full ==
        both.at("bmm"));
}

}  // namespace

TEST_CASE("hf llama truth: saved bytes, storages, tensors and parameter references") {
  const std::size_t seen =
      for_each_llama_variant([](const auto& spec, const nlohmann::json& variant) {
        const Run run(spec, llama_job(variant));
        const plan::Ledger ledger = without_random_states(run);
        CHECK(ledger.distinct_hf.bytes == variant.at("saved_bytes"));
        CHECK(ledger.distinct_hf.count == variant.at("saved_storages"));
        CHECK(ledger.as_saved.count == variant.at("saved_tensors_recorded"));
        CHECK(ledger.as_saved.count - ledger.without_parameters.count ==
              variant.at("saved_param_refs"));
        if (variant.contains("retained_after_fwd")) {
          CHECK(run.retained() == variant.at("retained_after_fwd"));
        }
      });
  CHECK(seen == kLlamaVariants);
}

TEST_CASE("hf llama truth: saved bytes by type of node") {
  for_each_llama_variant([](const auto& spec, const nlohmann::json& variant) {
    if (!variant.contains("by_op") || variant.at("ckpt")) return;
    CHECK(bytes_by_node(Run(spec, llama_job(variant)).saved()) ==
          measured_bytes_by_node(variant.at("by_op")));
  });
}

TEST_CASE("hf llama truth: FLOPs of forward, backward and recomputation") {
  for (const std::string& name : kLlamaFiles) {
    const nlohmann::json file = truth("hf/activations/" + name + ".json");
    const auto spec = formats::read_config(file.at("config").dump(), name);
    REQUIRE(spec.has_value());
    for (const nlohmann::json& entry : file.at("flops")) {
      CAPTURE(name);
      CAPTURE(entry.at("seq").get<int>());
      check_flops(*spec, entry);
    }
  }
}

TEST_CASE("hf llama truth: 22 timelines with the AdamW loop, every phase") {
  std::size_t timelines = 0;
  for_each_llama_variant([&](const auto& spec, const nlohmann::json& variant) {
    if (!variant.contains("alloc_adamw_forloop")) return;
    ++timelines;
    check_phases(Run(spec, llama_job(variant)), variant.at("alloc_adamw_forloop"));
  });
  CHECK(timelines == kTimelines);
}

TEST_CASE("hf llama truth: timelines with fused AdamW, every phase") {
  std::size_t timelines = 0;
  for_each_llama_variant([&](const auto& spec, const nlohmann::json& variant) {
    if (!variant.contains("alloc_adamw_fused")) return;
    ++timelines;
    plan::Job job = llama_job(variant);
    job.optimizer_impl = plan::OptimizerImpl::kTorchFused;
    check_phases(Run(spec, job), variant.at("alloc_adamw_fused"));
  });
  CHECK(timelines == kFusedTimelines);
}

}  // namespace plimsoll::test
