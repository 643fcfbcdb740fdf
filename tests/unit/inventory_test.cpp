// The parameters of every truth file, name by name: full-size models from three spellings, scaled-down
// ones with their flags turned, and the networks that are planned.
#include "plimsoll/formats/inventory/inventory.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/formats/class_defaults.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/network/families/families.hpp"

#include "tests/unit/sha256.hpp"
#include "tests/unit/truth_files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace plimsoll::formats;
using nlohmann::json;
using plimsoll::network::BufferCount;
using plimsoll::network::element_count;
using plimsoll::network::Inventory;
using plimsoll::network::InventoryParameter;
using plimsoll::test::sha256;
using plimsoll::test::truth;

ModelInventory read_inventory(const json& config) {
  const auto class_keys = class_config(config, "config.json");
  REQUIRE_MESSAGE(class_keys, (class_keys ? "" : format_error(class_keys.error())));
  auto model = read_inventory(*class_keys);
  REQUIRE_MESSAGE(model, (model ? "" : format_error(model.error())));
  return *std::move(model);
}

std::string shape_text(const plimsoll::network::Dims& shape) {
  return fmt::format("{}", fmt::join(shape.begin(), shape.end(), "x"));
}

// "name d0xd1" sorted by name.
std::string listing(const Inventory& inventory) {
  std::vector<std::string> lines;
  for (const InventoryParameter& p : inventory.parameters) {
    lines.push_back(fmt::format("{} {}", p.name, shape_text(p.shape)));
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::int64_t one_dimensional(const Inventory& inventory) {
  std::int64_t sum = 0;
  for (const InventoryParameter& p : inventory.parameters) {
    if (p.shape.size() <= 1) sum += element_count(p.shape);
  }
  return sum;
}

// Groups and names in alphabetical order.
std::set<std::set<std::string>> groups(const json& tied) {
  std::set<std::set<std::string>> result;
  for (const json& group : tied) result.insert(group.get<std::set<std::string>>());
  return result;
}

void check_counts(const Inventory& ours, const json& theirs) {
  CHECK(ours.elements() == theirs.at("params_unique").get<std::int64_t>());
  CHECK(ours.ties_counted() == theirs.at("params_ties_counted").get<std::int64_t>());
  CHECK(static_cast<std::int64_t>(ours.parameters.size()) ==
        theirs.at("param_tensors").get<std::int64_t>());
  CHECK(sha256(listing(ours)) == theirs.at("names_shapes_sha256").get<std::string>());
}

void check_buffers(const BufferCount& ours, std::int64_t tensors, std::int64_t elements) {
  CHECK(ours.tensors == tensors);
  CHECK(ours.elements == elements);
}

// Which names of the truth's own list we lack, and the other way round: what a failing hash does not
// tell.
void check_names(const Inventory& ours, const json& list) {
  std::set<std::string> expected;
  std::set<std::string> found;
  for (const json& entry : list) {
    expected.insert(fmt::format("{} {}", entry.at(0).get<std::string>(),
                                fmt::join(entry.at(1).get<std::vector<std::int64_t>>(), "x")));
  }
  for (const InventoryParameter& p : ours.parameters) {
    found.insert(fmt::format("{} {}", p.name, shape_text(p.shape)));
  }
  CHECK(found == expected);
}

void check_model(const Inventory& ours, const json& model) {
  check_counts(ours, model);
  CHECK(one_dimensional(ours) == model.at("params_1d").get<std::int64_t>());
  CHECK(groups(ours.tied) == groups(model.at("tied_groups")));
  for (const bool persistent : {true, false}) {
    const json& theirs = model.at(persistent ? "buffers_persistent" : "buffers_nonpersistent");
    CAPTURE(persistent);
    check_buffers(ours.count_buffers(persistent), theirs.at("tensors"), theirs.at("elements"));
  }
  const json& largest = model.at("largest_param");
  const InventoryParameter* found = ours.find(largest.at("name").get<std::string>());
  REQUIRE(found != nullptr);
  CHECK(element_count(found->shape) == largest.at("elements").get<std::int64_t>());
  if (model.contains("params_list")) check_names(ours, model.at("params_list"));
}

TEST_CASE("SHA-256 of known texts") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256(std::string(1000, 'a')) ==
        "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

TEST_CASE("every parameter and buffer of the 80 full-size models, from three spellings") {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(PLIMSOLL_TRUTH_DIR "/hf/models")) {
    std::ifstream stream(entry.path());
    const json model = json::parse(stream);
    CAPTURE(model.at("name").get<std::string>());
    for (const char* spelling : {"config", "config_input", "config_json_saved"}) {
      CAPTURE(spelling);
      check_model(read_inventory(model.at(spelling)).inventory, model);
    }
    ++models;
  }
  CHECK(models == 80);
}

TEST_CASE("scaled-down models with their flags turned have the parameters PyTorch counted") {
  std::set<std::string> types;
  for (const json& row : truth("hf/variants.json")) {
    CAPTURE(row.at("config").dump());
    const auto class_keys = class_config(row.at("config"), "config.json");
    REQUIRE(class_keys);
    const auto model = read_inventory(*class_keys);
    CHECK_MESSAGE(model, (model ? "" : format_error(model.error())));
    if (!model) continue;
    types.insert(model->model_type);
    check_counts(model->inventory, row);
    check_buffers(model->inventory.count_buffers(true), row.at("buffers_persistent").at(0),
                  row.at("buffers_persistent").at(1));
    check_buffers(model->inventory.count_buffers(false), row.at("buffers_nonpersistent").at(0),
                  row.at("buffers_nonpersistent").at(1));
  }
  CHECK(types.size() >= 80);
}

TEST_CASE("the measured small models have the parameters PyTorch counted") {
  for (const auto& entry : fs::directory_iterator(PLIMSOLL_TRUTH_DIR "/hf/activations")) {
    std::ifstream stream(entry.path());
    const json model = json::parse(stream);
    if (!model.contains("config") || !model.at("config").contains("model_type")) continue;
    CAPTURE(model.at("name").get<std::string>());
    const Inventory ours = read_inventory(model.at("config")).inventory;
    CHECK(ours.elements() == model.at("params_unique").get<std::int64_t>());
  }
}

// GPT-2's linears are stored [in, out]; a Network holds every linear [out, in].
bool same_shape(const plimsoll::network::Dims& a, const plimsoll::network::Dims& b,
                const std::string& model_type) {
  if (a == b) return true;
  const bool turned = a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
  return model_type == "gpt2" && turned;
}

TEST_CASE("a planned network has the parameters of the inventory") {
  std::set<std::string> types;
  std::vector<json> configs;
  for (const json& row : truth("hf/variants.json")) configs.push_back(row.at("config"));
  for (const std::string& type : planned_model_types()) {
    configs.push_back({{"model_type", type}, {"architectures", json::array()}});
  }
  for (const json& config : configs) {
    const auto class_keys = class_config(config, "config.json");
    REQUIRE(class_keys);
    const auto& planned = planned_model_types();
    if (std::find(planned.begin(), planned.end(), class_keys->model_type) == planned.end())
      continue;
    const auto spec = read_config(*class_keys);
    if (!spec) continue;  // a variant that a Network refuses, and says why
    CAPTURE(config.dump());
    types.insert(class_keys->model_type);
    const Inventory inventory = read_inventory(config).inventory;
    plimsoll::network::BuildOptions options;
    options.sequence = 1;
    const auto network = build_network(*spec, options);
    CHECK(network.parameters.size() == inventory.parameters.size());
    for (const auto& parameter : network.parameters) {
      CAPTURE(parameter.name);
      const InventoryParameter* ours = inventory.find(parameter.name);
      REQUIRE(ours != nullptr);
      CHECK(same_shape(parameter.shape, ours->shape, spec->model_type));
    }
  }
  CHECK(types.size() == planned_model_types().size());
}

TEST_CASE("every known model type has an inventory") {
  std::vector<std::string> whole;  // clip's towers are parts of clip
  for (const std::string& type : known_model_types()) {
    if (type != "clip_text_model" && type != "clip_vision_model") whole.push_back(type);
  }
  CHECK(counted_model_types() == whole);
  CHECK(whole.size() >= 80);
}

TEST_CASE("active parameters: all but the experts that a token does not use") {
  const json small = {
      {"model_type", "mixtral"},  {"vocab_size", 10},       {"hidden_size", 8},
      {"intermediate_size", 16},  {"num_hidden_layers", 2}, {"num_attention_heads", 2},
      {"num_key_value_heads", 1}, {"num_local_experts", 4}, {"num_experts_per_tok", 3}};
  const Inventory inventory = read_inventory(small).inventory;
  const std::int64_t expert = 3 * 8 * 16;
  CHECK(inventory.elements() - inventory.active_elements() == 2 * (4 - 3) * expert);
  CHECK(inventory.elements_of(plimsoll::network::ParameterRole::kExperts) == 2 * 4 * expert);
  CHECK(inventory.elements_of(plimsoll::network::ParameterRole::kRouter) == 2 * 4 * 8);
}

struct BadInventory {
  json config;
  std::string where;
  std::string what;
};

TEST_CASE("contradictions and absurd sizes are refused with the place of the key") {
  const std::vector<BadInventory> cases = {
      {{{"model_type", "mixtral"}, {"num_experts_per_tok", 9}},
       ":/num_experts_per_tok",
       "9 of 8 experts"},
      {{{"model_type", "qwen2"}, {"num_attention_heads", 33}},
       ":/num_attention_heads",
       "33 does not divide hidden_size"},
      {{{"model_type", "qwen2"}, {"num_key_value_heads", 5}},
       ":/num_key_value_heads",
       "5 does not divide heads"},
      {{{"model_type", "opt"}, {"num_attention_heads", 7}}, ":/num_attention_heads", "7 does not"},
      {{{"model_type", "bloom"}, {"num_attention_heads", 7}}, ":/num_attention_heads", "7 does"},
      {{{"model_type", "qwen3"}, {"num_hidden_layers", 10001}},
       ":/num_hidden_layers",
       "from 1 to 10000"},
      {{{"model_type", "qwen3"}, {"hidden_size", "x"}}, ":/hidden_size", "\"x\", expected"},
      {{{"model_type", "gemma"}, {"attention_bias", 3}}, ":/attention_bias", "3, expected true"},
      {{{"model_type", "lfm2"}, {"layer_types", {"conv"}}},
       ":/layer_types",
       "expected a list of 32 strings"},
      {{{"model_type", "kimi_linear"}, {"layer_types", 7}}, ":/layer_types", "7, expected a list"},
      {{{"model_type", "swin"}, {"mlp_ratio", 1e300}}, ":/mlp_ratio", "expected at most 2^53"},
      {{{"model_type", "lfm2"}, {"block_ffn_dim_multiplier", 1e300}, {"full_attn_idxs", {1}}},
       ":/block_ffn_dim_multiplier",
       "expected at most 2^53"},
      {{{"model_type", "stablelm"},
        {"qk_layernorm", true},
        {"num_hidden_layers", 10000},
        {"num_attention_heads", 2560},
        {"num_key_value_heads", 1}},
       ":/num_attention_heads",
       "with a norm each"},
      {{{"model_type", "mamba2"}, {"num_heads", 5}}, ":/num_heads", "5 of 64 elements"},
      {{{"model_type", "resnet"}, {"depths", {3, 4}}}, ":/depths", "2 entries, but hidden_sizes"},
      {{{"model_type", "convnext"}, {"depths", {100000}}}, ":/depths", "blocks, expected at most"},
      {{{"model_type", "clip"}, {"text_config", {{"hidden_size", -5}}}},
       ":/text_config/hidden_size",
       "-5, expected"},
      {{{"model_type", "deepseek_v3"}, {"hidden_size", 4503599627370496}},
       "",
       "more than 2^63 parameters"},
      {{{"model_type", "qwen3"}, {"vocab_size", 9007199254740992}}, "", "expected at most 2^53"},
  };
  for (const BadInventory& bad : cases) {
    CAPTURE(bad.config.dump());
    const auto config = class_config(bad.config, "config.json");
    REQUIRE(config);
    const auto model = read_inventory(*config);
    REQUIRE_FALSE(model);
    CHECK(model.error().where == "config.json" + bad.where);
    CHECK(format_error(model.error()).find(bad.what) != std::string::npos);
    CHECK(model.error().code == plimsoll::ExitCode::kBadInput);
  }
}

TEST_CASE("a head that is not the counted one is said") {
  const ModelInventory model =
      read_inventory({{"model_type", "bert"}, {"architectures", {"BertForQuestionAnswering"}}});
  const auto& lines = model.assumptions;
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line == "architectures: [\"BertForQuestionAnswering\"], counted as BertForMaskedLM";
  }));
}

}  // namespace
