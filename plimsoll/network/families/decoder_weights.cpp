#include "plimsoll/network/families/decoder_weights.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "plimsoll/network/families/weight_names.hpp"

namespace plimsoll::network {
namespace {

class WeightBuilder {
 public:
  WeightBuilder(Builder& g, const NetworkSpec& spec, const BuildOptions& options)
      : g_(g),
        spec_(spec),
        a_(spec.architecture),
        names_(weight_names(spec)),
        dtype_(options.dtype),
        lora_(options.lora) {}

  TransformerWeights build() {
    TransformerWeights w;
    g_.enter("embeddings", -1);
    make_embeddings(w);
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      g_.enter(layer_label(spec_, i), static_cast<std::int32_t>(i));
      prefix_ = fmt::format("{}.", layer_label(spec_, i));
      w.layers.push_back(layer());
    }
    prefix_.clear();
    g_.enter("head", -1);
    make_head(w);
    return w;
  }

 private:
  ValueId vector(std::string_view name, const char* part, std::int64_t size, Init init) {
    return g_.parameter(fmt::format("{}{}.{}", prefix_, name, part), {size}, dtype_, init);
  }

  ValueId matrix(std::string_view name, std::int64_t rows, std::int64_t columns) {
    return g_.parameter(fmt::format("{}{}.weight", prefix_, name), {rows, columns}, dtype_);
  }

  Affine linear(std::string_view name, std::int64_t out, std::int64_t in, bool bias) {
    Affine w;
    w.weight = matrix(name, out, in);
    if (bias) w.bias = vector(name, "bias", out, Init::kZeros);
    return w;
  }

  // A layer's matrix, which may have an adapter.
  Affine linear(Matrix target, std::string_view name, std::int64_t out, std::int64_t in,
                bool bias) {
    Affine w = linear(name, out, in, bias);
    if (!lora_ || !lora_->has(target)) return w;
    w.adapter_a = adapter(name, "lora_A", lora_->rank, in, Init::kNormal);
    w.adapter_b = adapter(name, "lora_B", out, lora_->rank, Init::kZeros);
    return w;
  }

  ValueId adapter(std::string_view name, const char* part, std::int64_t rows, std::int64_t columns,
                  Init init) {
    const ValueId value = g_.parameter(fmt::format("{}{}.{}.weight", prefix_, name, part),
                                       {rows, columns}, dtype_, init);
    g_.network().parameters.back().adapter = true;
    return value;
  }

  // 1 + w begins as 1, too.
  Affine norm(std::string_view name, std::int64_t size, bool bias) {
    Affine w;
    w.weight = vector(name, "weight", size, adds_one(a_.norm) ? Init::kZeros : Init::kOnes);
    if (bias) w.bias = vector(name, "bias", size, Init::kZeros);
    return w;
  }

  Affine norm(std::string_view name) {
    return a_.norm_weight ? norm(name, spec_.width, a_.norm_bias) : Affine{};
  }

  std::int64_t embedding_width() const {
    return a_.embedding_width > 0 ? a_.embedding_width : spec_.width;
  }

  void make_embeddings(TransformerWeights& w) {
    const std::int64_t d = spec_.width;
    w.token = matrix(names_.token, spec_.vocabulary, embedding_width());
    if (a_.positions == Positions::kLearned) {
      const std::int64_t rows = checked_add(spec_.positions, a_.position_offset);
      w.position = matrix(names_.position, rows, d);
    }
    if (a_.token_types > 0) w.token_type = matrix(names_.token_type, a_.token_types, d);
    if (a_.embedding_norm) w.embedding_norm = norm(names_.embedding_norm);
    if (a_.embedding_width == 0) return;
    w.project_in = linear(names_.project_in, d, a_.embedding_width, false);
    w.project_out = linear(names_.project_out, a_.embedding_width, d, false);
  }

  void make_head(TransformerWeights& w) {
    const std::int64_t d = spec_.width;
    if (a_.final_norm) w.final_norm = norm(names_.final_norm);
    if (a_.masked_head) {
      w.head_dense = linear(names_.head_dense, d, d, true);
      w.head_norm = norm(names_.head_norm);
      w.head.bias = vector(names_.head_bias, "bias", spec_.vocabulary, Init::kZeros);
    } else if (a_.head_bias) {
      w.head.bias = vector(names_.head, "bias", spec_.vocabulary, Init::kZeros);
    }
    w.head.weight =
        spec_.tied_head ? w.token : matrix(names_.head, spec_.vocabulary, embedding_width());
  }

