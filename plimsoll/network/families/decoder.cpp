// The forward function of every transformer in plimsoll's own operations, read from its architecture.
//
// Where transformers takes several steps this engine takes one call: rms_norm, layer_norm and
// scaled_dot_product_attention with a mask. Rotary tables and masks are inputs, made once per run.
#include "plimsoll/network/families/decoder_attention.hpp"
#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {
namespace {

class DecoderBuilder {
 public:
  DecoderBuilder(const NetworkSpec& spec, const BuildOptions& options)
      : spec_(spec), a_(spec.architecture), options_(options), attention_(g_, spec, options) {}

  Network build() {
    const TokenInputs inputs = token_inputs(g_, options_);
    if (a_.token_types > 0) {
      token_types_ = g_.input("token_types", {options_.batch, options_.sequence}, DType::kInt64,
                              InputKind::kZeros);
    }
    attention_.make_tables();
    w_ = make_weights(g_, spec_, options_);
    g_.enter("embeddings", -1);
    ValueId x = embeddings(inputs.ids);
    for (std::int64_t i = 0; i < spec_.layers; ++i) {
      g_.enter(layer_label(spec_, i), static_cast<std::int32_t>(i));
      facts_ = spec_.layer(i);
      x = checkpointed_block(x, w_.layers[static_cast<std::size_t>(i)]);
    }
    g_.enter("head", -1);
    x = features(x);
    Network network = finished(x, inputs.targets);
    network.vocabulary = spec_.vocabulary;
    return network;
  }

 private:
  // --- embeddings and head

  ValueId embeddings(ValueId ids) {
    ValueId x = a_.positions == Positions::kLearned ? with_positions(ids) : tokens(ids);
    if (token_types_ != kNoValue) x = g_.add(x, g_.embedding(token_types_, w_.token_type));
    if (a_.embedding_norm) x = norm(x, w_.embedding_norm);
    return a_.embedding_dropout ? g_.dropout(x, options_.dropout) : x;
  }

  ValueId tokens(ValueId ids) {
    ValueId x = g_.embedding(ids, w_.token);
    if (a_.embedding_scale != 1) x = g_.mul_number(x, a_.embedding_scale);
    return a_.embedding_width > 0 ? linear(x, w_.project_in) : x;
  }

  // The order of the two lookups decides the order of their gradients.
  ValueId with_positions(ValueId ids) {
    ValueId x = kNoValue;
    if (!options_.position_first) x = tokens(ids);
    const ValueId rows = g_.arange(options_.sequence, options_.start() + a_.position_offset);
    const ValueId positions = g_.embedding(rows, w_.position);
    if (options_.position_first) x = tokens(ids);
    return g_.add(x, positions);
  }

  Network finished(ValueId x, ValueId targets) {
    if (options_.infers()) return end_with_last_logits(x);
    return options_.loss_chunks > 1 ? end_in_chunks(x, targets) : end(x, targets);
  }

  // Logits [B, V] of the position whose successor is wanted.
  Network end_with_last_logits(ValueId x) {
    const ValueId scores = logits(g_.select(x, 1, options_.sequence - 1));
    g_.begin_loss();
    return g_.finish(scores, kNoValue);
  }

  Network end(ValueId x, ValueId targets) {
    const ValueId scores = logits(x);
    g_.begin_loss();
    g_.enter("loss", -1);
    return g_.finish(scores, language_loss(g_, scores, targets, spec_, options_));
  }

  // No tensor of all logits: the network's `logits` are none.
  Network end_in_chunks(ValueId x, ValueId targets) {
    g_.begin_loss();
    g_.enter("loss", -1);
    const auto chunk_logits = [this](ValueId rows) { return logits(rows); };
    return g_.finish(kNoValue, chunked_loss(g_, x, targets, spec_, options_, chunk_logits));
  }

  // What the head's matrix reads.
  ValueId features(ValueId x) {
    if (a_.final_norm) x = norm(x, w_.final_norm);
    if (a_.embedding_width > 0) x = linear(x, w_.project_out);
    if (a_.masked_head) {
      x = g_.activation(spec_.activation, linear(x, w_.head_dense));
      x = norm(x, w_.head_norm);
    }
    return x;
  }

