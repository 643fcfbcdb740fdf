// Inline models on arbitrary bytes. The first byte chooses the kind.
#include <cstddef>
#include <cstdint>
#include <string>

#include "plimsoll/formats/inline_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string text = data[0] % 2 == 0 ? "minigpt:" : "cnn:";
  text.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto spec = plimsoll::formats::read_inline_model(text);
  if (spec) plimsoll::check(validate(*spec).has_value(), "an inline model is invalid");
  return 0;
}
