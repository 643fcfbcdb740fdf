// plimsoll params: published counts and weights files taken apart.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/call.hpp"
#include "tests/cli/schema_check.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using Shape = std::vector<std::int64_t>;
using Tensors = std::vector<std::pair<std::string, Shape>>;

json params(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"params", "--json"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const test::Call result = test::call(words);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const json value = json::parse(result.out);
  CHECK(test::schema_violations(test::read_schema("params"), value).empty());
  return value;
}

std::int64_t elements(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  return n;
}

// A weights file whose data are zeros.
std::string safetensors(const Tensors& tensors, const std::string& dtype, std::int64_t item) {
  json header;
  std::int64_t offset = 0;
  for (const auto& [name, shape] : tensors) {
    const std::int64_t end = offset + elements(shape) * item;
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  const std::string text = header.dump();
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return bytes + text + std::string(static_cast<std::size_t>(offset), '\0');
}

// What transformers saves for {"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 2 ...}:
// no prefix, Conv1D weights transposed, masks among the weights.
Tensors small_gpt2() {
  return {{"wte.weight", {10, 4}},
          {"wpe.weight", {6, 4}},
          {"h.0.ln_1.weight", {4}},
          {"h.0.ln_1.bias", {4}},
          {"h.0.attn.bias", {1, 1, 6, 6}},
          {"h.0.attn.c_attn.weight", {4, 12}},
          {"h.0.attn.c_attn.bias", {12}},
          {"h.0.attn.c_proj.weight", {4, 4}},
          {"h.0.attn.c_proj.bias", {4}},
          {"h.0.ln_2.weight", {4}},
          {"h.0.ln_2.bias", {4}},
          {"h.0.mlp.c_fc.weight", {4, 16}},
          {"h.0.mlp.c_fc.bias", {16}},
          {"h.0.mlp.c_proj.weight", {16, 4}},
          {"h.0.mlp.c_proj.bias", {4}},
          {"ln_f.weight", {4}},
          {"ln_f.bias", {4}},
          {"lm_head.weight", {10, 4}}};
}

const std::string kSmallGpt2 =
    R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 2, "n_positions": 6,
        "vocab_size": 10})";

