// The three spellings of a config give the keys that the class of transformers holds.
#include "plimsoll/formats/class_config.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_defaults.hpp"
#include "plimsoll/formats/rope_parameters.hpp"

#include "tests/unit/truth_files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace plimsoll::formats;
using nlohmann::json;

ClassConfig read_class(const json& config) {
  auto result = class_config(config, "config.json");
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : plimsoll::format_error(result.error())));
  return *result;
}

// Every truth file that has a config of a model type, full-size and scaled-down.
std::vector<json> truth_configs() {
  std::vector<json> models;
  for (const char* folder : {"/hf/models", "/hf/activations"}) {
    for (const auto& entry : fs::directory_iterator(PLIMSOLL_TRUTH_DIR + std::string(folder))) {
      std::ifstream stream(entry.path());
      json model = json::parse(stream);
      if (model.contains("config") && model.at("config").contains("model_type")) {
        models.push_back(std::move(model));
      }
    }
  }
  return models;
}

// transformers writes 1 for 1.0 and the other way round.
bool same(const json& a, const json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

const std::set<std::string>& keys_without_rule() {
  // Names of stages and of outputs, settings of runs, and parts that are configs themselves.
  static const std::set<std::string> kKeys = {
      "use_cache",    "text_config",  "vision_config",         "_sliding_window_pattern",
      "stage_names",  "out_features", "out_indices",           "_out_features",
      "_out_indices", "eos_token_id", "scale_decoder_outputs", "decoder_start_token_id"};
  return kKeys;
}

bool is_dropout(const std::string& key) {
  return key.ends_with("dropout") || key.ends_with("pdrop") || key.ends_with("dropout_prob");
}

void check_against_dump(const ClassConfig& config, const json& dump) {
  for (const auto& item : class_defaults(config.model_type)->items()) {
    const std::string& key = item.key();
    if (!dump.contains(key) || keys_without_rule().contains(key)) continue;
    const json& theirs = dump.at(key);
    // A head size that the class leaves null is hidden_size / num_attention_heads all the same.
    if (key == "head_dim" && theirs.is_null()) continue;
    // The scaled-down models were dumped after their dropouts were switched off.
    if (theirs.is_number() && theirs.get<double>() == 0 && is_dropout(key)) continue;
    CAPTURE(key);
    CHECK_MESSAGE(same(config.keys->at(key), theirs),
                  config.keys->at(key).dump() << " but the class has " << theirs.dump());
  }
}

TEST_CASE("the short file, the full dump and the saved file give the class's keys") {
  std::set<std::string> types;
  int files = 0;
  for (const json& model : truth_configs()) {
    CAPTURE(model.at("name").get<std::string>());
    const json& dump = model.at("config");
    const ClassConfig full = read_class(dump);
    types.insert(full.model_type);
    ++files;
    check_against_dump(full, dump);
    for (const char* spelling : {"config_input", "config_json_saved"}) {
      if (!model.contains(spelling)) continue;
      CAPTURE(spelling);
      json file = model.at(spelling);
      file["model_type"] = full.model_type;
      const ClassConfig other = read_class(file);
      check_against_dump(other, dump);
    }
  }
  CHECK(files >= 80);
  CHECK(types.size() >= 60);
}

TEST_CASE("aliases: the file's spelling is read, kept for messages, and may not contradict") {
  const ClassConfig config =
      read_class({{"model_type", "gpt2"}, {"hidden_size", 64}, {"n_head", 4}});
  CHECK(config.keys->at("n_embd") == 64);
  CHECK(config.keys->at("n_layer") == 12);
  CHECK(config.given->contains("n_embd"));
  CHECK_FALSE(config.given->contains("n_layer"));
  CHECK(config.spelled.at("n_embd") == "hidden_size");
  const auto refused =
      class_config({{"model_type", "gpt2"}, {"hidden_size", 64}, {"n_embd", 65}}, "config.json");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().where == "config.json:/hidden_size");
}

