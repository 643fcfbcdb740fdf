// Strict JSON for files that people hand us: every flaw becomes one Error, never an exception.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

// Deeper files are refused, so that nobody's recursion over the result can overflow a stack.
inline constexpr std::size_t kDeepestJson = 64;

// The document. Refused: not UTF-8, empty, truncated, NaN and Infinity, text after the document,
// a key given twice in one object, nesting beyond kDeepestJson. The Error's `where` is `where` plus
// the JSON path of the place ("config.json:/rope_parameters/factor").
Result<nlohmann::json> parse_json(std::string_view text, std::string_view where);

// "config.json" and "/hidden_size" -> "config.json:/hidden_size".
std::string json_where(std::string_view where, std::string_view path);

// One step of a JSON path with its slash, escaped as RFC 6901 wants and cut when very long.
std::string json_step(std::string_view key);

// A value as messages show it: JSON, cut after 60 bytes.
std::string json_value_text(const nlohmann::json& value);

}  // namespace plimsoll::formats
