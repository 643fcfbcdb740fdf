// Configs, built-in models and MODEL arguments give the networks that the truth files describe.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/builtin_models.hpp"
#include "plimsoll/formats/class_defaults.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/network/families/families.hpp"

#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/truth_files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace plimsoll::formats;
using nlohmann::json;
using plimsoll::network::NetworkSpec;
using plimsoll::network::OpKind;
using plimsoll::test::TemporaryFolder;
using plimsoll::test::truth;

// Those that can be planned.
std::vector<json> truth_models() {
  std::vector<json> models;
  for (const auto& entry : fs::directory_iterator(PLIMSOLL_TRUTH_DIR "/hf/models")) {
    std::ifstream stream(entry.path());
    json model = json::parse(stream);
    const auto& planned = planned_model_types();
    const std::string type = model.at("model_type");
    if (std::find(planned.begin(), planned.end(), type) == planned.end()) continue;
    models.push_back(std::move(model));
  }
  REQUIRE(models.size() >= 9);
  return models;
}

NetworkSpec read(const json& config) {
  auto spec = read_config(config.dump(), "config.json");
  REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : plimsoll::format_error(spec.error())));
  return *spec;
}

std::int64_t parameters(const NetworkSpec& spec) {
  std::int64_t sum = 0;
  for (const auto& term : parameter_terms(spec)) sum += term.count;
  return sum;
}

// Everything that a plan depends on, as text.
std::string facts(const NetworkSpec& s) {
  return json{name(s.family), s.model_type,     s.width,        s.layers,           s.heads,
              s.kv_heads,     s.head_dim,       s.feed_forward, s.vocabulary,       s.positions,
              s.tied_head,    s.attention_bias, s.mlp_bias,     name(s.activation), s.norm_eps,
              s.rope_theta,   s.config_dropout}
      .dump();
}

bool assumes(const NetworkSpec& spec, const std::string& fragment) {
  return std::any_of(spec.assumptions.begin(), spec.assumptions.end(),
                     [&](const auto& line) { return line.find(fragment) != std::string::npos; });
}

// The neutral schema of models.json in the words of a config.json; null for other architectures.
json as_config(const json& c) {
  const bool plain = !c.contains("num_experts") && !c.contains("qk_norm") &&
                     c.value("attention", "") != "mla" && c.value("norms_per_layer", 0) == 2 &&
                     c.value("final_norms", 0) == 1;
  if (!plain) return nullptr;
  json config = {{"vocab_size", c["vocab_size"]},
                 {"tie_word_embeddings", c["tie_word_embeddings"]}};
  if (c["norm"] == "rmsnorm" && c["gated_mlp"] == true && c["bias"]["q"] == false) {
    config["model_type"] = "llama";
    for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim",
                            "num_key_value_heads", "intermediate_size"}) {
      config[key] = c[key];
    }
    return config;
  }
  if (c["norm"] == "layernorm" && c["position"] == "learned" && c["position_rows"] != 2050) {
    config.update({{"model_type", "gpt2"},
                   {"n_embd", c["hidden_size"]},
                   {"n_layer", c["num_hidden_layers"]},
                   {"n_head", c["num_attention_heads"]},
                   {"n_inner", c["intermediate_size"]},
                   {"n_positions", c["position_rows"]}});
    return config;
  }
  return nullptr;
}

TEST_CASE("three spellings of a config give one spec and the true parameter count") {
  for (const json& model : truth_models()) {
    CAPTURE(model.at("name").get<std::string>());
    const NetworkSpec full = read(model.at("config"));
    CHECK(parameters(full) == model.at("params_unique").get<std::int64_t>());
    CHECK(facts(read(model.at("config_input"))) == facts(full));
    CHECK(facts(read(model.at("config_json_saved"))) == facts(full));
    const std::int64_t counted_twice = parameters(full) + plimsoll::network::tied_elements(full);
    CHECK(counted_twice == model.at("params_ties_counted").get<std::int64_t>());
  }
}

TEST_CASE("the measured small models have the parameters PyTorch counted") {
  for (const char* file : {"llama", "llama-3.2-tied", "llama-mha-large", "mistral-nemo-like"}) {
    const json model = truth(std::string("hf/activations/") + file + ".json");
    json input = model.at("config_input");
    input["model_type"] = model.at("model_type");
    CAPTURE(file);
    CHECK(parameters(read(model.at("config"))) == model.at("params_unique").get<std::int64_t>());
    CHECK(facts(read(input)) == facts(read(model.at("config"))));
  }
}

TEST_CASE("published parameter totals") {
  int compared = 0;
  for (const json& model : truth("models.json")) {
    const json config = as_config(model.at("config"));
    if (config.is_null()) continue;
    CAPTURE(model.at("name").get<std::string>());
    CHECK(parameters(read(config)) == model.at("params_total").get<std::int64_t>());
    ++compared;
  }
  CHECK(compared >= 15);
}

