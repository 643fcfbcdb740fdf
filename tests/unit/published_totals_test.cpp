// The published totals of models.json: its neutral description of 64 models in the words of the
// config.json that each of them has.
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/formats/inventory/inventory.hpp"

#include "tests/unit/truth_files.hpp"

namespace {

using namespace plimsoll::formats;
using nlohmann::json;
using plimsoll::test::truth;

// The first prefix that fits names the model type.
std::string model_type_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kPrefixes = {
      {{"DeepSeek-V2", "deepseek_v2"},
       {"GPT-3", "gpt2"},
       {"gpt2", "gpt2"},
       {"Gemma-2-", "gemma2"},
       {"Gemma-2B", "gemma"},
       {"Gemma-3", "gemma3_text"},
       {"Llama", "llama"},
       {"TinyLlama", "llama"},
       {"Mistral", "mistral"},
       {"Mixtral", "mixtral"},
       {"OLMo", "olmo"},
       {"Phi-3", "phi3"},
       {"phi-4", "phi3"},
       {"phi-2", "phi"},
       {"Qwen1.5-MoE", "qwen2_moe"},
       {"Qwen2.5", "qwen2"},
       {"Qwen3-235B", "qwen3_moe"},
       {"Qwen3-30B", "qwen3_moe"},
       {"Qwen3", "qwen3"},
       {"bloom", "bloom"},
       {"falcon", "falcon"},
       {"gpt-j", "gptj"},
       {"opt", "opt"},
       {"pythia", "gpt_neox"},
       {"t5", "t5"}}};
  for (const auto& [prefix, type] : kPrefixes) {
    if (name.starts_with(prefix)) return std::string(type);
  }
  return "";
}

void copy(const json& from, const char* key, json& to, const char* as = nullptr) {
  if (from.contains(key)) to[as == nullptr ? key : as] = from.at(key);
}

void add_experts(const json& c, json& config) {
  if (!c.contains("num_experts")) return;
  copy(c, "num_experts_per_tok", config);
  copy(c, "moe_intermediate_size", config);
  copy(c, "num_experts", config, "num_local_experts");
  copy(c, "num_experts", config, "n_routed_experts");
  copy(c, "num_experts", config);
  copy(c, "first_dense_layers", config, "first_k_dense_replace");
  copy(c, "shared_expert_intermediate_size", config);
  const std::int64_t shared = c.value("shared_expert_intermediate_size", 0);
  config["n_shared_experts"] = shared / c.at("moe_intermediate_size").get<std::int64_t>();
  if (config.at("model_type") == "mixtral") {
    config["intermediate_size"] = c.at("moe_intermediate_size");
    config.erase("num_experts");
  }
  if (config.at("model_type") == "deepseek_v2") config.erase("num_experts");
  if (config.at("model_type") == "qwen3_moe") config.erase("num_experts");
}

json t5_config(const json& c) {
  json config = {{"model_type", "t5"}};
  for (const char* key : {"d_model", "d_kv", "num_heads", "d_ff", "num_decoder_layers",
                          "relative_attention_num_buckets", "tie_word_embeddings", "vocab_size"}) {
    copy(c, key, config);
  }
  copy(c, "num_encoder_layers", config, "num_layers");
  config["feed_forward_proj"] = c.at("gated_mlp") == true ? "gated-gelu" : "relu";
  return config;
}

// What only one family says in its own way.
void add_own_words(const std::string& name, const json& c, json& config) {
  const std::string type = config.at("model_type");
  if (type == "gpt2" || type == "gptj") {
    copy(c, "intermediate_size", config, "n_inner");
    if (c.value("position_rows", 0) > 0) config["n_positions"] = c.at("position_rows");
  }
  if (type == "opt") {
    copy(c, "intermediate_size", config, "ffn_dim");
    copy(c, "word_embed_proj_dim", config);
    config["do_layer_norm_before"] = c.at("final_norms") == 1;
    config["max_position_embeddings"] = c.at("position_rows").get<std::int64_t>() - 2;
  }
  if (type == "falcon") {
    copy(c, "num_key_value_heads", config, "num_kv_heads");
    config["new_decoder_architecture"] = name == "falcon-40b";
    copy(c, "intermediate_size", config, "ffn_hidden_size");
  }
  if (type == "phi" || type == "gptj") CHECK(c.at("bias").at("lm_head") == true);
}

json published_config(const std::string& name, const json& c) {
  if (model_type_of(name) == "t5") return t5_config(c);
  json config = {{"model_type", model_type_of(name)}};
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "vocab_size", "num_key_value_heads", "head_dim", "tie_word_embeddings", "q_lora_rank",
        "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
    copy(c, key, config);
  }
  add_experts(c, config);
  add_own_words(name, c, config);
  return config;
}

TEST_CASE("published totals, and active parameters where they are stated") {
  int verified = 0;
  int active = 0;
  for (const json& model : truth("models.json")) {
    const std::string name = model.at("name");
    CAPTURE(name);
    const json config = published_config(name, model.at("config"));
    CAPTURE(config.dump());
    const auto keys = class_config(config, "config.json");
    REQUIRE_MESSAGE(keys, (keys ? "" : format_error(keys.error())));
    const auto counted = read_inventory(*keys);
    REQUIRE_MESSAGE(counted, (counted ? "" : format_error(counted.error())));
    CHECK(counted->inventory.elements() == model.at("params_total").get<std::int64_t>());
    verified += model.at("confidence").get<std::string>().starts_with("verified") ? 1 : 0;
    if (!model.contains("params_active") || model.at("params_active").is_null()) continue;
    CHECK(counted->inventory.active_elements() == model.at("params_active").get<std::int64_t>());
    ++active;
  }
  CHECK(verified == 52);
  CHECK(active >= 6);
}

}  // namespace
