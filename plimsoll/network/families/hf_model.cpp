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

ValueId model(Context& c, ValueId ids) {
  PythonFrame frame(c);
  c.g.enter("embeddings", -1);
  ValueId x = embeddings(c, frame, ids);
  for (std::int64_t i = 0; i < c.spec.layers; ++i) {
    c.g.enter(layer_label(c.spec, i), static_cast<std::int32_t>(i));
    x = layer(c, x, i);
  }
  c.g.enter("head", -1);
  if (c.a.final_norm) x = norm(c, x, c.w.final_norm);
  release_tables(c);
  return x;
}

}  // namespace

ValueId head(Context& c, ValueId x) {
  ValueId logits = c.plain_linear(x, c.w.head);
  if (c.a.logit_scale != 1) logits = c.g.scale(logits, c.a.logit_scale);
  if (c.a.logit_softcap == 0) return logits;
  const ValueId small = c.g.activation(OpKind::kTanh, c.g.divide(logits, c.a.logit_softcap));
  return c.g.scale(small, c.a.logit_softcap);
}

// Labels are padded by one column, shifted and made contiguous: one row already is.
ValueId loss(Context& c, ValueId logits, ValueId) {
  const std::int64_t rows = checked_mul(c.o.batch, c.o.sequence);
  const ValueId padded = c.g.fresh({c.o.batch, c.o.sequence + 1}, DType::kInt64);
  const ValueId labels = c.o.batch == 1
                             ? c.g.slice(padded, 1, 1, c.o.sequence + 1)
                             : c.g.fresh({c.o.batch, c.o.sequence}, DType::kInt64);
  const ValueId scores = c.g.to(logits, DType::kFloat32);
  const ValueId flat = c.g.view(scores, {rows, c.spec.vocabulary});
  return c.g.cross_entropy(flat, c.g.view(labels, {rows}));
}

}  // namespace hf

Network build_hugging_face(const NetworkSpec& spec, const BuildOptions& options) {
  hf::Context c(spec, options);
  const TokenInputs inputs = token_inputs(c.g, options);
  c.w = make_weights(c.g, spec, options.dtype);
  if (c.style.column_weights) hf::transpose_matrices(c);
  const ValueId logits = hf::head(c, hf::model(c, inputs.ids));
  c.g.begin_loss();
  c.g.enter("loss", -1);
  const ValueId loss = hf::loss(c, logits, inputs.targets);
  Network network = c.g.finish(logits, loss);
  network.vocabulary = spec.vocabulary;
  return network;
}

}  // namespace plimsoll::network
