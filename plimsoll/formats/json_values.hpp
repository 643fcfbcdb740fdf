// Typed reading of single JSON values; each refusal says the value and what was expected.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

// A whole number from 1 to 2^53. Fractions are refused, 128.0 included: no library writes sizes so.
Result<std::int64_t> as_size(const nlohmann::json& value, const std::string& where);

// A finite number above 0.
Result<double> as_positive(const nlohmann::json& value, const std::string& where);

// A number from 0 to 1.
Result<double> as_probability(const nlohmann::json& value, const std::string& where);

Result<bool> as_flag(const nlohmann::json& value, const std::string& where);
Result<std::string> as_text(const nlohmann::json& value, const std::string& where);

}  // namespace plimsoll::formats
