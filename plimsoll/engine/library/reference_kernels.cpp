#include "plimsoll/engine/library/reference_kernels.hpp"

#include <cstdlib>
#include <string_view>

namespace plimsoll::engine {

bool use_reference_kernels() {
  constexpr const char* kVariable = "ONEDNN_MAX_CPU_ISA";
  setenv(kVariable, "AVX2", /*overwrite=*/0);
  return std::string_view(std::getenv(kVariable)) == "AVX2";
}

bool cpu_multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace plimsoll::engine
