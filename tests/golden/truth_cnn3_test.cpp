// The inline CNN against cnn3 of tests/truth/hf, measured in PyTorch 2.13 on the CPU: every variant
// without autocast (12: ReLU in place or not, fp32 and bf16, batch 1, 4 and 7).
#include <cstdint>
#include <string>

#include "tests/golden/saved_list.hpp"
#include "tests/golden/truth_run.hpp"

namespace plimsoll::test {
namespace {

constexpr std::size_t kCnn3Variants = 12;

plan::Job cnn3_job(const nlohmann::json& variant) {
  plan::Job job;
  job.batch = variant.at("batch");
  job.precision =
      variant.at("dtype") == "bfloat16" ? plan::Precision::kBf16 : plan::Precision::kFp32;
  job.optimizer_impl = plan::OptimizerImpl::kTorchFused;
  return job;
}

// The layers of the file: three bias-free 3x3 convolutions, each with BatchNorm and ReLU, a 2x2
// pooling and a linear.
network::NetworkSpec cnn3_spec(const nlohmann::json& variant) {
  std::string text = "cnn:channels=16-24-32,image=32,classes=10,norm=batch,bias=off,pool=last";
  if (variant.at("relu_inplace")) text += ",relu=inplace";
  return inline_model(text);
}

template <class Check>
void for_each_cnn3_variant(Check check) {
  const nlohmann::json file = truth("hf/activations/cnn3.json");
  std::size_t seen = 0;
  for (const nlohmann::json& variant : file.at("variants")) {
    if (variant.at("amp_bf16")) continue;
    ++seen;
    CAPTURE(variant.at("relu_inplace").get<bool>());
    CAPTURE(variant.at("dtype").get<std::string>());
    CAPTURE(variant.at("batch").get<int>());
    check(variant);
  }
  CHECK(seen == kCnn3Variants);
}

}  // namespace

TEST_CASE("cnn3 truth: parameters and buffers") {
  const nlohmann::json file = truth("hf/activations/cnn3.json");
  for_each_cnn3_variant([&](const nlohmann::json& variant) {
    const network::Network net =
        network::build_network(cnn3_spec(variant), cnn3_job(variant).build_options());
    CHECK(net.parameter_elements() == file.at("params_unique"));
    std::int64_t statistics = 0;  // the recorder counted those that autograd saved
    for (const network::Buffer& b : net.buffers) {
      if (b.shape.empty()) continue;
      statistics += network::element_count(b.shape) * network::size_of(b.dtype);
    }
    CHECK(statistics == variant.at("buffer_bytes"));
  });
}

TEST_CASE("cnn3 truth: saved bytes, storages, tensors, parameter references, retained bytes") {
  for_each_cnn3_variant([](const nlohmann::json& variant) {
    const Run run(cnn3_spec(variant), cnn3_job(variant));
    const plan::Ledger& ledger = run.ledger();
    CHECK(ledger.distinct_hf.bytes == variant.at("saved_bytes"));
    CHECK(ledger.distinct_hf.count == variant.at("saved_storages"));
    CHECK(ledger.distinct.bytes - ledger.distinct_hf.bytes == variant.at("input_bytes"));
    CHECK(ledger.as_saved.count == variant.at("saved_tensors_recorded"));
    std::int64_t parameters = 0;
    for (const network::SavedRecord& r : run.saved()) {
      parameters += r.tag == timeline::Tag::kParameters ? 1 : 0;
    }
    CHECK(parameters == variant.at("saved_param_refs"));
    CHECK(run.retained() == variant.at("retained_after_fwd"));
    const Span dropped = run.measured_phase("delout_0");
    CHECK(dropped.start - dropped.end == logits_bytes(variant));
  });
}

TEST_CASE("cnn3 truth: the list of saved tensors, tensor by tensor, batch 4") {
  std::size_t lists = 0;
  for_each_cnn3_variant([&](const nlohmann::json& variant) {
    if (!variant.contains("saved_list")) return;
    ++lists;
    const Run run(cnn3_spec(variant), cnn3_job(variant));
    CHECK(first_difference(calculated_saves(run.saved()),
                           measured_saves(variant.at("saved_list"))) == "");
  });
  CHECK(lists == 4);
}

TEST_CASE("cnn3 truth: saved bytes by type of node") {
  for_each_cnn3_variant([](const nlohmann::json& variant) {
    CHECK(bytes_by_node(Run(cnn3_spec(variant), cnn3_job(variant)).saved()) ==
          measured_bytes_by_node(variant.at("by_op")));
  });
}

TEST_CASE("cnn3 truth: FLOPs of the forward pass and of forward with backward") {
  for_each_cnn3_variant([](const nlohmann::json& variant) {
    const plan::PassFlops flops = Run(cnn3_spec(variant), cnn3_job(variant)).flops();
    const nlohmann::json& forward = variant.at("flops").at("fwd");
    const nlohmann::json& both = variant.at("flops").at("fwd_bwd");
    CHECK(flops.forward.convolution == forward.at("aten.convolution"));
    CHECK(flops.backward.convolution == both.at("aten.convolution_backward"));
    CHECK(flops.forward.matmul == forward.at("aten.addmm"));
    CHECK(flops.backward.matmul == both.at("aten.mm"));
  });
}

TEST_CASE("cnn3 truth: every phase of two steps with fused AdamW") {
  for_each_cnn3_variant([](const nlohmann::json& variant) {
    check_phases(Run(cnn3_spec(variant), cnn3_job(variant)), variant.at("alloc").at("fused"));
  });
}

TEST_CASE("cnn3 truth: every phase of two steps with the AdamW loop of torch.optim") {
  for_each_cnn3_variant([](const nlohmann::json& variant) {
    plan::Job job = cnn3_job(variant);
    job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
    check_phases(Run(cnn3_spec(variant), job), variant.at("alloc").at("forloop"));
  });
}

}  // namespace plimsoll::test