  ValueId logits(ValueId x) {
    ValueId scores = linear(x, w_.head);
    if (a_.logit_scale != 1) scores = g_.mul_number(scores, a_.logit_scale);
    if (a_.logit_softcap == 0) return scores;
    const ValueId small = g_.mul_number(scores, 1 / a_.logit_softcap);
    return g_.mul_number(g_.activation(OpKind::kTanh, small), a_.logit_softcap);
  }

  // --- blocks

  ValueId linear(ValueId x, const Affine& w) { return plimsoll_linear(g_, options_, x, w); }
  ValueId norm(ValueId x, const Affine& w) { return plimsoll_norm(g_, spec_, x, w); }

  ValueId checkpointed_block(ValueId x, const LayerWeights& w) {
    if (options_.checkpoint == Checkpoint::kNone) return block(x, w);
    g_.begin_region(options_.checkpoint == Checkpoint::kMatmuls);
    const ValueId out = block(x, w);
    g_.end_region(options_.dropout > 0);
    return out;
  }

  bool norm_before() const {
    return a_.placement == NormPlacement::kPre || a_.placement == NormPlacement::kBoth;
  }
  bool norm_of_result() const {
    return a_.placement == NormPlacement::kOutput || a_.placement == NormPlacement::kBoth;
  }

  ValueId block(ValueId x, const LayerWeights& w) {
    if (a_.parallel) return parallel_block(x, w);
    x = joined(x, attention_(branch_input(x, w.attention_in), w, facts_), w.attention_out);
    return joined(x, mlp(branch_input(x, w.mlp_in), w), w.mlp_out);
  }

  ValueId parallel_block(ValueId x, const LayerWeights& w) {
    const ValueId n = narrow(norm(x, w.attention_in));
    const ValueId attended = branch(attention_(n, w, facts_), w.attention_out);
    const ValueId m = a_.shared_norm ? n : narrow(norm(x, w.mlp_in));
    const ValueId hidden = branch(mlp(m, w), w.mlp_out);
    return g_.add(g_.add(x, attended), hidden);
  }

  // Cast once for all products that read it.
  ValueId branch_input(ValueId x, const Affine& before) {
    return narrow(norm_before() ? norm(x, before) : x);
  }
  ValueId narrow(ValueId x) { return g_.cast(x, options_.operand()); }

  // What a branch adds to the residual stream.
  ValueId branch(ValueId y, const Affine& result_norm) {
    if (a_.residual_dropout) y = g_.dropout(y, options_.dropout);
    if (norm_of_result()) y = norm(y, result_norm);
    return a_.residual_scale == 1 ? y : g_.mul_number(y, a_.residual_scale);
  }

  ValueId joined(ValueId x, ValueId y, const Affine& after) {
    const ValueId sum = g_.add(x, branch(y, after));
    return a_.placement == NormPlacement::kPostResidual ? norm(sum, after) : sum;
  }

  ValueId mlp(ValueId x, const LayerWeights& w) {
    if (!a_.gated) return linear(activated(linear(x, w.up)), w.down);
    if (a_.fused_gate_up) {
      const std::vector<ValueId> parts = g_.split(linear(x, w.gate_up), spec_.feed_forward, 2, 2);
      return linear(g_.mul(activated(parts[0]), parts[1]), w.down);
    }
    const ValueId gate = activated(linear(x, w.gate));
    return linear(g_.mul(gate, linear(x, w.up)), w.down);
  }

  ValueId activated(ValueId x) {
    x = g_.activation(spec_.activation, x);
    return a_.squared_activation ? g_.pow2(x) : x;
  }

  const NetworkSpec& spec_;
  const Architecture& a_;
  const BuildOptions& options_;
  Builder g_;
  TransformerWeights w_;
  DecoderAttention attention_;
  ValueId token_types_ = kNoValue;
  LayerFacts facts_;  // of the layer being built
};

}  // namespace

Network build_decoder(const NetworkSpec& spec, const BuildOptions& options) {
  return DecoderBuilder(spec, options).build();
}

}  // namespace plimsoll::network
