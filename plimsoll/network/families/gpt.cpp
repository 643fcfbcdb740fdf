// GPT-2 style: learned positions, pre-norm LayerNorm, one linear for q, k and v.
#include <fmt/format.h>

#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {
namespace {

// State-dict names: transformers' for gpt2, short ones for the inline model.
struct Names {
  const char* token;
  const char* position;
  const char* block;
  const char* norm1;
  const char* qkv;
  const char* projection;
  const char* norm2;
  const char* up;
  const char* down;
  const char* final_norm;
};

Names names_of(Family family) {
  if (family == Family::kGpt2) {
    return {"transformer.wte",
            "transformer.wpe",
            "transformer.h.{}",
            "ln_1",
            "attn.c_attn",
            "attn.c_proj",
            "ln_2",
            "mlp.c_fc",
            "mlp.c_proj",
            "transformer.ln_f"};
  }
  return {"wte",       "wpe", "blocks.{}", "ln1",      "attn.qkv",
          "attn.proj", "ln2", "mlp.fc",    "mlp.proj", "ln_f"};
}

struct Affine {
  ValueId weight = kNoValue;
  ValueId bias = kNoValue;
};

struct BlockWeights {
  Affine norm1, qkv, projection, norm2, up, down;
};

class GptBuilder {
 public:
  GptBuilder(const NetworkSpec& spec, const BuildOptions& options)
      : spec_(spec), options_(options), names_(names_of(spec.family)) {}

  Network build() {
    const TokenInputs inputs = token_inputs(g_, options_);
    make_weights();
    g_.enter("embeddings", -1);
    ValueId x = g_.dropout(embeddings(inputs.ids), options_.dropout);
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      g_.enter(prefix(i), static_cast<std::int32_t>(i));
      x = checkpointed_block(x, blocks_[static_cast<std::size_t>(i)]);
    }
    g_.enter("head", -1);
    const ValueId logits = g_.linear(norm(x, final_norm_), head_);
    g_.begin_loss();
    g_.enter("loss", -1);
    const ValueId loss = language_loss(g_, logits, inputs.targets, spec_, options_);
    Network network = g_.finish(logits, loss);
    network.vocabulary = spec_.vocabulary;
    return network;
  }

 private:
  std::string prefix(std::int64_t layer) const {
    return fmt::format(fmt::runtime(names_.block), layer);
  }

  ValueId weight(const std::string& name, const Dims& shape) {
    return g_.parameter(name + ".weight", shape, options_.dtype);
  }

  Affine norm_weights(const std::string& name) {
    const Dims shape{spec_.width};
    const ValueId w = g_.parameter(name + ".weight", shape, options_.dtype, Init::kOnes);
    return {w, g_.parameter(name + ".bias", shape, options_.dtype, Init::kZeros)};
  }

  Affine linear_weights(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    Affine weights;
    weights.weight = weight(name, {out, in});
    if (bias) weights.bias = g_.parameter(name + ".bias", {out}, options_.dtype, Init::kZeros);
    return weights;
  }

  void make_weights() {
    const std::int64_t d = spec_.width;
    g_.enter("embeddings", -1);
    token_ = weight(names_.token, {spec_.vocabulary, d});
    position_ = weight(names_.position, {spec_.positions, d});
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      g_.enter(prefix(i), static_cast<std::int32_t>(i));
      const std::string p = prefix(i) + ".";
      BlockWeights w;
      w.norm1 = norm_weights(p + names_.norm1);
      w.qkv = linear_weights(p + names_.qkv, checked_mul(3, d), d, spec_.attention_bias);
      w.projection = linear_weights(p + names_.projection, d, d, spec_.attention_bias);
      w.norm2 = norm_weights(p + names_.norm2);
      w.up = linear_weights(p + names_.up, spec_.feed_forward, d, spec_.mlp_bias);
      w.down = linear_weights(p + names_.down, d, spec_.feed_forward, spec_.mlp_bias);
      blocks_.push_back(w);
    }
    g_.enter("head", -1);
    final_norm_ = norm_weights(names_.final_norm);
    head_ = spec_.tied_head ? token_ : weight("lm_head", {spec_.vocabulary, d});
  }

  // The order of the two lookups decides the order of their gradients.
  ValueId embeddings(ValueId ids) {
    ValueId tokens = kNoValue;
    if (!options_.position_first) tokens = g_.embedding(ids, token_);
    const ValueId positions = g_.embedding(g_.arange(options_.sequence), position_);
    if (options_.position_first) tokens = g_.embedding(ids, token_);
    return g_.add(tokens, positions);
  }

  ValueId norm(ValueId x, const Affine& w) {
    return g_.layer_norm(x, w.weight, w.bias, spec_.norm_eps);
  }

  ValueId linear(ValueId x, const Affine& w) { return g_.linear(x, w.weight, w.bias); }

  ValueId checkpointed_block(ValueId x, const BlockWeights& w) {
    if (options_.checkpoint == Checkpoint::kNone) return block(x, w);
    g_.begin_region(options_.checkpoint == Checkpoint::kMatmuls);
    const ValueId out = block(x, w);
    g_.end_region(options_.dropout > 0);
    return out;
  }

  ValueId block(ValueId x, const BlockWeights& w) {
    x = g_.add(x, attention(norm(x, w.norm1), w));
    const ValueId hidden = g_.activation(spec_.activation, linear(norm(x, w.norm2), w.up));
    return g_.add(x, g_.dropout(linear(hidden, w.down), options_.dropout));
  }

  ValueId attention(ValueId x, const BlockWeights& w) {
    const std::vector<ValueId> parts = g_.split(linear(x, w.qkv), spec_.width, 2, 3);
    const ValueId q = split_heads(g_, parts[0], spec_.heads, spec_.head_dim, options_);
    const ValueId k = split_heads(g_, parts[1], spec_.heads, spec_.head_dim, options_);
    const ValueId v = split_heads(g_, parts[2], spec_.heads, spec_.head_dim, options_);
    const ValueId y = g_.attention(q, k, v, options_.kernel, options_.dropout, /*grouped=*/false);
    const ValueId rows = merge_heads(g_, y, spec_.heads, spec_.head_dim, options_);
    return g_.dropout(linear(rows, w.projection), options_.dropout);
  }

  const NetworkSpec& spec_;
  const BuildOptions& options_;
  const Names names_;
  Builder g_;
  ValueId token_ = kNoValue;
  ValueId position_ = kNoValue;
  ValueId head_ = kNoValue;
  std::vector<BlockWeights> blocks_;
  Affine final_norm_;
};

}  // namespace

Network build_gpt(const NetworkSpec& spec, const BuildOptions& options) {
  return GptBuilder(spec, options).build();
}

}  // namespace plimsoll::network
