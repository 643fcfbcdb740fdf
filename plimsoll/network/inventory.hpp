// Inventory: which parameters and buffers a model has, by the names of its state dict.
//
// It says nothing about how a model computes; a Network (network.hpp) does, and where a model type
// has both they hold the same parameters. Shapes are those of transformers: gpt2's linears are
// stored [in, out]. Parameters that share memory are listed once, under the first name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/network/dims.hpp"

namespace plimsoll::network {

// What a parameter is for. Biases belong to their matrix.
enum class ParameterRole : std::uint8_t {
  kTokenEmbedding,
  kPositionEmbedding,
  kOtherEmbedding,  // token types, per-layer inputs, image patches
  kAttention,
  kMixer,  // what hybrids have in place of attention: state space, linear attention, convolution
  kMlp,
  kExperts,
  kSharedExperts,
  kRouter,
  kNorm,
  kHead,
  kOther,
};
std::string_view name(ParameterRole role);

struct InventoryParameter {
  std::string name;
  Dims shape;
  ParameterRole role = ParameterRole::kOther;
  std::int32_t layer = -1;  // -1: outside the layers
  // Experts: the tensor holds `experts` equal parts, of which a token uses `used`.
  std::int64_t experts = 1;
  std::int64_t used = 1;
};

struct InventoryBuffer {
  std::string name;
  Dims shape;
  bool persistent = false;  // in the state dict, so in checkpoints
};

struct BufferCount {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
};

struct Inventory {
  std::vector<InventoryParameter> parameters;
  // Names of one and the same parameter; the first is in `parameters`.
  std::vector<std::vector<std::string>> tied;
  std::vector<InventoryBuffer> buffers;

  std::int64_t elements() const;      // ties once
  std::int64_t ties_counted() const;  // under every name
  // Elements that one token's forward pass uses: all but the experts that are not chosen. Both
  // embeddings count whole.
  std::int64_t active_elements() const;
  std::int64_t elements_of(ParameterRole role) const;
  BufferCount count_buffers(bool persistent) const;
  const InventoryParameter* find(std::string_view name) const;
};

// Writes an inventory in the order of a module's constructor.
class InventoryBuilder {
 public:
  // The prefix of the names that follow, and their layer.
  void enter(std::string prefix, std::int64_t layer = -1);
  void role(ParameterRole role) { role_ = role; }

  void tensor(std::string_view name, const Dims& shape) { add(name, shape, role_, 1, 1); }
  // NAME.weight [out, in] and NAME.bias [out].
  void linear(std::string_view name, std::int64_t out, std::int64_t in, bool bias = false);
  // NAME.weight [out, in / groups, size ...] and NAME.bias [out].
  void convolution(std::string_view name, const Dims& shape, bool bias);
  // NAME.weight [width] and NAME.bias [width], whatever the role of what surrounds them.
  void norm(std::string_view name, std::int64_t width, bool bias = false);
  // NAME.weight [rows, width].
  void embedding(std::string_view name, std::int64_t rows, std::int64_t width, ParameterRole role);
  // One tensor that holds all experts: shape [experts, ...], `used` of them by a token.
  void experts(std::string_view name, const Dims& shape, std::int64_t used);
  // `other` is one more name of the parameter `name`; both without prefix.
  void tie(std::string_view name, std::string_view other);
  void buffer(std::string_view name, const Dims& shape, bool persistent = false);

  Inventory finish() { return std::move(inventory_); }

 private:
  void add(std::string_view name, const Dims& shape, ParameterRole role, std::int64_t experts,
           std::int64_t used);

  Inventory inventory_;
  std::string prefix_;
  std::int32_t layer_ = -1;
  ParameterRole role_ = ParameterRole::kOther;
};

}  // namespace plimsoll::network
