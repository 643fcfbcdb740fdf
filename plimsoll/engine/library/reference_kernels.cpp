#include "plimsoll/engine/library/reference_kernels.hpp"

#include <cstdlib>
#include <string_view>

namespace plimsoll::engine {

namespace {

constexpr const char* kVariable = "ONEDNN_MAX_CPU_ISA";

}  // namespace

bool use_reference_kernels() {
  setenv(kVariable, "AVX2", /*overwrite=*/0);
  return runs_reference_kernels();
}

bool runs_reference_kernels() {
  const char* limit = std::getenv(kVariable);
  return limit != nullptr && std::string_view(limit) == "AVX2";
}

bool cpu_multiplies_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace plimsoll::engine
