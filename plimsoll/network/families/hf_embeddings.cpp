// Embeddings of transformers' models: tokens, positions, segments, and what comes right after.
#include <cmath>

#include "plimsoll/network/families/hf_model.hpp"

namespace plimsoll::network::hf {
namespace {

// gemma multiplies by a buffer, biogpt by a number.
ValueId token_embeddings(Context& c, ValueId ids) {
  const ValueId x = c.g.embedding(ids, c.w.token);
  if (!c.style.scaled_embedding) return x;
  if (c.a.norm != NormKind::kRmsOnePlus) return c.g.scale(x, c.a.embedding_scale);
  const ValueId factor = c.g.buffer("model.embed_tokens.embed_scale", {}, c.o.dtype, Init::kOnes);
  return c.g.mul(x, factor);
}

// Position ids as the learned table reads them; opt counts tokens per row with a mask.
ValueId learned_position_ids(Context& c, PythonFrame& frame) {
  if (c.a.position_offset == 0) return c.position_ids;
  const bool per_row = c.style.ids_per_row;
  frame(c.local({c.o.batch, c.o.sequence}, DType::kFloat32));  // a mask of ones
  return c.local({per_row ? c.o.batch : 1, c.o.sequence}, DType::kInt64);
}

ValueId with_positions(Context& c, PythonFrame& frame, ValueId x) {
  if (c.a.positions != Positions::kLearned) return x;
  const ValueId positions = c.g.embedding(learned_position_ids(c, frame), c.w.position);
  return c.g.add(x, frame(positions));
}

// Zeros gathered from a buffer: one row that all rows share, or a row each.
ValueId segment_ids(Context& c, bool per_row) {
  const Dims rows{c.o.batch, c.o.sequence};
  if (per_row) return c.local(rows, DType::kInt64);
  return c.g.expand(c.local({1, c.o.sequence}, DType::kInt64), rows);
}

}  // namespace

// bert, roberta, distilbert: tokens, segments, positions, a norm. Position ids are a buffer; roberta
// counts them per row.
ValueId encoder_embeddings(Context& c, ValueId ids) {
  PythonFrame frame(c);
  const Dims rows{c.o.batch, c.o.sequence};
  const bool per_row = c.spec.model_type == "roberta";
  ValueId positions = kNoValue;
  if (per_row) positions = frame(c.local(rows, DType::kInt64));
  if (!per_row) {
    const ValueId all = c.g.buffer("position_ids", {1, c.spec.positions}, DType::kInt64);
    positions = frame(c.g.slice(all, 1, 0, c.o.sequence));
  }
  ValueId x = c.w.token_type == kNoValue ? kNoValue : frame(segment_ids(c, per_row));
  const ValueId tokens = frame(c.g.embedding(ids, c.w.token));
  ValueId sum = tokens;
  if (x != kNoValue) sum = c.g.add(sum, frame(c.g.embedding(x, c.w.token_type)));
  sum = frame(c.g.add(sum, frame(c.g.embedding(positions, c.w.position))));
  x = norm(c, sum, c.w.embedding_norm);
  return c.dropout(x);
}

ValueId embeddings(Context& c, PythonFrame& frame, ValueId ids) {
  if (!c.a.causal) {
    make_tables(c);
    return frame(encoder_embeddings(c, ids));
  }
  if (c.style.layer == LayerStyle::kBloom) {
    const ValueId tokens = frame(token_embeddings(c, ids));
    const ValueId x = norm(c, tokens, c.w.embedding_norm);
    frame(c.local({c.spec.heads}, DType::kFloat32));  // ALiBi's slopes
    make_tables(c);
    return x;
  }
  const ValueId tokens = frame(token_embeddings(c, ids));
  make_tables(c);
  // falcon's mask of ones for its ALiBi.
  if (c.alibi != kNoValue) frame(c.local({c.o.batch, c.o.sequence}, DType::kInt64));
  const ValueId x = with_positions(c, frame, tokens);
  return c.dropout_if(c.style.embedding_dropout, x);
}

}  // namespace plimsoll::network::hf