TEST_CASE("known ways of counting differently are named") {
  struct Row {
    const char* model;
    const char* published;
    std::vector<const char*> names;
  };
  const std::vector<Row> rows = {
      {"gpt2", "124439808", {}},
      {"gpt2", "163037184", {"tied head counted twice"}},
      {"gpt2", "124475904", {"vocabulary padded to 50304, a multiple of 64"}},
      {"gpt2", "137022720", {"causal masks counted"}},
      {"gpt2", "124000000", {"the published count is a multiple of 1,000,000"}},
      {"llama-2-13b", "13015866880", {"rotary frequencies of each layer counted"}},
      {"llama-3-8b", "7504924672", {"head left out"}},
      {"minigpt:d=192,L=6,V=4096,s=64,heads=4",
       "3440640",
       {"position embedding left out", "norms of the blocks left out", "final norm left out"}},
      {"cnn:norm=batch,bias=off", "338778", {"running statistics counted"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.published);
    const json against = params({row.model, "--against", row.published})["against"];
    std::vector<std::string> names;
    for (const json& part : against["parts"]) names.push_back(part["name"]);
    CHECK(names == std::vector<std::string>(row.names.begin(), row.names.end()));
    CHECK(against["unexplained"] == 0);
  }
}

TEST_CASE("a difference that nothing explains is said to be unexplained") {
  const json against = params({"gpt2", "--against", "117000001"})["against"];
  CHECK(against["parts"].empty());
  CHECK(against["unexplained"] == 117000001 - 124439808);
}

TEST_CASE("weights are compared tensor by tensor") {
  const test::TemporaryFolder folder;
  const std::string config = folder.write("config.json", kSmallGpt2);
  const std::string file = folder.write("model.safetensors", safetensors(small_gpt2(), "F32", 4));
  const json against = params({config, "--against", file})["against"];
  CHECK(against["difference"] == 36 + 40);
  CHECK(against["unexplained"] == 0);
  REQUIRE(against["parts"].size() == 2);
  for (const json& part : against["parts"]) {
    const bool mask = part["name"] == "only in the file: h.*.attn.bias [1, 1, 6, 6]";
    CHECK((mask || part["name"] == "only in the file: lm_head.weight [10, 4]"));
  }
}

TEST_CASE("tensors that the file lacks are named") {
  const test::TemporaryFolder folder;
  const std::string config = folder.write("config.json", kSmallGpt2);
  const std::string file =
      folder.write("model.safetensors", safetensors({{"wte.weight", {10, 4}}}, "BF16", 2));
  const json against = params({config, "--against", file})["against"];
  CHECK(against["unexplained"] == 0);
  CHECK(against["published"] == 40);
  CHECK(against["parts"].size() == 15);
}

TEST_CASE("a weights file, a folder of shards, a folder with a config") {
  const test::TemporaryFolder folder;
  const std::string first =
      folder.write("a.safetensors", safetensors({{"x", {3, 5}}, {"y", {2}}}, "BF16", 2));
  folder.write("b.safetensors", safetensors({{"z", {4, 4}}}, "I8", 1));
  const json file = params({first});
  CHECK(file["parameters"] == 17);
  CHECK(file["parameter_tensors"] == 2);
  CHECK(file["parameters_ties_counted"].is_null());
  CHECK(file["reason"].contains("parameters_ties_counted"));
  const json shards = params({folder.path()});
  CHECK(shards["parameters"] == 17);  // whole numbers are codes, not parameters
  CHECK(shards["dtypes"].size() == 2);
  folder.write("config.json", kSmallGpt2);
  CHECK(params({folder.path()})["terms"].size() > 3);
}

TEST_CASE("buffers that a state dict holds are counted apart") {
  CHECK(params({"cnn:norm=batch"})["buffers_persistent"] == 2 * (16 + 24 + 32) + 3);
  CHECK(params({"gpt2"})["buffers_persistent"] == 0);
}

// --- models that have an inventory

std::string truth_config(const std::string& name) {
  std::ifstream stream("tests/truth/hf/models/" + name + ".json");
  REQUIRE_MESSAGE(stream.good(), name);
  return json::parse(stream).at("config_json_saved").dump();
}

TEST_CASE("what peers count differently is named for models of all kinds") {
  struct Row {
    const char* model;  // of the truth files
    std::int64_t published;
    const char* name;
  };
  const std::vector<Row> rows = {
      {"llama-3-8b", 7504924672, "head left out"},              // accelerate's AutoModel
      {"llama-3.2-1b", 1498482688, "tied head counted twice"},  // KerasHub
      {"qwen3-8b", 8190735360 - 9216, "norms of queries and keys left out"},  // xtuner
      {"llama-3-70b", 70553706496 + 5120, "rotary frequencies of each layer counted"},
      {"opt-350m", 331196416 - 2048, "positions without the two rows that are never used"},
      {"mixtral-8x22b", 39161468928, "only the experts that a token uses counted"},  // llmfit
      {"deepseek-v3", 671026404352 + 14848, "buffers of the state dict counted"},
      {"deepseek-v3", 682636472320, "multi-token-prediction layer counted"},
      {"deepseek-v3", 684489830400,
       "multi-token-prediction layer counted, with its copies of embedding and head"},
      {"gpt2", 124475904, "vocabulary padded to 50304, a multiple of 64"},
      {"qwen3-8b", std::int64_t{12} * 36 * 4096 * 4096 + std::int64_t{151936} * 4096,
       "a rule of thumb in place of the sum: 12 L D^2 + V D"},
  };
  const test::TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.model);
    CAPTURE(row.name);
    const std::string config = folder.write("config.json", truth_config(row.model));
    const json against = params({config, "--against", std::to_string(row.published)})["against"];
    REQUIRE(against["parts"].size() == 1);
    CHECK(against["parts"][0]["name"] == row.name);
    CHECK(against["unexplained"] == 0);
  }
}

