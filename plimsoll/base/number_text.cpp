#include "plimsoll/base/number_text.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace plimsoll {
namespace {

std::string scaled(double value, double step, std::span<const std::string_view> names) {
  std::size_t index = 0;
  while (std::abs(value) >= step && index + 1 < names.size()) {
    value /= step;
    ++index;
  }
  return fmt::format("{:.2f} {}", value, names[index]);
}

}  // namespace

std::string grouped(std::int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    const bool after_digit = i > 0 && digits[i - 1] != '-';
    if (after_digit && left % 3 == 0) result.push_back(',');
    result.push_back(digits[i]);
  }
  return result;
}

std::string human(Bytes bytes) {
  static constexpr std::array<std::string_view, 7> kNames = {"B",   "KiB", "MiB", "GiB",
                                                             "TiB", "PiB", "EiB"};
  if (std::abs(static_cast<double>(bytes.value)) < 1024) return fmt::format("{} B", bytes.value);
  return scaled(static_cast<double>(bytes.value), 1024, kNames);
}

std::string human_count(std::int64_t value) {
  static constexpr std::array<std::string_view, 5> kNames = {"", "K", "M", "B", "T"};
  if (std::abs(static_cast<double>(value)) < 1000) return fmt::format("{}", value);
  return scaled(static_cast<double>(value), 1000, kNames);
}

std::string with_prefix(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 10> kPrefixes = {"n", "u", "m", "",  "k",
                                                                 "M", "G", "T", "P", "E"};
  if (value == 0) return fmt::format("0 {}", unit);
  std::size_t index = 0;
  double scale = 1e-9;
  while (std::abs(value) >= 1000 * scale && index + 1 < kPrefixes.size()) {
    scale *= 1000;
    ++index;
  }
  return fmt::format("{:.2f} {}{}", value / scale, kPrefixes.at(index), unit);
}

std::string human(Flops flops) {
  static constexpr std::array<std::string_view, 7> kNames = {"FLOP",  "kFLOP", "MFLOP", "GFLOP",
                                                             "TFLOP", "PFLOP", "EFLOP"};
  return scaled(static_cast<double>(flops.value), 1000, kNames);
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace plimsoll
