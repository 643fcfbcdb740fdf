// Values of options: whole numbers, probabilities, sizes. Each refusal says what was expected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/hardware/device.hpp"

namespace plimsoll::cli {

// A whole number from `least` to `most` in decimal digits. No exponents, no "1k", no fractions.
Result<std::int64_t> parse_whole(const std::string& option, std::string_view text,
                                 std::int64_t least, std::int64_t most);

// 0 <= p < 1, as a decimal fraction.
Result<double> parse_probability(const std::string& option, std::string_view text);

// A finite number above 0, as a decimal fraction.
Result<double> parse_positive(const std::string& option, std::string_view text);

// The same, also with an exponent: "3e-4".
Result<double> parse_rate(const std::string& option, std::string_view text);

// Bytes: "24GiB" (2^30), "24GB" (1e9), the same with K, M, T, or digits alone.
Result<std::int64_t> parse_size(const std::string& option, std::string_view text);

// A name of `plimsoll devices`, or a size as parse_size() reads it.
Result<std::shared_ptr<const hardware::Device>> parse_device(const std::string& option,
                                                             const std::string& text);

// `text` in quotes, cut when long.
std::string in_quotes(std::string_view text);

// The complaint that `given` is none of `known`, with the nearest of them; `what` goes before it.
tl::unexpected<Error> unknown_value(const std::string& option, const std::string& given,
                                    const std::vector<std::string>& known,
                                    std::string_view what = "");

}  // namespace plimsoll::cli
