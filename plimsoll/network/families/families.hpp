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

// What a forward pass is for.
enum class Mode : std::uint8_t {
  kTrain,    // logits and a loss, which backward follows
  kPrefill,  // a whole prompt: keys and values go to the cache, logits of the last position
  kDecode,   // one token per row, with the cache of the tokens so far
};
std::string_view name(Mode mode);

// The sizes and choices of one forward pass.
struct BuildOptions {
  std::int64_t batch = 1;              // B: rows of a micro-batch
  std::int64_t sequence = 0;           // T: tokens per row (image networks: ignored); decode: 1
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
  // Inference: plimsoll's own operations on decoders only, which have a cache.
  Mode mode = Mode::kTrain;
  std::int64_t context = 0;  // S: tokens in the cache at the pass's end; prefill: T
  DType kv_dtype = DType::kFloat32;
  bool position_first = true;  // g++ evaluates the right operand of tok(ids) + pos(...) first

  bool operator==(const BuildOptions&) const = default;

  bool infers() const { return mode != Mode::kTrain; }
  // Position of the first token of a row.
  std::int64_t start() const { return mode == Mode::kDecode ? context - sequence : 0; }
  // Of matrix products and attention.
  DType operand() const { return autocast ? DType::kBFloat16 : dtype; }
};

// Never fails for a spec that validate() accepts; throws OverflowError for absurd sizes.
Network build_network(const NetworkSpec& spec, const BuildOptions& options);

// One builder per forward function; build_network chooses. build_decoder is plimsoll's own for every
// transformer, encoders included; build_hugging_face is that of transformers, where hf::unknown_part() is
// empty.
Network build_decoder(const NetworkSpec& spec, const BuildOptions& options);
Network build_hugging_face(const NetworkSpec& spec, const BuildOptions& options);
Network build_cnn(const NetworkSpec& spec, const BuildOptions& options);

}  // namespace plimsoll::network
