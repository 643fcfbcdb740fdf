// A config.json -> Inventory: the parameters and buffers of the model that transformers 5 builds from
// it, by state-dict name, for many more model types than can be planned.
//
// One source per kind of model; each family is one function that reads as the module's constructor.
// Of every model type one class is counted, with its usual head: causal language models with lm_head,
// BERT and its kin as masked language models, image networks as classifiers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/network/inventory.hpp"

namespace plimsoll::formats {

struct ModelInventory {
  std::string model_type;
  network::Inventory inventory;
  std::vector<std::string> assumptions;  // defaults taken, other heads than the file's

  // What explains other people's counts.
  std::int64_t positions = 0;  // T: what the config says a model can read; 0: nothing
  std::int64_t prediction_layers =
      0;  // multi-token-prediction layers that checkpoints hold besides
};

// Errors: a model type without reader, a key of the wrong kind, sizes that contradict each other or
// leave 64 bits.
Result<ModelInventory> read_inventory(const ClassConfig& config);

// The model types that it reads, sorted.
const std::vector<std::string>& counted_model_types();

}  // namespace plimsoll::formats
