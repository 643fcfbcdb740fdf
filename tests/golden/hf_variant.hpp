// A recorded variant of tests/truth/hf against the calculated run of the same job: every figure that
// differs, by name.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/golden/truth_run.hpp"

namespace plimsoll::test {

struct Difference {
  std::string what;  // "saved_bytes", "alloc_adamw_forloop bwd_1 peak", ...
  std::int64_t measured = 0;
  std::int64_t calculated = 0;
  std::int64_t size() const { return std::abs(measured - calculated); }
};

// "sdpa float32 ckpt 2x64".
inline std::string variant_name(const nlohmann::json& v) {
  std::string name = v.at("attn").get<std::string>() + " " + v.at("dtype").get<std::string>();
  if (v.at("amp_bf16")) name += " autocast";
  if (v.at("ckpt")) name += " ckpt";
  if (v.at("dropout") != 0) name += " dropout";
  return name + fmt::format(" {}x{}", v.at("batch").get<int>(), v.at("seq").get<int>());
}

inline plan::Job hf_job(const network::NetworkSpec& spec, const nlohmann::json& v) {
  plan::Job job;
  job.batch = v.at("batch");
  job.sequence = v.at("seq");
  job.precision = v.at("dtype") == "bfloat16" ? plan::Precision::kBf16 : plan::Precision::kFp32;
  if (v.at("amp_bf16")) job.precision = plan::Precision::kAutocast;
  if (v.at("attn") == "eager") job.attention = network::AttentionKernel::kEager;
  job.dropout = v.at("dropout");
  job.checkpoint = v.at("ckpt") ? network::Checkpoint::kBlock : network::Checkpoint::kNone;
  job.semantics = network::Semantics::kHuggingFace;
  job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
  job.shared_targets = true;  // labels = input_ids
  if (spec.family == network::Family::kEncoder) job.loss_dtype = job.recipe().compute;
  return job;
}

class VariantComparison {
 public:
  VariantComparison(const network::NetworkSpec& spec, const nlohmann::json& variant)
      : spec_(spec), variant_(variant), job_(hf_job(spec, variant)) {}

  std::vector<Difference> differences() {
    const Run run(spec_, job_);
    compare_saved(run);
    if (variant_.contains("retained_after_fwd")) {
      compare("retained_after_fwd", variant_.at("retained_after_fwd"), run.retained());
    }
    if (variant_.contains("alloc_adamw_forloop")) {
      compare_phases(run, "alloc_adamw_forloop");
    }
    if (variant_.contains("alloc_adamw_fused")) {
      plan::Job fused = job_;
      fused.optimizer_impl = plan::OptimizerImpl::kTorchFused;
      compare_phases(Run(spec_, fused), "alloc_adamw_fused");
    }
    return std::move(differences_);
  }

 private:
  void compare(const std::string& what, std::int64_t measured, std::int64_t calculated) {
    if (measured != calculated) differences_.push_back({what, measured, calculated});
  }

  // What hooks see: distinct storages of activations; of a checkpointed layer its input, not the
  // random state in its closure.
  void compare_saved(const Run& run) {
    const std::vector<std::int64_t> by_layer = run.saved_by_layer(spec_.layers);
    std::int64_t bytes = 0;
    for (std::int64_t b : by_layer) bytes += b;
    compare("saved_bytes", variant_.at("saved_bytes"), bytes);
    compare("saved_storages", variant_.at("saved_storages"), run.saved_storages());
    const nlohmann::json& layers = variant_.at("layers");
    compare("layers", static_cast<std::int64_t>(layers.size()), layers_seen(layers));
    for (std::size_t i = 0; i < layers.size(); ++i) {
      compare(fmt::format("layers {}", i), layers[i], by_layer[i]);
    }
  }

  // Layers without a saved tensor of their own are missing from the list of a checkpointed run.
  std::int64_t layers_seen(const nlohmann::json& layers) const {
    return layers.empty() ? 0 : spec_.layers;
  }

  void compare_phases(const Run& run, const std::string& timeline) {
    for (const auto& [name, phase] : variant_.at(timeline).at("phases").items()) {
      const Span seen = run.measured_phase(name);
      const Span expected = span_of(phase);
      const std::string place = fmt::format("{} {} ", timeline, name);
      compare(place + "start", expected.start, seen.start);
      compare(place + "peak", expected.peak, seen.peak);
      compare(place + "end", expected.end, seen.end);
    }
  }

  const network::NetworkSpec& spec_;
  const nlohmann::json& variant_;
  const plan::Job job_;
  std::vector<Difference> differences_;
};

}  // namespace plimsoll::test
