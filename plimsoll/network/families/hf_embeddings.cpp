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
  const ValueId factor =
      c.g.buffer("model.embed_tokens.embed_scale", {}, DType::kFloat32, Init::kOnes);
  return c.g.mul(x, c.g.to(factor, c.o.dtype));
}

// Position ids as the learned table reads them; opt counts tokens per row with a mask.
ValueId learned_position_ids(Context& c, PythonFrame& frame) {
  if (c.spec.model_type == "opt") {
    const Dims shape{c.o.batch, c.o.sequence};
    frame(c.local(shape, DType::kFloat32));
    c.position_ids = c.g.fresh(shape, DType::kInt64);
    return c.local(shape, DType::kInt64);
  }
  if (c.a.position_offset > 0) return c.local({1, c.o.sequence}, DType::kInt64);
  return c.position_ids;
}

ValueId with_positions(Context& c, PythonFrame& frame, ValueId x) {
  if (c.a.positions != Positions::kLearned) return x;
  const ValueId positions = c.g.embedding(learned_position_ids(c, frame), c.w.position);
  return c.g.add(x, frame(positions));
}

}  // namespace

ValueId embeddings(Context& c, PythonFrame& frame, ValueId ids) {
  const ValueId tokens = frame(token_embeddings(c, ids));
  make_tables(c);
  const ValueId x = with_positions(c, frame, tokens);
  return c.dropout_if(c.style.embedding_dropout, x);
}

}  // namespace plimsoll::network::hf