TEST_CASE("terms by role sum to the count; ties, buffers and active parameters are told") {
  const test::TemporaryFolder folder;
  const json result = params({folder.write("config.json", truth_config("deepseek-v3"))});
  CHECK(result["parameters"] == 671026404352);
  CHECK(result["parameters_active"] == 37552282624);
  CHECK(result["buffers_persistent"] == 14848);
  CHECK(result["buffers_not_persistent"] == 64);
  CHECK(result["tied"].empty());
  std::int64_t sum = 0;
  std::vector<std::string> names;
  for (const json& term : result["terms"]) {
    sum += term["count"].get<std::int64_t>();
    names.push_back(term["name"]);
  }
  CHECK(sum == 671026404352);
  CHECK(names == std::vector<std::string>{"token_embedding", "attention", "mlp", "experts",
                                          "shared_experts", "router", "norms", "head"});
  const json gpt2 = params({"gpt2"});
  CHECK(gpt2["tied"] == json::array({{"transformer.wte.weight", "lm_head.weight"}}));
  CHECK(gpt2["parameters_active"] == gpt2["parameters"]);
}

TEST_CASE("a file with one tensor an expert fits a model that stores them together") {
  const test::TemporaryFolder folder;
  const std::string config = folder.write(
      "config.json",
      R"({"model_type": "mixtral", "vocab_size": 10, "hidden_size": 4, "intermediate_size": 6,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
          "num_local_experts": 3, "num_experts_per_tok": 2, "tie_word_embeddings": false})");
  Tensors tensors = {{"model.embed_tokens.weight", {10, 4}},
                     {"model.norm.weight", {4}},
                     {"lm_head.weight", {10, 4}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.push_back({layer + "self_attn.q_proj.weight", {4, 4}});
    tensors.push_back({layer + "self_attn.k_proj.weight", {2, 4}});
    tensors.push_back({layer + "self_attn.v_proj.weight", {2, 4}});
    tensors.push_back({layer + "self_attn.o_proj.weight", {4, 4}});
    tensors.push_back({layer + "block_sparse_moe.gate.weight", {3, 4}});
    tensors.push_back({layer + "input_layernorm.weight", {4}});
    tensors.push_back({layer + "post_attention_layernorm.weight", {4}});
    for (const std::string expert : {"0", "1", "2"}) {
      const std::string name = layer + "block_sparse_moe.experts." + expert;
      tensors.push_back({name + ".w1.weight", {6, 4}});
      tensors.push_back({name + ".w2.weight", {4, 6}});
      tensors.push_back({name + ".w3.weight", {6, 4}});
    }
  }
  const std::string file = folder.write("m.safetensors", safetensors(tensors, "BF16", 2));
  const json against = params({config, "--against", file})["against"];
  CHECK(against["difference"] == 0);
  CHECK(against["parts"].empty());
}

TEST_CASE("a step of a model type that is only counted is refused, and params is named") {
  const test::TemporaryFolder folder;
  const std::string config = folder.write("config.json", truth_config("deepseek-v3"));
  const test::Call call = test::call({"plan", config});
  CHECK(call.code == 2);
  CHECK(call.out.empty());
  CHECK(call.err.find("the timeline of \"deepseek_v3\" cannot be planned yet") !=
        std::string::npos);
  CHECK(call.err.find("`plimsoll params` counts its parameters") != std::string::npos);
}

TEST_CASE("text of every truth model fits 100 columns") {
  const test::TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator("tests/truth/hf/models")) {
    const std::string name = entry.path().stem().string();
    CAPTURE(name);
    const std::string config = folder.write("config.json", truth_config(name));
    const test::Call call = test::call({"params", config});
    REQUIRE(call.code == 0);
    std::istringstream lines(call.out);
    for (std::string line; std::getline(lines, line);) {
      const bool long_path = line.find(folder.path()) != std::string::npos;
      if (!long_path) CHECK_MESSAGE(line.size() <= 100, line);
    }
  }
}

}  // namespace
}  // namespace plimsoll
