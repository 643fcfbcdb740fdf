// Manifests of checkpoints: what is accepted is consistent, and its text means the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plimsoll/checkpoint/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::checkpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = parse_manifest(text, "file");
  if (!manifest) return 0;
  const auto again = parse_manifest(manifest_text(*manifest), "again");
  plimsoll::check(again.has_value() && *again == *manifest, "a manifest changes in its text");
  return 0;
}