TEST_CASE("built-in models load, with sources, and have their published totals") {
  const std::vector<std::pair<std::string, std::int64_t>> totals = {
      {"gpt2", 124439808},
      {"gpt2-medium", 354823168},
      {"gpt2-large", 774030080},
      {"gpt2-xl", 1557611200},
      {"llama-1-7b", 6738415616},
      {"llama-2-7b", 6738415616},
      {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192},
      {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},
      {"llama-3.1-8b", 8030261248},
      {"llama-3.1-70b", 70553706496},
      {"llama-3.1-405b", 405853388800},
      {"llama-3.2-1b", 1235814400},
      {"llama-3.2-3b", 3212749824},
      {"mistral-7b-v0.1", 7241732096},
      {"mistral-nemo-12b", 12247782400},
      {"tinyllama-1.1b", 1100048384}};
  CHECK(builtin_models().size() == totals.size());
  for (const auto& [name, total] : totals) {
    CAPTURE(name);
    REQUIRE(find_builtin_model(name) != nullptr);
    CHECK(find_builtin_model(name)->source.starts_with("published config of "));
    const auto spec = load_model(name);
    REQUIRE(spec);
    CHECK(spec->title == name);
    CHECK(parameters(*spec) == total);
    CHECK_FALSE(assumes(*spec, "absent"));
  }
}

TEST_CASE("the network that is built has as many parameters as its terms add up to") {
  std::vector<NetworkSpec> specs = {
      read({{"model_type", "llama"}, {"attention_bias", true}, {"mlp_bias", true}}),
      read({{"model_type", "mistral"}, {"hidden_size", 160}, {"head_dim", 24}}),
      *load_model("minigpt:d=96,L=3"), *load_model("cnn:channels=5-7,image=6,bias=on,norm=none"),
      *load_model("cnn:channels=5-7,image=6,bias=off,norm=batch,pool=last")};
  for (const BuiltinModel& model : builtin_models()) {
    specs.push_back(*load_model(std::string(model.name)));
  }
  for (const NetworkSpec& spec : specs) {
    CAPTURE(spec.title);
    plimsoll::network::BuildOptions options;
    options.sequence = 8;
    CHECK(build_network(spec, options).parameter_elements() == parameters(spec));
  }
}

TEST_CASE("class defaults are those of the full configs") {
  for (const json& model : truth_models()) {
    const json& full = model.at("config");
    const json& given = model.at("config_input");
    const json* defaults = class_defaults(model.at("model_type").get<std::string>());
    REQUIRE(defaults != nullptr);
    for (const auto& item : defaults->items()) {
      const bool window_off =
          item.key() == "sliding_window" && !full.value("use_sliding_window", true);
      const bool follows = item.value().is_null() || item.key() == "rope_theta" || window_off;
      if (follows || given.contains(item.key())) continue;
      CAPTURE(item.key());
      CHECK(full.at(item.key()) == item.value());
    }
  }
}

TEST_CASE("absent sizes take the class default and are listed") {
  const NetworkSpec spec = read({{"model_type", "llama"}, {"hidden_size", 2048}});
  CHECK(assumes(spec, "num_hidden_layers: absent, class default 32"));
  CHECK(assumes(spec, "num_key_value_heads: absent, as many as heads 32"));
  CHECK(assumes(spec, "tie_word_embeddings: absent, class default false"));
  CHECK_FALSE(assumes(spec, "hidden_size"));
  CHECK(spec.head_dim == 64);
  CHECK(read({{"model_type", "llama"}, {"hidden_size", nullptr}}).width == 4096);
  CHECK(assumes(read({{"model_type", "llama"}, {"vocab_size", 9}, {"hiden_size", 64}}),
                "hidden_size: absent, class default 4096 (the file has hiden_size"));
}

TEST_CASE("null key/value heads are all heads, absent ones the class default") {
  const NetworkSpec absent = read({{"model_type", "mistral"}, {"vocab_size", 9}});
  CHECK(absent.kv_heads == 8);
  CHECK(absent.positions == 131072);
  const NetworkSpec null = read({{"model_type", "mistral"}, {"num_key_value_heads", nullptr}});
  CHECK(null.kv_heads == 32);
}

TEST_CASE("key/value heads that the class does not have are read by nobody") {
  for (const char* type : {"opt", "biogpt", "persimmon"}) {
    json config = {{"model_type", type},        {"hidden_size", 64}, {"num_attention_heads", 4},
                   {"word_embed_proj_dim", 64}, {"ffn_dim", 96},     {"num_hidden_layers", 2}};
    const auto plain = read_config(config.dump(), "config.json");
    config["num_key_value_heads"] = 2;
    const auto stray = read_config(config.dump(), "config.json");
    REQUIRE(plain);
    REQUIRE(stray);
    CHECK(stray->kv_heads == 4);
    CHECK(stray->head_dim == plain->head_dim);
  }
}