  LayerWeights layer() {
    LayerWeights w;
    const NormOrder norms = names_.norms;
    if (norms == NormOrder::kFirst || norms == NormOrder::kBefore) make_attention_norms(w);
    if (norms == NormOrder::kFirst) make_mlp_norms(w);
    make_attention(w);
    if (norms == NormOrder::kAfter) make_attention_norms(w);
    if (norms == NormOrder::kBefore) make_mlp_norms(w);
    make_mlp(w);
    if (norms == NormOrder::kLast) make_attention_norms(w);
    if (norms == NormOrder::kLast || norms == NormOrder::kAfter) make_mlp_norms(w);
    return w;
  }

  void make_attention(LayerWeights& w) {
    const std::int64_t d = spec_.width;
    const std::int64_t queries = checked_mul(spec_.heads, spec_.head_dim);
    const std::int64_t keys = checked_mul(spec_.kv_heads, spec_.head_dim);
    const bool bias = a_.qkv_bias || spec_.attention_bias;
    if (a_.qkv == QkvLayout::kSeparate) {
      w.q = linear(Matrix::kQ, names_.q, queries, d, bias);
      w.k = linear(Matrix::kK, names_.k, keys, d, bias);
      w.v = linear(Matrix::kV, names_.v, keys, d, bias);
    } else {
      const std::int64_t rows = checked_add(queries, checked_mul(2, keys));
      w.qkv = linear(Matrix::kQkv, names_.qkv, rows, d, bias);
    }
    w.output = linear(Matrix::kOutput, names_.output, d, queries, spec_.attention_bias);
    w.q_norm = qk_norm(names_.q_norm, spec_.heads);
    w.k_norm = qk_norm(names_.k_norm, spec_.kv_heads);
  }

  std::vector<Affine> qk_norm(std::string_view name, std::int64_t heads) {
    const std::int64_t h = spec_.head_dim;
    std::vector<Affine> norms;
    switch (a_.qk_norm) {
      case QkNorm::kNone:
        break;
      case QkNorm::kPerHead:
        norms.push_back(norm(name, h, a_.qk_norm_bias));
        break;
      case QkNorm::kWhole:
        norms.push_back(norm(name, checked_mul(heads, h), a_.qk_norm_bias));
        break;
      case QkNorm::kPerHeadOwn:
        for (std::int64_t i = 0; i < heads; ++i) {
          norms.push_back(norm(fmt::format(fmt::runtime(name), i), h, a_.qk_norm_bias));
        }
        break;
    }
    return norms;
  }

  void make_mlp(LayerWeights& w) {
    const std::int64_t d = spec_.width;
    const std::int64_t f = spec_.feed_forward;
    if (a_.fused_gate_up) {
      w.gate_up = linear(Matrix::kGateUp, names_.gate_up, checked_mul(2, f), d, spec_.mlp_bias);
    } else {
      if (a_.gated) w.gate = linear(Matrix::kGate, names_.gate, f, d, spec_.mlp_bias);
      w.up = linear(Matrix::kUp, names_.up, f, d, spec_.mlp_bias);
    }
    w.down = linear(Matrix::kDown, names_.down, d, f, spec_.mlp_bias);
  }

  bool norms_before() const {
    return a_.placement == NormPlacement::kPre || a_.placement == NormPlacement::kBoth;
  }
  bool norms_after() const { return a_.placement != NormPlacement::kPre; }

  void make_attention_norms(LayerWeights& w) {
    if (norms_before()) w.attention_in = norm(names_.attention_in);
    if (norms_after()) w.attention_out = norm(names_.attention_out);
  }

  void make_mlp_norms(LayerWeights& w) {
    if (norms_before() && !a_.shared_norm) w.mlp_in = norm(names_.mlp_in);
    if (norms_after()) w.mlp_out = norm(names_.mlp_out);
  }

  Builder& g_;
  const NetworkSpec& spec_;
  const Architecture& a_;
  const WeightNames names_;
  const DType dtype_;
  const std::optional<Lora>& lora_;
  std::string prefix_;
};

}  // namespace

std::string layer_label(const NetworkSpec& spec, std::int64_t layer) {
  return fmt::format(fmt::runtime(weight_names(spec).layer), layer);
}

TransformerWeights make_weights(Builder& g, const NetworkSpec& spec, const BuildOptions& options) {
  TransformerWeights weights = WeightBuilder(g, spec, options).build();
  if (!options.lora) return weights;
  for (Parameter& p : g.network().parameters) p.trainable = p.adapter;
  return weights;
}

}  // namespace plimsoll::network
