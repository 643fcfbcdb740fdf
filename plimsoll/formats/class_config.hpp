// A config.json as its class in transformers 5 would hold it.
//
// The short file on the hub, a full dump and what save_pretrained writes give the same keys:
// aliases take the class's name (gpt2's hidden_size is n_embd), silent keys the class default, keys
// that the class computes are computed, rotary settings have one form (rope_parameters.hpp).
// A multimodal file gives its text_config.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

struct ClassConfig {
  std::string model_type;  // of the text_config where that was taken
  std::string prefix;      // JSON path of the keys in the file: "" or "/text_config"
  std::string where;       // the text in messages

  // Every key of the class and of the file. A key may be null: see data/class_defaults.json.
  std::shared_ptr<const nlohmann::json> keys;
  // What the file gave and no rule of the class replaced; its nulls and its rope_parameters stay.
  std::shared_ptr<const nlohmann::json> given;
  // How the file spells a key where it used an alias.
  std::map<std::string, std::string, std::less<>> spelled;

  std::vector<std::string> assumptions;
};

// `config` is the whole document. Refused: no object, no or an unknown model_type, an alias that
// contradicts its key, an object that wraps the config. Values are not checked here but by whoever reads them.
Result<ClassConfig> class_config(const nlohmann::json& config, std::string_view where);

// The object under `key` of `outer` as a config of `model_type`, which must be known; no object: the
// class defaults alone.
ClassConfig nested_config(const ClassConfig& outer, std::string_view key,
                          std::string_view model_type);

}  // namespace plimsoll::formats
