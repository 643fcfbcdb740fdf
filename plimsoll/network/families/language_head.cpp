#include "plimsoll/network/families/language_head.hpp"

namespace plimsoll::network {

TokenInputs token_inputs(Builder& g, const BuildOptions& options) {
  const Dims shape{options.batch, options.sequence};
  TokenInputs inputs;
  inputs.ids = g.input("ids", shape, DType::kInt64, InputKind::kTokens);
  inputs.targets = options.shared_targets
                       ? inputs.ids
                       : g.input("targets", shape, DType::kInt64, InputKind::kTargets);
  return inputs;
}

ValueId language_loss(Builder& g, ValueId logits, ValueId targets, const NetworkSpec& spec,
                      const BuildOptions& options) {
  const std::int64_t rows = checked_mul(options.batch, options.sequence);
  if (options.semantics == Semantics::kHuggingFace) {
    // The labels are padded by one column, shifted and made contiguous: one row already is.
    const ValueId padded = g.fresh({options.batch, options.sequence + 1}, DType::kInt64);
    targets = options.batch == 1 ? g.slice(padded, 1, 1, options.sequence + 1)
                                 : g.fresh({options.batch, options.sequence}, DType::kInt64);
  }
  const ValueId scores =
      options.dtype != options.loss_dtype ? g.to(logits, options.loss_dtype) : logits;
  const ValueId flat = g.view(scores, {rows, spec.vocabulary});
  return g.cross_entropy(flat, g.view(targets, {rows}));
}

ValueId split_heads(Builder& g, ValueId x, std::int64_t heads, std::int64_t head_dim,
                    const BuildOptions& options) {
  return g.transpose(g.view(x, {options.batch, options.sequence, heads, head_dim}), 1, 2);
}

ValueId merge_heads(Builder& g, ValueId x, std::int64_t heads, std::int64_t head_dim,
                    const BuildOptions& options) {
  const ValueId rows = g.contiguous(g.transpose(x, 1, 2));
  return g.view(rows, {options.batch, options.sequence, checked_mul(heads, head_dim)});
}

}  // namespace plimsoll::network
