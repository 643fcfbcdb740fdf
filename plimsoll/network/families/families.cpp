#include "plimsoll/network/families/families.hpp"

#include <algorithm>

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

std::string_view name(Mode mode) {
  switch (mode) {
    case Mode::kTrain:
      return "train";
    case Mode::kPrefill:
      return "prefill";
    case Mode::kDecode:
      return "decode";
  }
  return "?";
}

namespace {

Network build_trainable(const NetworkSpec& spec, const BuildOptions& options) {
  if (spec.family == Family::kCnn) return build_cnn(spec, options);
  if (options.semantics == Semantics::kHuggingFace) return build_hugging_face(spec, options);
  return build_decoder(spec, options);
}

bool frozen(const Network& network, const Parameter& p, const std::vector<FreezeRule>& rules) {
  const std::string& place = network.labels.at(p.label);
  return std::any_of(rules.begin(), rules.end(),
                     [&](const FreezeRule& rule) { return matches(rule, p, place); });
}

}  // namespace

Network build_network(const NetworkSpec& spec, const BuildOptions& options) {
  Network network = build_trainable(spec, options);
  for (Parameter& p : network.parameters) {
    if (frozen(network, p, options.freeze)) p.trainable = false;
  }
  return network;
}

}  // namespace plimsoll::network
