#include "plimsoll/cli/values.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/base/units.hpp"
#include "plimsoll/formats/devices.hpp"

namespace plimsoll::cli {
namespace {

struct Parsed {
  std::int64_t value = 0;
  std::string_view rest;  // behind the digits
  bool too_large = false;
  bool number = false;
};

Parsed parse_digits(std::string_view text) {
  Parsed parsed;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, parsed.value);
  parsed.number = problem == std::errc{};
  parsed.too_large = problem == std::errc::result_out_of_range;
  parsed.rest = std::string_view(stop, static_cast<std::size_t>(end - stop));
  return parsed;
}

std::int64_t unit_bytes(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 10> kUnits = {{
      {"", 1},
      {"B", 1},
      {"KiB", kKiB},
      {"MiB", kMiB},
      {"GiB", kGiB},
      {"TiB", 1024 * kGiB},
      {"KB", 1000},
      {"MB", 1000 * 1000},
      {"GB", 1000 * 1000 * 1000},
      {"TB", std::int64_t{1000} * 1000 * 1000 * 1000},
  }};
  for (const auto& [name, bytes] : kUnits) {
    if (name == unit) return bytes;
  }
  return 0;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 40;
  if (text.size() <= kShown) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}...\"", text.substr(0, kShown));
}

tl::unexpected<Error> unknown_value(const std::string& option, const std::string& given,
                                    const std::vector<std::string>& known, std::string_view what) {
  const std::string near = given.empty() ? "" : nearest_name(given.substr(0, 64), known);
  return fail(option,
              fmt::format("{}{}, expected {}", what, in_quotes(given), fmt::join(known, ", ")),
              near.empty() ? "" : "nearest name: " + near);
}

Result<std::int64_t> parse_whole(const std::string& option, std::string_view text,
                                 std::int64_t least, std::int64_t most) {
  const Parsed parsed = parse_digits(text);
  const bool whole = parsed.number && parsed.rest.empty();
  if (whole && parsed.value >= least && parsed.value <= most) return parsed.value;
  const bool large = parsed.too_large && parsed.rest.empty();
  const std::string range = fmt::format("expected a whole number from {} to {}", least, most);
  const std::string hint = whole || large ? "" : "plain digits: no exponents, units or fractions";
  return fail(option, fmt::format("{}, {}", in_quotes(text), range), hint);
}

Result<double> parse_probability(const std::string& option, std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (problem == std::errc{} && stop == end && value >= 0 && value < 1) return value;
  return fail(option, fmt::format("{}, expected a number 0 <= p < 1", in_quotes(text)));
}

namespace {

Result<double> parse_above_zero(const std::string& option, std::string_view text,
                                std::chars_format format) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value, format);
  if (problem == std::errc{} && stop == end && value > 0 && std::isfinite(value)) return value;
  return fail(option, fmt::format("{}, expected a number above 0", in_quotes(text)));
}

}  // namespace

Result<double> parse_positive(const std::string& option, std::string_view text) {
  return parse_above_zero(option, text, std::chars_format::fixed);
}

Result<double> parse_rate(const std::string& option, std::string_view text) {
  return parse_above_zero(option, text, std::chars_format::general);
}

Result<std::int64_t> parse_size(const std::string& option, std::string_view text) {
  const Parsed parsed = parse_digits(text);
  const std::int64_t unit = parsed.number ? unit_bytes(parsed.rest) : 0;
  std::int64_t bytes = 0;
  const bool fits = !parsed.too_large && !__builtin_mul_overflow(parsed.value, unit, &bytes);
  if (unit > 0 && fits && bytes > 0) return bytes;
  return fail(option, fmt::format("{}, expected a size such as 24GiB (2^30) or 24GB (1e9)",
                                  in_quotes(text)));
}

Result<std::shared_ptr<const hardware::Device>> parse_device(const std::string& option,
                                                             const std::string& text) {
  const bool size = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  if (!size) return formats::find_device(text, option);
  const auto bytes = parse_size(option, text);
  if (!bytes) return tl::unexpected(bytes.error());
  return std::make_shared<const hardware::Device>(hardware::device_of_size(*bytes, text));
}

}  // namespace plimsoll::cli
