#include "plimsoll/engine/library/version.hpp"

#include <string_view>

#include <ATen/Version.h>

#include "plimsoll/engine/torch.hpp"
#include "plimsoll/network/library_facts.hpp"

namespace plimsoll::engine {

std::string libtorch_version() {
  // The only text compiled into the library that carries its version.
  const std::string configuration = at::show_config();
  constexpr std::string_view key = "TORCH_VERSION=";
  const std::size_t begin = configuration.find(key);
  if (begin == std::string::npos) return TORCH_VERSION;
  const std::size_t end = configuration.find_first_of(", \n", begin);
  return configuration.substr(begin + key.size(), end - begin - key.size());
}

bool is_known_libtorch() {
  const std::string version = libtorch_version();
  return version.substr(0, version.find('+')) == network::kKnownLibtorch;
}

}  // namespace plimsoll::engine
