#include "plimsoll/network/families/hf_model.hpp"

#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {
namespace hf {
namespace {

// gpt2's matrices are [in, out].
void transpose_matrices(Context& c) {
  for (const LayerWeights& w : c.w.layers) {
    for (ValueId matrix : {w.qkv.weight, w.output.weight, w.up.weight, w.down.weight}) {
      for (Parameter& p : c.g.network().parameters) {
        if (p.value == matrix) p.shape = {p.shape[1], p.shape[0]};
      }
    }
  }
}

int rank_of(const LayerWeights& w, ParameterOrder order, ValueId p) {
  const bool first = order == ParameterOrder::kNormsFirst
                         ? p == w.attention_in.weight || p == w.attention_in.bias ||
                               p == w.mlp_in.weight || p == w.mlp_in.bias
                         : order == ParameterOrder::kOutputFirst && p == w.output.weight;
  return first ? 0 : 1;
}

// As the modules register them: the optimizer walks parameters in this order. A linear layer has its
// weight before its bias.
void order_parameters(Context& c) {
  std::vector<Parameter>& all = c.g.network().parameters;
  const auto before = [&](const Parameter& a, const Parameter& b) {
    if (a.unit != b.unit) return false;
    if (a.unit < 0) return a.value == c.w.head.weight && b.value == c.w.head.bias;
    const LayerWeights& w = c.w.layers[static_cast<std::size_t>(a.unit)];
    return rank_of(w, c.style.order, a.value) < rank_of(w, c.style.order, b.value);
  };
  // Only neighbours change places, so that the units stay where they are.
  for (std::size_t end = all.size(); end > 1; --end) {
    bool moved = false;
    for (std::size_t i = 1; i < end; ++i) {
      if (!before(all[i], all[i - 1])) continue;
      std::swap(all[i], all[i - 1]);
      moved = true;
    }
    if (!moved) return;
  }
}

ValueId model(Context& c, ValueId ids) {
  PythonFrame frame(c);
  c.g.enter("embeddings", -1);
  ValueId x = embeddings(c, frame, ids);
  ValueId previous = kNoValue;  // probabilities that a block returned
  for (std::int64_t i = 0; i < c.spec.layers; ++i) {
    c.g.enter(layer_label(c.spec, i), static_cast<std::int32_t>(i));
    x = layer(c, x, i);
    if (previous != kNoValue) c.g.release(previous);
    previous = std::exchange(c.returned, kNoValue);
    if (previous != kNoValue) c.g.keep(previous);
  }
  c.g.enter("head", -1);
  if (c.a.final_norm) x = norm(c, x, c.w.final_norm);
  release_tables(c);
  if (previous != kNoValue) c.g.release(previous);
  return x;
}

}  // namespace

namespace {

// bert's head: dense, activation, norm before the decoder.
ValueId masked_head(Context& c, ValueId x) {
  PythonFrame frame(c);
  ValueId y = activation(c, frame(c.plain_linear(frame(x), c.w.head_dense)));
  y = norm(c, y, c.w.head_norm);
  return c.plain_linear(y, c.w.head);
}

// The labels are the inputs as they are; only autocast casts the logits.
ValueId masked_loss(Context& c, ValueId logits, ValueId labels) {
  const std::int64_t rows = checked_mul(c.o.batch, c.o.sequence);
  const ValueId flat = c.g.view(logits, {rows, c.spec.vocabulary});
  const ValueId scores = c.o.autocast ? c.g.to(flat, DType::kFloat32) : flat;
  return c.g.cross_entropy(scores, c.g.view(labels, {rows}));
}

}  // namespace

ValueId head(Context& c, ValueId x) {
  if (c.a.masked_head) return masked_head(c, x);
  ValueId logits = c.plain_linear(x, c.w.head);
  if (c.a.logit_scale != 1) logits = c.g.scale(logits, c.a.logit_scale);
  if (c.a.logit_softcap == 0) return logits;
  const ValueId small = c.g.activation(OpKind::kTanh, c.g.divide(logits, c.a.logit_softcap));
  return c.g.scale(small, c.a.logit_softcap);
}

// Labels are padded by one column, shifted and made contiguous: one row already is.
ValueId loss(Context& c, ValueId logits, ValueId given) {
  if (c.a.masked_head) return masked_loss(c, logits, given);
  const std::int64_t rows = checked_mul(c.o.batch, c.o.sequence);
  const ValueId padded = c.g.fresh({c.o.batch, c.o.sequence + 1}, DType::kInt64);
  const ValueId labels = c.o.batch == 1 ? c.g.slice(padded, 1, 1, c.o.sequence + 1)
                                        : c.g.fresh({c.o.batch, c.o.sequence}, DType::kInt64);
  const ValueId scores = c.g.to(logits, c.o.loss_dtype);
  const ValueId flat = c.g.view(scores, {rows, c.spec.vocabulary});
  return c.g.cross_entropy(flat, c.g.view(labels, {rows}));
}

}  // namespace hf

Network build_hugging_face(const NetworkSpec& spec, const BuildOptions& given) {
  BuildOptions options = given;
  if (!hf::style_of(spec).sdpa) options.kernel = AttentionKernel::kEager;
  hf::Context c(spec, options);
  const TokenInputs inputs = token_inputs(c.g, options);
  c.w = make_weights(c.g, spec, options);
  if (c.style.column_weights) hf::transpose_matrices(c);
  hf::order_parameters(c);
  const ValueId x = hf::model(c, inputs.ids);
  const ValueId logits = hf::head(c, x);
  c.g.begin_loss();
  c.g.enter("loss", -1);
  const ValueId loss = hf::loss(c, logits, inputs.targets);
  c.g.hold(x);  // the outer frame's variable
  Network network = c.g.finish(logits, loss);
  network.vocabulary = spec.vocabulary;
  return network;
}

}  // namespace plimsoll::network
