#include "plimsoll/network/families/language_head.hpp"

#include <algorithm>

namespace plimsoll::network {

TokenInputs token_inputs(Builder& g, const BuildOptions& options) {
  const Dims shape{options.batch, options.sequence};
  TokenInputs inputs;
  inputs.ids = g.input("ids", shape, DType::kInt64, InputKind::kTokens);
  if (options.infers()) return inputs;
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
  const ValueId scores = g.cast(logits, options.loss_dtype);
  const ValueId flat = g.view(scores, {rows, spec.vocabulary});
  return g.cross_entropy(flat, g.view(targets, {rows}));
}

namespace {

// rows [n, width] in pieces of `size` rows; the last one is what remains. A split has equal parts.
std::vector<ValueId> chunks_of(Builder& g, ValueId rows, std::int64_t count, std::int64_t size) {
  const std::int64_t whole = count / size * size;
  const std::int64_t rest = count - whole;
  const ValueId even = rest == 0 ? rows : g.slice(rows, 0, 0, whole);
  std::vector<ValueId> chunks = g.split(even, size, 0, static_cast<std::size_t>(whole / size));
  if (rest > 0) chunks.push_back(g.slice(rows, 0, whole, count));
  return chunks;
}

}  // namespace

ValueId chunked_loss(Builder& g, ValueId x, ValueId targets, const NetworkSpec& spec,
                     const BuildOptions& options, const std::function<ValueId(ValueId)>& logits) {
  const std::int64_t embedding = spec.architecture.embedding_width;
  const std::int64_t rows = checked_mul(options.batch, options.sequence);
  const std::int64_t size = (rows + options.loss_chunks - 1) / options.loss_chunks;
  const ValueId flat = g.view(x, {rows, embedding > 0 ? embedding : spec.width});
  ValueId loss = kNoValue;
  std::int64_t begin = 0;
  for (ValueId chunk : chunks_of(g, flat, rows, size)) {
    const std::int64_t end = std::min(begin + size, rows);
    g.begin_region(/*keep_linears=*/false);
    const ValueId scores = g.cast(logits(chunk), options.loss_dtype);
    const ValueId labels = g.slice(g.view(targets, {rows}), 0, begin, end);
    const double share = static_cast<double>(end - begin) / static_cast<double>(rows);
    const ValueId part = g.mul_number(g.cross_entropy(scores, labels), share);
    g.end_region(/*keep_random_state=*/false);
    loss = loss == kNoValue ? part : g.add(loss, part);
    begin = end;
  }
  return loss;
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
