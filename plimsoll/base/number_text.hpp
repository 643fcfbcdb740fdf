// Numbers as people read them. GiB is 2^30 and GB is 1e9; plimsoll never mixes the two.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/base/units.hpp"

namespace plimsoll {

// 1234567 -> "1,234,567".
std::string grouped(std::int64_t value);

// Two decimals in the largest binary unit that gives at least 1: "22.17 MiB"; below 1 KiB "512 B".
std::string human(Bytes bytes);

// Decimal prefixes for counts of operations and parameters: "8.03 B", "1.24 T"; below 1000 exact.
std::string human_count(std::int64_t value);

// FLOPs with SI prefixes: "1.23 TFLOP".
std::string human(Flops flops);

// Three or four significant digits with an SI prefix from n to E: "4.80 TB/s", "989.40 TFLOP/s",
// "3.40 us". Zero has none.
std::string with_prefix(double value, std::string_view unit);

// part of whole: "12.5 %"; nothing of a whole that is 0.
std::string share_text(std::int64_t part, std::int64_t whole);

}  // namespace plimsoll
