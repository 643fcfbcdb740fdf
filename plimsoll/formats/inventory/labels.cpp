#include "plimsoll/formats/inventory/labels.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll::formats {

std::int64_t label_count(ConfigReader& reader) {
  const nlohmann::json* names = reader.complete("id2label");
  if (names != nullptr && names->is_object() && !names->empty()) {
    return static_cast<std::int64_t>(names->size());
  }
  return reader.size_or("num_labels", reader.class_labels());
}

}  // namespace plimsoll::formats
