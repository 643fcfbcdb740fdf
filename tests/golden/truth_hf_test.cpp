// Every dense model of tests/truth/hf against transformers 5.24 on PyTorch 2.13 (CPU), read from its
// config, with the semantics hf: eager and sdpa, fp32, bf16 and autocast, dropout, checkpointing.
// docs/accuracy.md has the table that this test checks.
#include <fstream>
#include <iterator>

#include "plimsoll/formats/config.hpp"

#include "tests/golden/hf_variant.hpp"

namespace plimsoll::test {
namespace {

struct TruthFile {
  const char* name;
  std::size_t variants;
};
constexpr TruthFile kFiles[] = {{"llama", 34},
                                {"llama-3.2-tied", 34},
                                {"llama-mha-large", 24},
                                {"mistral-nemo-like", 34},
                                {"qwen3", 24},
                                {"smollm3", 24},
                                {"olmo", 24},
                                {"olmo3", 24},
                                {"stablelm", 24},
                                {"stablelm-12b-like", 24},
                                {"nemotron", 24},
                                {"cohere2", 24},
                                {"phi3", 24},
                                {"exaone4", 24},
                                {"hunyuan_v1_dense", 24},
                                {"starcoder2", 24},
                                {"gemma", 24},
                                {"gemma2", 14},
                                {"gemma3", 24},
                                {"gpt_neox", 34},
                                {"phi", 24},
                                {"persimmon", 24},
                                {"gptj", 34},
                                {"opt", 34},
                                {"gpt2", 34},
                                {"bloom", 18},
                                {"falcon-7b-like", 34},
                                {"falcon-rw-like", 34},
                                {"biogpt", 24},
                                {"bert", 24},
                                {"roberta", 24}};

struct FileResult {
  std::size_t variants = 0;
  std::size_t exact = 0;
  std::size_t timelines = 0;  // of both optimizers
  std::int64_t largest = 0;   // bytes or storages
};

FileResult check_file(const TruthFile& file) {
  FileResult result;
  const nlohmann::json truth_file = truth(std::string("hf/activations/") + file.name + ".json");
  const auto spec = formats::read_config(truth_file.at("config").dump(), file.name);
  if (!spec) {
    FAIL_CHECK(fmt::format("{}: {}", file.name, spec.error().what));
    return result;
  }
  for (const nlohmann::json& variant : truth_file.at("variants")) {
    ++result.variants;
    for (const char* timeline : {"alloc_adamw_forloop", "alloc_adamw_fused"}) {
      result.timelines += variant.contains(timeline) ? 1U : 0U;
    }
    const std::vector<Difference> differences = VariantComparison(*spec, variant).differences();
    if (differences.empty()) ++result.exact;
    for (const Difference& d : differences) {
      result.largest = std::max(result.largest, d.size());
      FAIL_CHECK(fmt::format("{}, {}: {}: measured {}, calculated {}", file.name,
                             variant_name(variant), d.what, d.measured, d.calculated));
    }
  }
  CHECK(result.variants == file.variants);
  return result;
}

std::string table_line(const TruthFile& file, const FileResult& r) {
  return fmt::format("| {} | {} | {} | {} | {} |", file.name, r.variants, r.timelines, r.exact,
                     r.largest);
}

std::string text_of_accuracy() {
  std::ifstream stream(PLIMSOLL_TRUTH_DIR "/../../docs/accuracy.md");
  REQUIRE(stream.good());
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("hf truth: saved bytes by layer, storages and every phase of every variant") {
  const std::string accuracy = text_of_accuracy();
  std::size_t exact = 0;
  for (const TruthFile& file : kFiles) {
    const FileResult result = check_file(file);
    exact += result.exact;
    const std::string line = table_line(file, result);
    CHECK_MESSAGE(accuracy.find(line) != std::string::npos, "docs/accuracy.md lacks: ", line);
  }
  CHECK(exact == 818);
}

}  // namespace plimsoll::test