TEST_CASE("rope_theta is found in each of its homes") {
  const json base = {{"model_type", "llama"}, {"vocab_size", 9}};
  auto theta = [&](const json& more) {
    json config = base;
    config.update(more);
    return read(config).rope_theta;
  };
  CHECK(theta(json::object()) == 10000.0);
  CHECK(theta({{"rope_theta", 5e5}}) == 5e5);
  CHECK(theta({{"rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "default"}}}}) == 1e6);
  CHECK(theta({{"rope_scaling", {{"rope_theta", 2e6}}}, {"rope_theta", 5e5}}) == 2e6);
  CHECK(theta({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}, {"rope_theta", 5}}) == 5);
  CHECK(theta({{"rope_scaling", nullptr}, {"rope_theta", 3e5}}) == 3e5);
}

TEST_CASE("activations, dropout and aliases") {
  const std::vector<std::pair<std::string, OpKind>> kinds = {
      {"gelu", OpKind::kGelu},  {"gelu_new", OpKind::kGeluTanh},          {"silu", OpKind::kSilu},
      {"swish", OpKind::kSilu}, {"gelu_pytorch_tanh", OpKind::kGeluTanh}, {"relu", OpKind::kRelu}};
  for (const auto& [text, kind] : kinds) {
    CHECK(read({{"model_type", "gpt2"}, {"activation_function", text}}).activation == kind);
  }
  const NetworkSpec spec = read({{"model_type", "gpt2"},
                                 {"hidden_size", 96},
                                 {"n_head", 6},
                                 {"attn_pdrop", 0.3},
                                 {"resid_pdrop", 0}});
  CHECK(spec.width == 96);
  CHECK(assumes(spec, "n_inner: absent, 4 n_embd = 384"));
  CHECK(spec.feed_forward == 384);
  CHECK(spec.config_dropout == 0.3);
  CHECK(read({{"model_type", "llama"}, {"attention_dropout", 0.25}}).config_dropout == 0.25);
}

TEST_CASE("what a plan leaves out is said") {
  CHECK(assumes(read(truth("hf/models/llama-3.2-1b.json").at("config")), "type \"llama3\""));
  CHECK(assumes(
      read({{"model_type", "llama"}, {"vocab_size", 9}, {"quantization_config", {{"bits", 4}}}}),
      "unquantised"));
  CHECK(assumes(
      read({{"model_type", "llama"}, {"architectures", {"LlamaForSequenceClassification"}}}),
      "planned as a causal language model"));
}

TEST_CASE("a path wins over a name, a folder is read through its config.json") {
  const TemporaryFolder folder;
  const std::string config = R"({"model_type": "gpt2", "n_embd": 96, "n_head": 6, "n_layer": 2})";
  const std::string file = folder.write("config.json", config);
  for (const std::string& argument : {file, folder.path()}) {
    const auto spec = load_model(argument);
    REQUIRE(spec);
    CHECK(spec->width == 96);
    CHECK(spec->title == argument);
  }
  CHECK(load_model("GPT2-Medium")->title == "gpt2-medium");
  CHECK(load_model("minigpt:d=64")->width == 64);
}

TEST_CASE("arguments that are no model are refused with a reason") {
  const TemporaryFolder folder;
  const std::string weights = folder.write("model.safetensors", "");
  const std::string fifo = folder.path() + "/pipe";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const std::string big = folder.write("big.json", std::string((std::size_t{16} << 20U) + 1, ' '));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty"},
      {"gtp2", "nearest name: gpt2"},
      {"meta-llama/Llama-3-8B", "nearest name: llama-3-8b"},
      {"minigtp:d=3", "nearest name: minigpt:"},
      {"no/such/config.json", "no such file"},
      {"zzzzzzzzzzzz", "fetches nothing"},
      {folder.path(), "folder without config.json: it has big.json, model.safetensors, pipe"},
      {weights, "holds weights"},
      {fifo, "is a pipe, expected a regular file"},
      {"/dev/zero", "is a device, expected a regular file"},
      {big, "has more than 16777216 bytes"},
      {std::string(5000, 'x'), "is no file"},
  };
  for (const auto& [argument, fragment] : cases) {
    const auto spec = load_model(argument);
    REQUIRE_FALSE(spec);
    const std::string message = plimsoll::format_error(spec.error());
    CAPTURE(message);
    CHECK(message.find(fragment) != std::string::npos);
    CHECK(spec.error().code == plimsoll::ExitCode::kBadInput);
  }
}

}  // namespace