TEST_CASE("a file that wraps a config is refused") {
  const json config = {{"hidden_size", 64}, {"num_hidden_layers", 2}};
  const auto refused =
      class_config({{"model_type", "mixtral"}, {"name", "x"}, {"config", config}}, "model.json");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().where == "model.json:/config");
  CHECK(refused.error().what ==
        "holds the keys of a mixtral model, expected them at the top of the file");
  CHECK(class_config({{"model_type", "mixtral"}, {"vocab_size", 9}, {"config", config}}, "m"));
  CHECK(class_config(
      {{"model_type", "mixtral"}, {"architectures", {"M"}}, {"quantization_config", {{"bits", 4}}}},
      "m"));
  CHECK(class_config(
      {{"model_type", "mixtral"}, {"architectures", {"M"}}, {"generation", {{"eos_token_id", 2}}}},
      "m"));
}

TEST_CASE("an old key wins over the key that replaced it") {
  const ClassConfig config = read_class({{"model_type", "lfm2"},
                                         {"block_ff_dim", 300},
                                         {"intermediate_size", 500},
                                         {"tie_embedding", false}});
  CHECK(config.keys->at("intermediate_size") == 300);
  CHECK(config.keys->at("tie_word_embeddings") == false);
  CHECK(config.spelled.at("intermediate_size") == "block_ff_dim");
}

TEST_CASE("rotary settings: every home, the class's own values, two sets") {
  const auto settings = [](const json& config, const char* layer) {
    const ClassConfig read_config = read_class(config);
    const RopeSettings rope = rope_settings(read_config.keys->at("rope_parameters"), layer);
    return json{rope.theta, rope.partial, std::string(rope.type)};
  };
  CHECK(settings({{"model_type", "llama"}, {"vocab_size", 9}}, "") ==
        json{10000.0, 1.0, "default"});
  CHECK(settings({{"model_type", "llama"}, {"rope_theta", 5e5}}, "") == json{5e5, 1.0, "default"});
  CHECK(settings({{"model_type", "llama"},
                  {"rope_theta", 5e5},
                  {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}},
                 "") == json{5e5, 1.0, "linear"});
  CHECK(settings({{"model_type", "gpt_neox"}, {"rotary_pct", 1.0}, {"rotary_emb_base", 20000}},
                 "") == json{20000.0, 1.0, "default"});
  CHECK(settings({{"model_type", "phi"}, {"vocab_size", 9}}, "") == json{10000.0, 0.5, "default"});
  const json gemma = {
      {"model_type", "gemma3_text"}, {"vocab_size", 9}, {"rope_local_base_freq", 7.0}};
  CHECK(settings(gemma, "full_attention") == json{1e6, 1.0, "default"});
  CHECK(settings(gemma, "sliding_attention") == json{7.0, 1.0, "default"});
  const json modern = {{"model_type", "modernbert"}, {"vocab_size", 9}, {"global_rope_theta", 9.0}};
  CHECK(settings(modern, "full_attention") == json{9.0, 1.0, "default"});
  CHECK(settings({{"model_type", "minimax_m2"}, {"rotary_dim", 64}, {"head_dim", 128}}, "") ==
        json{5e6, 0.5, "default"});
}

TEST_CASE("a multimodal file gives its text part, with an assumption") {
  const ClassConfig config =
      read_class({{"model_type", "gemma3"},
                  {"tie_word_embeddings", false},
                  {"text_config", {{"model_type", "gemma3_text"}, {"hidden_size", 2560}}}});
  CHECK(config.model_type == "gemma3_text");
  CHECK(config.prefix == "/text_config");
  CHECK(config.keys->at("hidden_size") == 2560);
  CHECK(config.keys->at("tie_word_embeddings") == false);
  REQUIRE(config.assumptions.size() == 1);
  CHECK(config.assumptions[0].find("gemma3") != std::string::npos);
}

TEST_CASE("rules that derive keys let values of the wrong kind pass to the reader") {
  for (const std::string& model_type : known_model_types()) {
    CAPTURE(model_type);
    for (const json& bad : std::vector<json>{"x", -1, 0, 1.5, nullptr, json::array({1, "y"}),
                                             json::object({{"a", 1}}), 9007199254740993, true}) {
      json config = {{"model_type", model_type}};
      for (const auto& item : class_defaults(model_type)->items()) config[item.key()] = bad;
      config["linear_attn_config"] = bad;
      CHECK(class_config(config, "config.json").has_value());
    }
  }
}

}  // namespace
