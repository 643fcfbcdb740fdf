// Builders: from a NetworkSpec and the sizes of a run to a Network.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/network/adaptation.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::network {

enum class Checkpoint : std::uint8_t {
  kNone,
  kBlock,    // keep each block's input, recompute the block: fewest bytes, one more forward pass
  kMatmuls,  // keep the results of linear layers too, recompute the rest: cheap in FLOPs
};
std::string_view name(Checkpoint checkpoint);

// The sizes and choices of one forward pass.
struct BuildOptions {
  std::int64_t batch = 1;              // B: rows of a micro-batch
  std::int64_t sequence = 0;           // T: tokens per row (image networks: ignored)
  DType dtype = DType::kFloat32;       // of parameters and activations
  DType loss_dtype = DType::kFloat32;  // logits are cast to it before the loss when they differ
  AttentionKernel kernel = AttentionKernel::kFlash;
  double dropout = 0;
  // bf16 copies of weights and operands around matrix products and attention; norms and the residual
  // stream stay in `dtype`.
  bool autocast = false;
  Checkpoint checkpoint = Checkpoint::kNone;
  Semantics semantics = Semantics::kPlimsoll;
  bool shared_targets = false;  // targets are the inputs
  // Above 1: logits and loss in that many chunks of rows, at most; each is computed again in backward.
  // Semantics plimsoll only, not for image networks.
  std::int32_t loss_chunks = 1;
  std::optional<Lora> lora;  // not for image networks
  std::vector<FreezeRule> freeze;
  bool position_first = true;  // g++ evaluates the right operand of tok(ids) + pos(...) first

  bool operator==(const BuildOptions&) const = default;

  // Of matrix products and attention.
  DType operand() const { return autocast ? DType::kBFloat16 : dtype; }
};

// Never fails for a spec that validate() accepts; throws OverflowError for absurd sizes.
Network build_network(const NetworkSpec& spec, const BuildOptions& options);

// One builder per forward function; build_network chooses. build_decoder is plimsoll's own for every
// transformer, encoders included; build_hugging_face is that of transformers for hf::known() types.
Network build_decoder(const NetworkSpec& spec, const BuildOptions& options);
Network build_hugging_face(const NetworkSpec& spec, const BuildOptions& options);
Network build_cnn(const NetworkSpec& spec, const BuildOptions& options);

}  // namespace plimsoll::network
