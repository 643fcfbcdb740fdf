// The families of the inventory: one function per model type. `inventory.cpp` chooses.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "plimsoll/formats/config_reader.hpp"
#include "plimsoll/network/inventory.hpp"

namespace plimsoll::formats {

using FamilyReader = void (*)(ConfigReader& reader, network::InventoryBuilder& g);

struct InventoryFamily {
  std::string_view model_type;
  FamilyReader read;
  std::string_view counted_as;  // the class in transformers whose parameters these are
};

// The family of a model type, or null. Each looks into the tables of its own source.
const InventoryFamily* find_dense_decoder(std::string_view model_type);
const InventoryFamily* find_gemma4(std::string_view model_type);
const InventoryFamily* find_expert_decoder(std::string_view model_type);
const InventoryFamily* find_delta_hybrid(std::string_view model_type);
const InventoryFamily* find_hybrid(std::string_view model_type);
const InventoryFamily* find_gpt(std::string_view model_type);
const InventoryFamily* find_state_space(std::string_view model_type);
const InventoryFamily* find_encoder(std::string_view model_type);
const InventoryFamily* find_sequence_to_sequence(std::string_view model_type);
const InventoryFamily* find_vision(std::string_view model_type);

// In any of the tables.
const InventoryFamily* find_inventory_family(std::string_view model_type);

template <std::size_t kCount>
const InventoryFamily* find_in(const std::array<InventoryFamily, kCount>& table,
                               std::string_view model_type) {
  for (const InventoryFamily& family : table) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

}  // namespace plimsoll::formats
