// plimsoll params: published counts and weights files taken apart.
#include <cstdint>
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

}  // namespace
}  // namespace plimsoll
