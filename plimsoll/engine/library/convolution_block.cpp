#include "plimsoll/engine/library/convolution_block.hpp"

#include <cstdlib>
#include <string_view>

#include <ATen/Version.h>

namespace plimsoll::engine {

std::int64_t convolution_block() {
  constexpr std::int64_t narrow = 8, wide = 16;
  const char* limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit != nullptr && std::string_view(limit).find("AVX512") == std::string_view::npos &&
      std::string_view(limit) != "ALL") {
    return narrow;
  }
  return at::get_cpu_capability().find("AVX512") != std::string::npos ? wide : narrow;
}

}  // namespace plimsoll::engine
