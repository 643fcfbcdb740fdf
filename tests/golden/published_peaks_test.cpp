// docs/accuracy.md: peaks that others measured on GPUs beside the plan of the same job, with what is
// known to differ. tests/truth/published_later.json; what it has of other parallelisms, compiled or
// quantised models is not comparable.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/units.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/checked_table.hpp"
#include "tests/unit/truth_files.hpp"

namespace plimsoll::test {
namespace {

using nlohmann::json;

// A measured case by its exact title.
const json& measured(const std::string& what) {
  static const json rows = truth("published_later.json");
  for (const json& row : rows) {
    if (row.at("what") == what) return row;
  }
  FAIL(what);
  return rows;
}

network::NetworkSpec peak_model(const json& config) {
  const auto spec = formats::read_config(config.dump(), "config.json");
  REQUIRE_MESSAGE(spec, (spec ? "" : format_error(spec.error())));
  return *spec;
}

json llama(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t feed_forward,
           bool tied = false) {
  return {{"model_type", "llama"},
          {"hidden_size", width},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"num_key_value_heads", 8},
          {"head_dim", 128},
          {"intermediate_size", feed_forward},
          {"vocab_size", 128256},
          {"max_position_embeddings", 131072},
          {"tie_word_embeddings", tied}};
}

plan::Plan planned(const network::NetworkSpec& spec, plan::Job job) {
  job.backend = network::Backend::kCuda;
  auto plan = plan::make_plan(spec, job);
  REQUIRE_MESSAGE(plan, (plan ? "" : format_error(plan.error())));
  return *std::move(plan);
}

std::string difference(double ours, double published) {
  return fmt::format("{:+.1f} %", 100 * (ours / published - 1));
}

// --- what one layer keeps

json layer_config(const std::string& type, std::int64_t width, std::int64_t heads,
                  std::int64_t kv_heads, std::int64_t head_dim, std::int64_t feed_forward) {
  return {{"model_type", type},           {"hidden_size", width},
          {"num_attention_heads", heads}, {"num_key_value_heads", kv_heads},
          {"head_dim", head_dim},         {"intermediate_size", feed_forward},
          {"vocab_size", 1000},           {"max_position_embeddings", 131072},
          {"sliding_window", nullptr}};
}

std::int64_t after_forward(json config, std::int64_t layers, const plan::Job& job) {
  config["num_hidden_layers"] = layers;
  const plan::Plan plan = planned(peak_model(config), job);
  for (const timeline::PhaseFigures& phase : plan.first.phases) {
    if (phase.key.phase == timeline::Phase::kForward) return phase.end;
  }
  FAIL("no forward");
  return 0;
}

// Bytes that one more layer leaves behind after forward, in copies of its bf16 hidden state; its
// weights apart.
double copies(const json& config, std::int64_t tokens) {
  plan::Job job;
  job.sequence = tokens;
  job.precision = plan::Precision::kBf16;
  job.semantics = network::Semantics::kHuggingFace;
  plan::Job shorter = job;
  shorter.sequence = tokens / 2;
  const auto layer = [&](const plan::Job& at) {
    return after_forward(config, 3, at) - after_forward(config, 2, at);
  };
  const std::int64_t width = config.at("hidden_size");
  return static_cast<double>(layer(job) - layer(shorter)) /
         static_cast<double>((tokens - shorter.sequence) * width * 2);
}

std::string layers_table() {
  struct Row {
    const char* model;
    json config;
  };
  const std::vector<Row> rows = {
      {"SmolLM2-360M", layer_config("llama", 960, 15, 5, 64, 2560)},
      {"Llama-3.1-8B-Instruct", layer_config("llama", 4096, 32, 8, 128, 14336)},
      {"Mistral-7B-Instruct-v0.3", layer_config("mistral", 4096, 32, 8, 128, 14336)},
      {"DeepSeek-R1-0528-Qwen3-8B", layer_config("qwen3", 4096, 32, 8, 128, 12288)},
      {"Qwen3-4B", layer_config("qwen3", 2560, 32, 8, 128, 9728)},
      {"gemma-1.1-2b-it", layer_config("gemma", 2048, 8, 1, 256, 16384)}};
  std::string text =
      "| copies of one layer | measured | plan | difference |\n|---|---:|---:|---:|\n";
  for (const Row& row : rows) {
    const json& published = measured(
        std::string("saved memory of one decoder layer forward, in copies of the bf16 hidden "
                    "state: ") +
        row.model);
    const double value = published.at("value");
    const double ours = copies(row.config, published.at("inputs").at("seq"));
    text += fmt::format("| {} | {:.1f} | {:.1f} | {} |\n", row.model, value, ours,
                        difference(ours, value));
  }
  return text;
}

// --- peaks of whole steps

struct Peak {
  const char* what;  // title in the file
  network::NetworkSpec spec;
  plan::Job job;
  double published = 0;  // bytes
  bool reserved = true;  // else what tensors request
  const char* differs = "";
};

plan::Job step(std::int64_t batch, std::int64_t sequence, plan::Precision precision,
               network::Checkpoint checkpoint, std::int32_t ranks = 1) {
  plan::Job job;
  job.batch = batch;
  job.sequence = sequence;
  job.precision = precision;
  job.checkpoint = checkpoint;
  job.ranks = ranks;
  if (ranks > 1) job.stage = shard::Stage::kParameters;
  return job;
}

std::vector<Peak> peaks() {
  using network::Checkpoint;
  using plan::Precision;
  const network::NetworkSpec llama8 = peak_model(llama(4096, 32, 32, 14336));
  const network::NetworkSpec wide = peak_model(llama(5120, 40, 40, 17920));
  const network::NetworkSpec llama3 = peak_model(llama(3072, 28, 24, 8192, true));
  std::vector<Peak> peaks;
  const auto value = [](const char* what, const char* key) {
    return measured(what).at("value").at(key).get<double>();
  };
  for (const auto& [what, ranks] : {std::pair{"torchtitan Llama 3.1 8B FSDP8 SAC bs2", 8},
                                    std::pair{"torchtitan Llama 3.1 8B FSDP128 SAC bs2", 128}}) {
    peaks.push_back({what, llama8, step(2, 8192, Precision::kMixed, Checkpoint::kMatmuls, ranks),
                     value(what, "peak_reserved_gib") * kGiB, true,
                     "its policy keeps every second product's result and attention's; FSDP2's "
                     "prefetch and buffers"});
  }
  peaks.push_back({"KempnerForge 7B 1 GPU", llama8,
                   step(4, 4096, Precision::kBf16, Checkpoint::kBlock),
                   value("KempnerForge 7B 1 GPU", "mem_per_gpu_gb") * 1e9, true,
                   "compiled; its unit GB is not defined"});
  for (const auto& [what, ranks] :
       {std::pair{"KempnerForge 7B FSDP2", 2}, std::pair{"KempnerForge 7B FSDP4", 4}}) {
    peaks.push_back({what, llama8, step(4, 4096, Precision::kMixed, Checkpoint::kBlock, ranks),
                     value(what, "mem_per_gpu_gb") * 1e9, true,
                     "compiled; its unit GB is not defined; FSDP2's buffers"});
  }
  peaks.push_back({"KempnerForge 13B FSDP8", wide,
                   step(4, 4096, Precision::kMixed, Checkpoint::kBlock, 8),
                   value("KempnerForge 13B FSDP8", "mem_per_gpu_gb") * 1e9, true,
                   "its unit GB is not defined; FSDP2's buffers"});
  peaks.push_back(
      {"torchtune Llama 3.2 3B ladder +packed", llama3,
       step(2, 4096, Precision::kBf16, Checkpoint::kNone),
       measured("torchtune Llama 3.2 3B ladder +packed").at("value").get<double>() * kGiB, false,
       "its own operations; logits in fp32"});
  return peaks;
}

std::string peaks_table() {
  std::string text =
      "| step | measured | plan | difference | what differs |\n|---|---:|---:|---:|---|\n";
  for (const Peak& peak : peaks()) {
    const plan::Plan plan = planned(peak.spec, peak.job);
    const auto ours =
        static_cast<double>(peak.reserved ? *plan.memory.reserved.bytes : plan.memory.requested);
    text += fmt::format("| {} | {:.1f} GiB | {:.1f} GiB | {} | {} |\n", peak.what,
                        peak.published / kGiB, ours / kGiB, difference(ours, peak.published),
                        peak.differs);
  }
  return text;
}

TEST_CASE("docs/accuracy.md: layers and steps that others measured on GPUs") {
  check_tables("docs/accuracy.md",
               {{"measured layers", layers_table()}, {"measured steps", peaks_table()}});
}

}  // namespace
}  // namespace plimsoll::test
