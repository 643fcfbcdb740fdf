// Llama and mistral as transformers runs them: RMSNorm, rotary positions, grouped key/value heads,
// gated MLP, each step an operation of its own.
#include "plimsoll/network/families/decoder_weights.hpp"
#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {
namespace {

class LlamaBuilder {
 public:
  LlamaBuilder(const NetworkSpec& spec, const BuildOptions& options)
      : spec_(spec), options_(options) {}

  Network build() {
    const TokenInputs inputs = token_inputs(g_, options_);
    const TransformerWeights w = make_weights(g_, spec_, options_.dtype);
    g_.enter("embeddings", -1);
    ValueId x = g_.embedding(inputs.ids, w.token);
    make_tables_in_forward();
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      g_.enter(layer_label(spec_, i), static_cast<std::int32_t>(i));
      x = checkpointed_block(x, w.layers[static_cast<std::size_t>(i)]);
    }
    g_.enter("head", -1);
    const ValueId logits = linear(norm(x, w.final_norm.weight), w.head);
    g_.begin_loss();
    g_.enter("loss", -1);
    const ValueId loss = language_loss(g_, logits, inputs.targets, spec_, options_);
    Network network = g_.finish(logits, loss);
    network.vocabulary = spec_.vocabulary;
    return network;
  }

 private:
  Dims table_shape() const { return {1, options_.sequence, spec_.head_dim}; }

  // transformers computes the tables in every forward; a checkpointed block's closure also keeps
  // its position ids.
  void make_tables_in_forward() {
    cos_ = g_.fresh(table_shape(), options_.dtype);
    sin_ = g_.fresh(table_shape(), options_.dtype);
    if (options_.checkpoint != Checkpoint::kNone) {
      position_ids_ = g_.fresh({1, options_.sequence}, DType::kInt64);
    }
  }

  ValueId linear(ValueId x, const Affine& w) { return g_.linear(x, w.weight, w.bias); }

  // In fp32 step by step; the weight is applied after the cast back.
  ValueId norm(ValueId x, ValueId weight) {
    const bool narrow = size_of(options_.dtype) < 4;
    const ValueId wide = narrow ? g_.to(x, DType::kFloat32) : x;
    const ValueId rstd = g_.rsqrt(g_.add_number(g_.mean(g_.pow2(wide)), spec_.norm_eps));
    const ValueId normal = g_.mul(wide, rstd);
    return g_.mul(weight, narrow ? g_.to(normal, options_.dtype) : normal);
  }

  ValueId rotate_half(ValueId x) {
    const std::int64_t half = spec_.head_dim / 2;
    const ValueId first = g_.slice(x, 3, 0, half);
    const ValueId second = g_.slice(x, 3, half, spec_.head_dim);
    return g_.cat({g_.neg(second), first}, 3);
  }

  ValueId rotated(ValueId x, ValueId cos, ValueId sin) {
    const ValueId straight = g_.mul(x, cos);
    return g_.add(straight, g_.mul(rotate_half(x), sin));
  }

  ValueId checkpointed_block(ValueId x, const LayerWeights& w) {
    if (options_.checkpoint == Checkpoint::kNone) return block(x, w);
    g_.begin_region(options_.checkpoint == Checkpoint::kMatmuls);
    if (position_ids_ != kNoValue) g_.hold(position_ids_);
    const ValueId out = block(x, w);
    g_.end_region(/*keep_random_state=*/true);
    return out;
  }

  ValueId block(ValueId x, const LayerWeights& w) {
    x = g_.add(x, attention(norm(x, w.attention_in.weight), w));
    const ValueId n = norm(x, w.mlp_in.weight);
    const ValueId gate = g_.activation(spec_.activation, linear(n, w.gate));
    const ValueId y = linear(g_.mul(gate, linear(n, w.up)), w.down);
    g_.hold(n);  // a Python frame keeps the argument of mlp(x)
    return g_.add(x, y);
  }

  ValueId attention(ValueId x, const LayerWeights& w) {
    const std::int64_t h = spec_.head_dim;
    ValueId q = split_heads(g_, linear(x, w.q), spec_.heads, h, options_);
    ValueId k = split_heads(g_, linear(x, w.k), spec_.kv_heads, h, options_);
    const ValueId v = split_heads(g_, linear(x, w.v), spec_.kv_heads, h, options_);
    const ValueId cos = g_.unsqueeze(cos_, 1);
    const ValueId sin = g_.unsqueeze(sin_, 1);
    q = rotated(q, cos, sin);
    k = rotated(k, cos, sin);
    const bool grouped = spec_.kv_heads != spec_.heads;
    const ValueId y = g_.attention(q, k, v, options_.kernel, options_.dropout, grouped);
    return linear(merge_heads(g_, y, spec_.heads, h, options_), w.output);
  }

  const NetworkSpec& spec_;
  const BuildOptions& options_;
  Builder g_;
  ValueId cos_ = kNoValue;
  ValueId sin_ = kNoValue;
  ValueId position_ids_ = kNoValue;
};

}  // namespace

Network build_llama(const NetworkSpec& spec, const BuildOptions& options) {
  return LlamaBuilder(spec, options).build();
}

}  // namespace plimsoll::network
