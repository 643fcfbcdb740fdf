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
  if (spec.family == Family::kCnn) return build_cnn(spec, options);
  if (options.semantics == Semantics::kHuggingFace) return build_hugging_face(spec, options);
  return build_decoder(spec, options);
}

}  // namespace plimsoll::network
