// Attention of a transformer in plimsoll's own operations, read from its architecture.
//
// One call of scaled_dot_product_attention; what its kernels cannot do (windows, biases by distance)
// is an additive mask that all layers of a kind share, and capped scores are products, a tanh and a
// softmax. Rotary tables and masks are inputs of the network, caches of keys and values its buffers.
//
// A cache has the layer's kept tokens, [B, K, S, H]. Prefill attends to what it has just computed and
// leaves it there, too; decode puts its token into the last row and attends to the whole cache, cast
// to the dtype of the arithmetic where it has another.
#pragma once

#include <vector>

#include "plimsoll/network/families/decoder_weights.hpp"
#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {

// The norm that the architecture asks for: one call of the library.
ValueId plimsoll_norm(Builder& g, const NetworkSpec& spec, ValueId x, const Affine& w);

// One call of the library; with an adapter its two products, their scaling and the sum.
ValueId plimsoll_linear(Builder& g, const BuildOptions& options, ValueId x, const Affine& w);

class DecoderAttention {
 public:
  // All three must outlive this object.
  DecoderAttention(Builder& g, const NetworkSpec& spec, const BuildOptions& options)
      : g_(g), spec_(spec), a_(spec.architecture), options_(options) {}

  // Rotary tables and masks of all layers; before any layer is built.
  void make_tables();

  // x [B, T, D] -> [B, T, D], of a layer with these facts.
  ValueId operator()(ValueId x, const LayerWeights& w, const LayerFacts& facts);

 private:
  // Query, key and value heads: [B, T, heads, H], or once in place [B, heads, T, H].
  struct Heads {
    ValueId q = kNoValue;
    ValueId k = kNoValue;
    ValueId v = kNoValue;
  };
  struct RotaryTable {
    double theta = 0;
    ValueId cos = kNoValue;
    ValueId sin = kNoValue;
  };
  struct Mask {
    std::int64_t window = 0;
    ValueId value = kNoValue;
  };

  std::int64_t rotary_dim() const;
  bool turns(const LayerFacts& facts) const;
  bool needs_mask(const LayerFacts& facts) const;
  std::int64_t window_of(const LayerFacts& facts) const;
  std::int64_t keys_of(const LayerFacts& facts) const;
  bool decodes() const { return options_.mode == Mode::kDecode; }
  const RotaryTable* table(double theta) const;
  ValueId mask(const LayerFacts& facts) const;
  void make_rotary_table(double theta);
  void make_mask(std::int64_t window);

  ValueId linear(ValueId x, const Affine& w) { return plimsoll_linear(g_, options_, x, w); }
  ValueId norm(ValueId x, const Affine& w) { return plimsoll_norm(g_, spec_, x, w); }
  Dims head_shape(std::int64_t heads) const;
  ValueId clipped(ValueId x);
  Heads separate(ValueId x, const LayerWeights& w);
  Heads fused(ValueId x, const LayerWeights& w);
  std::vector<ValueId> cut_in_order(ValueId y);
  Heads cut_by_group(ValueId y);
  ValueId projected(ValueId x, const Affine& w, const std::vector<Affine>& norms,
                    std::int64_t heads);
  ValueId placed(ValueId x, const std::vector<Affine>& norms);
  ValueId qk_norm(ValueId x, const std::vector<Affine>& norms);
  ValueId per_head_norm(ValueId x, const std::vector<Affine>& norms);
  ValueId joined_vectors(const std::vector<Affine>& norms, bool bias);
  void turn(Heads& heads, const RotaryTable& table);
  void use_cache(Heads& heads, const LayerFacts& facts);
  ValueId through_cache(const char* what, ValueId x, std::int64_t keys);
  ValueId rotated(ValueId x, ValueId cos, ValueId sin);
  ValueId rotated_part(ValueId x, std::int64_t size, ValueId cos, ValueId sin);
  AttentionOptions attention_options(const LayerFacts& facts) const;
  ValueId capped_attention(const Heads& heads, const AttentionOptions& o, std::int64_t keys);
  ValueId all_heads(ValueId x, std::int64_t keys);

  Builder& g_;
  const NetworkSpec& spec_;
  const Architecture& a_;
  const BuildOptions& options_;
  std::vector<RotaryTable> tables_;
  std::vector<Mask> masks_;
  std::size_t cached_layers_ = 0;
};

}  // namespace plimsoll::network
