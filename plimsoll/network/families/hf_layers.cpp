// A layer's residual stream: in which order norms, branches and sums come, and what the layer's frame
// holds meanwhile.
#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

// y + x or x + y, as the model writes it.
ValueId sum(Context& c, ValueId x, ValueId branch) {
  return c.style.branch_first ? c.g.add(branch, x) : c.g.add(x, branch);
}

// The norm's result is a variable until the branch's result replaces it.
ValueId attention_branch(Context& c, PythonFrame& frame, ValueId n, const LayerWeights& w,
                         const LayerFacts& f) {
  const AttentionResult r = attention(c, n, w, f);
  c.g.hold(n);
  frame(r.probabilities);
  return r.y;
}

ValueId mlp_branch(Context& c, ValueId n, const LayerWeights& w) {
  if (c.style.inline_mlp) return plain_mlp(c, n, w);
  const ValueId y = mlp(c, n, w);
  c.g.hold(n);
  return y;
}

ValueId sequential(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  PythonFrame frame(c);
  ValueId y = attention_branch(c, frame, norm(c, x, w.attention_in), w, f);
  if (c.style.names_branch) frame(y);
  y = sum(c, x, c.dropout_if(c.style.attention_dropout, y));
  frame(y);
  ValueId rows = y;
  if (c.style.flat_mlp) rows = c.g.reshape(y, {checked_mul(c.o.batch, c.o.sequence), -1});
  ValueId z = mlp_branch(c, norm(c, rows, w.mlp_in), w);
  z = c.dropout_if(c.style.mlp_dropout, z);
  ValueId out = c.style.mlp_first ? c.g.add(z, rows) : c.g.add(rows, z);
  if (c.style.flat_mlp) out = c.g.view(out, {c.o.batch, c.o.sequence, -1});
  return out;
}

ValueId output_norm(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  PythonFrame frame(c);
  const AttentionResult r = attention(c, x, w, f);
  frame(r.probabilities);
  const ValueId y = frame(c.g.add(x, norm(c, r.y, w.attention_out)));
  const ValueId z = mlp(c, y, w);
  return c.g.add(y, norm(c, z, w.mlp_out));
}

ValueId both_norms(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  PythonFrame frame(c);
  ValueId y = attention_branch(c, frame, norm(c, x, w.attention_in), w, f);
  y = frame(c.g.add(x, norm(c, y, w.attention_out)));
  const ValueId z = mlp_branch(c, norm(c, y, w.mlp_in), w);
  return c.g.add(y, norm(c, z, w.mlp_out));
}

ValueId parallel(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  PythonFrame frame(c);
  const ValueId n = norm(c, x, w.attention_in);
  if (c.a.shared_norm) frame(n);
  const AttentionResult r = attention(c, n, w, f);
  frame(r.probabilities);
  const ValueId attended = frame(c.dropout_if(c.style.attention_dropout, r.y));
  const ValueId m = c.a.shared_norm ? n : norm(c, x, w.mlp_in);
  const ValueId z = frame(c.dropout_if(c.style.mlp_dropout, mlp(c, m, w)));
  switch (c.style.parallel_sum) {
    case ParallelSum::kResidualFirst:
      return c.g.add(c.g.add(x, attended), z);
    case ParallelSum::kBranchesFirst:
      return c.g.add(c.g.add(attended, z), x);
    case ParallelSum::kMlpFirst:
      break;
  }
  return c.g.add(c.g.add(z, attended), x);
}

ValueId post_norm(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  PythonFrame frame(c);
  const AttentionResult r = attention(c, x, w, f);
  frame(r.probabilities);
  const ValueId attended = c.dropout_if(c.style.attention_dropout, r.y);
  const ValueId y = frame(norm(c, c.g.add(attended, x), w.attention_out));
  const ValueId z = c.dropout_if(c.style.mlp_dropout, mlp(c, y, w));
  return norm(c, c.g.add(z, y), w.mlp_out);
}

ValueId plain_layer(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f) {
  switch (c.style.layer) {
    case LayerStyle::kSequential:
      return sequential(c, x, w, f);
    case LayerStyle::kOutputNorm:
      return output_norm(c, x, w, f);
    case LayerStyle::kBothNorms:
      return both_norms(c, x, w, f);
    case LayerStyle::kParallel:
      return parallel(c, x, w, f);
    case LayerStyle::kPostNorm:
      return post_norm(c, x, w, f);
    case LayerStyle::kBloom:
      return bloom_layer(c, x, w);
    case LayerStyle::kFalcon:
      break;
  }
  return falcon_layer(c, x, w);
}

}  // namespace

ValueId layer(Context& c, ValueId x, std::int64_t i) {
  const LayerWeights& w = c.w.layers[static_cast<std::size_t>(i)];
  const LayerFacts f = c.spec.layer(i);
  if (c.o.checkpoint == Checkpoint::kNone) return plain_layer(c, x, w, f);
  if (c.style.positional_mask && c.tables[0].mask != kNoValue) c.g.argument(c.tables[0].mask);
  c.g.begin_region(c.o.checkpoint == Checkpoint::kMatmuls);
  c.hold_arguments(f);
  const ValueId y = plain_layer(c, x, w, f);
  c.g.end_region(/*keep_random_state=*/true, /*stops_early=*/true);
  return y;
}

ValueId dropout_add(Context& c, ValueId x, ValueId residual) {
  PythonFrame frame(c);
  return c.g.add(residual, c.dropout(x));
}

}  // namespace plimsoll::network::hf
