#include "plimsoll/formats/json_values.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 53U;

tl::unexpected<Error> refuse(const json& value, const std::string& where,
                             std::string_view expected) {
  return fail(where, fmt::format("{}, expected {}", json_value_text(value), expected));
}

}  // namespace

Result<std::int64_t> as_size(const json& value, const std::string& where) {
  if (!value.is_number()) return refuse(value, where, "a whole number of at least 1");
  // Whole numbers beyond 64 bits arrive as floating point.
  if (value.is_number_float() && std::abs(value.get<double>()) < 9e15) {
    return refuse(value, where, "a whole number");
  }
  if (value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0) {
    return refuse(value, where, "a whole number of at least 1");
  }
  if (value.is_number_float() && value.get<double>() < 0) {
    return refuse(value, where, "a whole number of at least 1");
  }
  if (value.is_number_float() || value.get<std::uint64_t>() > kLargestSize) {
    return refuse(value, where, "at most 2^53");
  }
  if (value.get<std::uint64_t>() == 0) return refuse(value, where, "a whole number of at least 1");
  return static_cast<std::int64_t>(value.get<std::uint64_t>());
}

Result<double> as_positive(const json& value, const std::string& where) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (std::isfinite(number) && number > 0) return number;
  }
  return refuse(value, where, "a finite number above 0");
}

Result<double> as_probability(const json& value, const std::string& where) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (number >= 0 && number <= 1) return number;
  }
  return refuse(value, where, "a number from 0 to 1");
}

Result<bool> as_flag(const json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  return refuse(value, where, "true or false");
}

Result<std::string> as_text(const json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  return refuse(value, where, "a string");
}

}  // namespace plimsoll::formats
