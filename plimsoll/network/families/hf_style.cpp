#include "plimsoll/network/families/hf_style.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll::network::hf {
namespace {

// Types whose layers are llama's, step by step.
constexpr std::array<std::string_view, 7> kLlamaTypes = {
    "llama", "mistral", "qwen2", "qwen3", "smollm3", "internlm3", "hunyuan_v1_dense"};

Style gemma(const NetworkSpec& spec) {
  Style s;
  s.norm = NormStyle::kOnePlus;
  s.scaled_embedding = true;
  if (spec.model_type == "gemma") return s;
  s.layer = LayerStyle::kBothNorms;
  s.sdpa = spec.model_type != "gemma2";
  s.tables_by_kind = spec.model_type == "gemma3_text";
  return s;
}

Style olmo(const NetworkSpec& spec) {
  Style s;
  s.rotary = RotaryStyle::kWideTables;
  s.norm = NormStyle::kPlain;
  if (spec.model_type == "olmo") return s;
  s.norm = NormStyle::kWeightFirst;
  s.layer = LayerStyle::kOutputNorm;
  s.qk_norm = QkNormPlace::kOnWhole;
  s.tables_by_kind = spec.model_type == "olmo3";
  return s;
}

Style stablelm(const NetworkSpec& spec) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.join = JoinStyle::kInAttention;
  if (spec.architecture.parallel) s.layer = LayerStyle::kParallel;
  s.mlp_dropout = true;
  s.names_branch = true;
  return s;
}

Style gpt_neox(const NetworkSpec& spec) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.branch_first = true;
  s.parallel_sum = ParallelSum::kMlpFirst;
  s.join = JoinStyle::kTogether;
  s.fused = FusedStyle::kChunks;
  if (spec.architecture.parallel) s.layer = LayerStyle::kParallel;
  s.mlp_first = true;
  s.embedding_dropout = s.attention_dropout = s.mlp_dropout = true;
  s.order = ParameterOrder::kNormsFirst;
  return s;
}

Style cohere2(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kCohere;
  s.layer = LayerStyle::kParallel;
  s.rotary = RotaryStyle::kNeighboursWide;
  return s;
}

Style exaone4(const NetworkSpec&) {
  Style s;
  s.layer = LayerStyle::kOutputNorm;
  return s;
}

Style phi(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.layer = LayerStyle::kParallel;
  s.parallel_sum = ParallelSum::kBranchesFirst;
  s.join = JoinStyle::kInAttention;
  s.composed_gelu = true;
  s.embedding_dropout = s.attention_dropout = s.mlp_dropout = true;
  return s;
}

Style phi3(const NetworkSpec&) {
  Style s;
  s.join = JoinStyle::kOneByOne;
  s.fused = FusedStyle::kSlices;
  s.attention_dropout = s.mlp_dropout = true;
  s.order = ParameterOrder::kOutputFirst;
  return s;
}

Style nemotron(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kOnePlusCall;
  s.join = JoinStyle::kTogether;
  return s;
}

Style starcoder2(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.embedding_dropout = s.attention_dropout = s.mlp_dropout = true;
  return s;
}

Style persimmon(const NetworkSpec& spec) {
  Style s = starcoder2(spec);
  s.qk_norm = QkNormPlace::kOnRows;
  s.join = JoinStyle::kInAttention;
  s.fused = FusedStyle::kSelect;
  s.embedding_dropout = s.attention_dropout = false;
  s.mlp_dropout = true;
  s.mlp_first = true;
  return s;
}

Style gptj(const NetworkSpec& spec) {
  Style s = phi(spec);
  s.softmax = SoftmaxStyle::kWideScores;
  s.rotary = RotaryStyle::kGptj;
  return s;
}

Style gpt2(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.softmax = SoftmaxStyle::kOwn;
  s.branch_first = true;
  s.copies_heads_back = false;
  s.column_weights = true;
  s.composed_gelu = true;
  s.embedding_dropout = s.attention_dropout = s.mlp_dropout = true;
  s.positional_mask = true;
  s.names_branch = true;
  return s;
}

