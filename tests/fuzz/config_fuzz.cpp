// read_config on arbitrary bytes: a valid spec or one Error, never a crash or an exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plimsoll/formats/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = plimsoll::formats::read_config(text, "config.json");
  if (spec) {
    plimsoll::check(validate(*spec).has_value(), "read_config returned an invalid spec");
  } else {
    plimsoll::check(!format_error(spec.error()).empty(), "an Error without a message");
  }
  return 0;
}
