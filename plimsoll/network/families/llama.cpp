// Llama style: RMSNorm, rotary positions, grouped key/value heads, gated MLP. Model types llama and
// mistral, in the semantics of plimsoll's engine and of transformers.
#include <fmt/format.h>

#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {
namespace {

struct BlockWeights {
  ValueId q, k, v, o;
  ValueId q_bias, k_bias, v_bias, o_bias;
  ValueId gate, up, down;
  ValueId gate_bias, up_bias, down_bias;
  ValueId norm1, norm2;
};

class LlamaBuilder {
 public:
  LlamaBuilder(const NetworkSpec& spec, const BuildOptions& options)
      : spec_(spec),
        options_(options),
        hugging_face_(options.semantics == Semantics::kHuggingFace) {}

  Network build() {
    const TokenInputs inputs = token_inputs(g_, options_);
    if (!hugging_face_) make_tables_as_inputs();
    make_weights();
    g_.enter("embeddings", -1);
    ValueId x = g_.embedding(inputs.ids, token_);
    if (hugging_face_) make_tables_in_forward();
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
    network.rope_theta = spec_.rope_theta;
    network.head_dim = spec_.head_dim;
    network.vocabulary = spec_.vocabulary;
    return network;
  }

 private:
  std::string prefix(std::int64_t layer) const { return fmt::format("model.layers.{}", layer); }

  Dims table_shape() const { return {1, options_.sequence, spec_.head_dim}; }

  void make_tables_as_inputs() {
    cos_ = g_.input("rope.cos", table_shape(), options_.dtype, InputKind::kCosine);
    sin_ = g_.input("rope.sin", table_shape(), options_.dtype, InputKind::kSine);
  }

  // transformers computes the tables in every forward; a checkpointed block's closure also keeps
  // its position ids.
  void make_tables_in_forward() {
    cos_ = g_.fresh(table_shape(), options_.dtype);
    sin_ = g_.fresh(table_shape(), options_.dtype);
    if (options_.checkpoint != Checkpoint::kNone) {
      position_ids_ = g_.fresh({1, options_.sequence}, DType::kInt64);
    }
  }

  ValueId matrix(const std::string& name, std::int64_t out, std::int64_t in) {
    return g_.parameter(name + ".weight", {out, in}, options_.dtype);
  }
  ValueId bias(const std::string& name, std::int64_t out, bool wanted) {
    return wanted ? g_.parameter(name + ".bias", {out}, options_.dtype, Init::kZeros) : kNoValue;
  }
  ValueId norm_weight(const std::string& name) {
    return g_.parameter(name + ".weight", {spec_.width}, options_.dtype, Init::kOnes);
  }

  void make_weights() {
    g_.enter("embeddings", -1);
    token_ = matrix("model.embed_tokens", spec_.vocabulary, spec_.width);
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      g_.enter(prefix(i), static_cast<std::int32_t>(i));
      blocks_.push_back(block_weights(prefix(i) + "."));
    }
    g_.enter("head", -1);
    final_norm_ = norm_weight("model.norm");
    head_ = spec_.tied_head ? token_ : matrix("lm_head", spec_.vocabulary, spec_.width);
  }

  BlockWeights block_weights(const std::string& p) {
    const std::int64_t d = spec_.width;
    const std::int64_t f = spec_.feed_forward;
    const std::int64_t queries = checked_mul(spec_.heads, spec_.head_dim);
    const std::int64_t keys = checked_mul(spec_.kv_heads, spec_.head_dim);
    BlockWeights w{};
    const auto attention = [&](const char* name, std::int64_t out, std::int64_t in, ValueId& b) {
      const std::string full = p + "self_attn." + name;
      const ValueId value = matrix(full, out, in);
      b = bias(full, out, spec_.attention_bias);
      return value;
    };
    const auto mlp = [&](const char* name, std::int64_t out, std::int64_t in, ValueId& b) {
      const std::string full = p + "mlp." + name;
      const ValueId value = matrix(full, out, in);
      b = bias(full, out, spec_.mlp_bias);
      return value;
    };
    w.q = attention("q_proj", queries, d, w.q_bias);
    w.k = attention("k_proj", keys, d, w.k_bias);
    w.v = attention("v_proj", keys, d, w.v_bias);
    w.o = attention("o_proj", d, queries, w.o_bias);
    w.gate = mlp("gate_proj", f, d, w.gate_bias);
    w.up = mlp("up_proj", f, d, w.up_bias);
    w.down = mlp("down_proj", d, f, w.down_bias);
    w.norm1 = norm_weight(p + "input_layernorm");
    w.norm2 = norm_weight(p + "post_attention_layernorm");
    return w;
  }

  ValueId norm(ValueId x, ValueId weight) {
    if (!hugging_face_ && options_.fused_rms_norm) return g_.rms_norm(x, weight, spec_.norm_eps);
    return composite_norm(x, weight);
  }

  // In fp32 step by step; the weight is applied after the cast back.
  ValueId composite_norm(ValueId x, ValueId weight) {
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

  ValueId checkpointed_block(ValueId x, const BlockWeights& w) {
    if (options_.checkpoint == Checkpoint::kNone) return block(x, w);
    g_.begin_region(options_.checkpoint == Checkpoint::kMatmuls);
    if (position_ids_ != kNoValue) g_.hold(position_ids_);
    const ValueId out = block(x, w);
    g_.end_region(hugging_face_ || options_.dropout > 0);
    return out;
  }

  ValueId block(ValueId x, const BlockWeights& w) {
    x = g_.add(x, attention(norm(x, w.norm1), w));
    const ValueId n = norm(x, w.norm2);
    const ValueId gate = g_.activation(spec_.activation, g_.linear(n, w.gate, w.gate_bias));
    const ValueId gated = g_.mul(gate, g_.linear(n, w.up, w.up_bias));
    const ValueId y = g_.linear(gated, w.down, w.down_bias);
    if (hugging_face_) g_.hold(n);  // a Python frame keeps the argument of mlp(x)
    return g_.add(x, y);
  }

  ValueId attention(ValueId x, const BlockWeights& w) {
    const std::int64_t h = spec_.head_dim;
    ValueId q = split_heads(g_, g_.linear(x, w.q, w.q_bias), spec_.heads, h, options_);
    ValueId k = split_heads(g_, g_.linear(x, w.k, w.k_bias), spec_.kv_heads, h, options_);
    const ValueId v = split_heads(g_, g_.linear(x, w.v, w.v_bias), spec_.kv_heads, h, options_);
    const ValueId cos = g_.unsqueeze(cos_, 1);
    const ValueId sin = g_.unsqueeze(sin_, 1);
    q = rotated(q, cos, sin);
    k = rotated(k, cos, sin);
    const bool grouped = spec_.kv_heads != spec_.heads;
    const ValueId y = g_.attention(q, k, v, options_.kernel, options_.dropout, grouped);
    return g_.linear(merge_heads(g_, y, spec_.heads, h, options_), w.o, w.o_bias);
  }

  const NetworkSpec& spec_;
  const BuildOptions& options_;
  const bool hugging_face_;
  Builder g_;
  ValueId token_ = kNoValue;
  ValueId head_ = kNoValue;
  ValueId final_norm_ = kNoValue;
  ValueId cos_ = kNoValue;
  ValueId sin_ = kNoValue;
  ValueId position_ids_ = kNoValue;
  std::vector<BlockWeights> blocks_;
};

}  // namespace

Network build_llama(const NetworkSpec& spec, const BuildOptions& options) {
  return LlamaBuilder(spec, options).build();
}

}  // namespace plimsoll::network