Style opt(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.scaled_queries = true;
  s.flat_mlp = true;
  s.attention_dropout = s.mlp_dropout = true;
  s.ids_per_row = true;
  s.inline_mlp = true;
  return s;
}

Style biogpt(const NetworkSpec& spec) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.softmax = SoftmaxStyle::kOwn;
  s.embedding_dropout = s.attention_dropout = s.activation_dropout = s.mlp_dropout = true;
  s.scaled_embedding = spec.architecture.embedding_scale != 1;
  s.inline_mlp = true;
  return s;
}

Style bert(const NetworkSpec& spec) {
  Style s = biogpt(spec);
  s.layer = LayerStyle::kPostNorm;
  s.position_ids = false;
  s.activation_dropout = false;
  s.separate_output = spec.model_type != "distilbert";
  s.attention_dropout = spec.model_type != "distilbert";
  s.inline_mlp = false;
  return s;
}

Style bloom(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.layer = LayerStyle::kBloom;
  s.position_ids = false;
  s.sdpa = false;
  return s;
}

Style falcon(const NetworkSpec&) {
  Style s;
  s.norm = NormStyle::kLibrary;
  s.layer = LayerStyle::kFalcon;
  return s;
}

Style qwen3(const NetworkSpec& spec) {
  Style s;
  s.qk_norm =
      spec.model_type == "hunyuan_v1_dense" ? QkNormPlace::kAfterRotary : QkNormPlace::kOnRows;
  return s;
}

struct Entry {
  std::string_view type;
  Style (*style)(const NetworkSpec&);
};
constexpr std::array<Entry, 24> kOthers = {{
    {"gemma", gemma},
    {"gemma2", gemma},
    {"gemma3_text", gemma},
    {"olmo", olmo},
    {"olmo3", olmo},
    {"olmo2", olmo},
    {"stablelm", stablelm},
    {"gpt_neox", gpt_neox},
    {"cohere2", cohere2},
    {"exaone4", exaone4},
    {"phi", phi},
    {"phi3", phi3},
    {"nemotron", nemotron},
    {"starcoder2", starcoder2},
    {"persimmon", persimmon},
    {"gptj", gptj},
    {"gpt2", gpt2},
    {"opt", opt},
    {"biogpt", biogpt},
    {"bert", bert},
    {"distilbert", bert},
    {"roberta", bert},
    {"bloom", bloom},
    {"falcon", falcon},
}};

const Entry* entry_of(const NetworkSpec& spec) {
  const auto* found = std::find_if(kOthers.begin(), kOthers.end(),
                                   [&](const Entry& e) { return e.type == spec.model_type; });
  return found == kOthers.end() ? nullptr : &*found;
}

bool like_llama(const NetworkSpec& spec) {
  if (spec.family == Family::kLlama) return true;
  return std::find(kLlamaTypes.begin(), kLlamaTypes.end(), spec.model_type) != kLlamaTypes.end();
}

}  // namespace

std::string unknown_part(const NetworkSpec& spec) {
  if (!like_llama(spec) && entry_of(spec) == nullptr) {
    return std::string(spec.model_type.empty() ? name(spec.family) : spec.model_type);
  }
  // Its newer kind writes another attention.
  const bool groups = spec.kv_heads != 1 && spec.kv_heads != spec.heads;
  if (spec.model_type != "falcon" || !groups) return "";
  return fmt::format("falcon with {} key/value heads for {} heads", spec.kv_heads, spec.heads);
}

std::string known_types() {
  std::vector<std::string_view> types(kLlamaTypes.begin(), kLlamaTypes.end());
  for (const Entry& e : kOthers) types.push_back(e.type);
  std::sort(types.begin(), types.end());
  return fmt::format("{}", fmt::join(types, ", "));
}

Style style_of(const NetworkSpec& spec) {
  if (const Entry* entry = entry_of(spec)) return entry->style(spec);
  return qwen3(spec);
}

}  // namespace plimsoll::network::hf
