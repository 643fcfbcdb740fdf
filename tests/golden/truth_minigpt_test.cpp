// The inline GPT against the hand-written MiniGPT of tests/truth/hf, measured in PyTorch 2.13 on the
// CPU: every variant without autocast (16: flash and math, fp32 and bf16, batch 1 to 4).
#include <cstdint>
#include <string>

#include "tests/golden/saved_list.hpp"
#include "tests/golden/truth_run.hpp"

namespace plimsoll::test {
namespace {

constexpr std::size_t kMiniGptVariants = 16;

plan::Job minigpt_job(const nlohmann::json& variant) {
  plan::Job job;
  job.batch = variant.at("batch");
  job.sequence = variant.at("seq");
  job.precision =
      variant.at("dtype") == "bfloat16" ? plan::Precision::kBf16 : plan::Precision::kFp32;
  job.attention = variant.at("sdpa_backend") == "math" ? network::AttentionKernel::kMath
                                                       : network::AttentionKernel::kFlash;
  job.optimizer_impl = plan::OptimizerImpl::kTorchFused;
  job.token_first = true;  // Python evaluates tok(ids) + pos(arange) from the left
  return job;
}

network::NetworkSpec minigpt_spec(const nlohmann::json& file) {
  const nlohmann::json& a = file.at("arch");
  const auto number = [&](const char* key) {
    return std::to_string(a.at(key).get<std::int64_t>());
  };
  return inline_model("minigpt:d=" + number("d") + ",L=" + number("L") + ",V=" + number("V") +
                      ",s=" + number("T") + ",heads=" + number("heads"));
}

// Calls check(spec, variant) for each of the 16.
template <class Check>
void for_each_minigpt_variant(Check check) {
  const nlohmann::json file = truth("hf/activations/minigpt.json");
  const network::NetworkSpec spec = minigpt_spec(file);
  std::size_t seen = 0;
  for (const nlohmann::json& variant : file.at("variants")) {
    if (variant.at("amp_bf16")) continue;
    ++seen;
    CAPTURE(variant.at("sdpa_backend").get<std::string>());
    CAPTURE(variant.at("dtype").get<std::string>());
    CAPTURE(variant.at("batch").get<int>());
    check(spec, variant);
  }
  CHECK(seen == kMiniGptVariants);
}

}  // namespace

TEST_CASE("minigpt truth: saved bytes, storages, tensors, parameter references, retained bytes") {
  for_each_minigpt_variant([](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    const Run run(spec, minigpt_job(variant));
    const plan::Ledger& ledger = run.ledger();
    CHECK(ledger.distinct_hf.bytes == variant.at("saved_bytes"));
    CHECK(ledger.distinct_hf.count == variant.at("saved_storages"));
    CHECK(ledger.as_saved.count == variant.at("saved_tensors_recorded"));
    CHECK(ledger.as_saved.count - ledger.without_parameters.count ==
          variant.at("saved_param_refs"));
    CHECK(run.retained() == variant.at("retained_after_fwd"));
  });
}

TEST_CASE("minigpt truth: the list of saved tensors, tensor by tensor, batch 1 and 4") {
  std::size_t lists = 0;
  for_each_minigpt_variant([&](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    if (!variant.contains("saved_list")) return;
    ++lists;
    // With one sequence ids and labels are views of one storage of 65 ids.
    const bool inputs_share = variant.at("batch") == 1;
    const Run run(spec, minigpt_job(variant));
    CHECK(first_difference(calculated_saves(run.saved(), inputs_share),
                           measured_saves(variant.at("saved_list"), inputs_share)) == "");
  });
  CHECK(lists == kMiniGptVariants / 2);
}

TEST_CASE("minigpt truth: saved bytes by type of node") {
  for_each_minigpt_variant([](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    CHECK(bytes_by_node(Run(spec, minigpt_job(variant)).saved()) ==
          measured_bytes_by_node(variant.at("by_op")));
  });
}

TEST_CASE("minigpt truth: FLOPs of the forward pass and of forward with backward") {
  for_each_minigpt_variant([](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    const plan::PassFlops flops = Run(spec, minigpt_job(variant)).flops();
    const nlohmann::json& forward = variant.at("flops").at("fwd");
    const nlohmann::json& both = variant.at("flops").at("fwd_bwd");
    CHECK(flops.forward.matmul == forward.at("aten.mm"));
    CHECK(flops.forward.matmul + flops.backward.matmul == both.at("aten.mm"));
    if (variant.at("sdpa_backend") != "math") return;  // torch counts 0 for its flash kernel
    CHECK(flops.forward.attention_full == forward.at("aten.bmm"));
    CHECK(flops.forward.attention_full + flops.backward.attention_full == both.at("aten.bmm"));
  });
}

TEST_CASE("minigpt truth: every phase of two steps with fused AdamW") {
  for_each_minigpt_variant([](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    check_phases(Run(spec, minigpt_job(variant)), variant.at("alloc").at("fused"));
  });
}

TEST_CASE("minigpt truth: every phase of two steps with the AdamW loop of torch.optim") {
  for_each_minigpt_variant([](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    plan::Job job = minigpt_job(variant);
    job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
    check_phases(Run(spec, job), variant.at("alloc").at("forloop"));
  });
}

TEST_CASE("minigpt truth: logits and parameters") {
  const nlohmann::json file = truth("hf/activations/minigpt.json");
  for_each_minigpt_variant([&](const network::NetworkSpec& spec, const nlohmann::json& variant) {
    const plan::Job job = minigpt_job(variant);
    const network::Network net = network::build_network(spec, job.build_options());
    CHECK(net.parameter_elements() == file.at("params_unique"));
    const Span dropped = Run(spec, job).measured_phase("delout_0");
    CHECK(dropped.start - dropped.end == logits_bytes(variant));
  });
}

}  // namespace plimsoll::test
