#include "plimsoll/network/families/families.hpp"

namespace plimsoll::network {

std::string_view name(Checkpoint checkpoint) {
  switch (checkpoint) {
    case Checkpoint::kNone:
      return "none";
    case Checkpoint::kBlock:
      return "block";
    case Checkpoint::kMatmuls:
      return "matmuls";
  }
  return "?";
}

Network build_network(const NetworkSpec& spec, const BuildOptions& options) {
  switch (spec.family) {
    case Family::kMiniGpt:
    case Family::kGpt2:
      return build_gpt(spec, options);
    case Family::kLlama:
      return build_llama(spec, options);
    case Family::kCnn:
      return build_cnn(spec, options);
  }
  throw InternalError("family without a builder", std::source_location::current());
}

}  // namespace plimsoll::network
