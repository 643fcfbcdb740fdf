#include "plimsoll/formats/inventory/inventory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_defaults.hpp"
#include "plimsoll/formats/class_keys.hpp"
#include "plimsoll/formats/config_reader.hpp"
#include "plimsoll/formats/inventory/families.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

// Of one model type many classes are made; one is counted.
void note_other_head(ConfigReader& reader, const InventoryFamily& family) {
  const json* architectures = reader.find("architectures");
  if (architectures == nullptr || !architectures->is_array() || architectures->empty()) return;
  const auto same = [&](const json& name) { return name == family.counted_as; };
  if (std::any_of(architectures->begin(), architectures->end(), same)) return;
  reader.assume(fmt::format("architectures: {}, counted as {}", json_value_text(*architectures),
                            family.counted_as));
}

Error too_large(const std::string& where) {
  return {where, "the sizes multiply to more than 2^63 parameters, expected at most 2^53", "",
          ExitCode::kBadInput};
}

// Everything later is a small multiple of this count, so a bound here keeps bytes inside 64 bits.
Result<ModelInventory> checked_total(ModelInventory model, const std::string& where) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53U;
  const std::int64_t total = model.inventory.elements();
  model.inventory.ties_counted();
  model.inventory.count_buffers(true);
  model.inventory.count_buffers(false);
  if (total <= kMost) return model;
  return fail(where, fmt::format("{} parameters, expected at most 2^53", total));
}

void add_facts(const json& config, ModelInventory& model) {
  json copy = config;
  const ClassKeys keys(copy);
  for (const char* key : {"max_position_embeddings", "n_positions", "max_target_positions"}) {
    if (const auto positions = keys.size(key)) model.positions = *positions;
  }
  model.prediction_layers = keys.count("num_nextn_predict_layers").value_or(0);
}

}  // namespace

const InventoryFamily* find_inventory_family(std::string_view model_type) {
  using Find = const InventoryFamily* (*)(std::string_view);
  constexpr std::array<Find, 10> kTables = {
      find_dense_decoder,        find_gemma4, find_expert_decoder, find_hybrid,
      find_delta_hybrid,         find_gpt,    find_state_space,    find_encoder,
      find_sequence_to_sequence, find_vision};
  for (const Find find : kTables) {
    if (const InventoryFamily* family = find(model_type)) return family;
  }
  return nullptr;
}

Result<ModelInventory> read_inventory(const ClassConfig& config) {
  const InventoryFamily* family = find_inventory_family(config.model_type);
  if (family == nullptr) {
    return fail(
        json_where(config.where, config.prefix + "/model_type"),
        fmt::format("the parameters of {} are not known", json_value_text(config.model_type)));
  }
  ConfigReader reader(config);
  try {
    network::InventoryBuilder builder;
    family->read(reader, builder);
    note_other_head(reader, *family);
    if (reader.error()) return tl::unexpected<Error>(*reader.error());
    ModelInventory model{config.model_type, builder.finish(), reader.take_assumptions(), 0, 0};
    add_facts(*config.keys, model);
    return checked_total(std::move(model), config.where);
  } catch (const OverflowError&) {
    // A key of the wrong kind is the better message.
    return tl::unexpected<Error>(reader.error() ? *reader.error() : too_large(config.where));
  }
}

const std::vector<std::string>& counted_model_types() {
  static const std::vector<std::string> kTypes = [] {
    std::vector<std::string> types;
    for (const std::string& type : known_model_types()) {
      if (find_inventory_family(type) != nullptr) types.push_back(type);
    }
    return types;
  }();
  return kTypes;
}

}  // namespace plimsoll::formats
