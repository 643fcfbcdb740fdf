// How every report is written as JSON: keys in the order of the text, bytes as integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace plimsoll::report {

using Json = nlohmann::ordered_json;

// Indented, with a final line end. Bytes of file names that are not UTF-8 are replaced.
std::string json_text(const Json& json);

// null for what is not known.
Json number_or_null(const std::optional<std::int64_t>& value);

}  // namespace plimsoll::report
