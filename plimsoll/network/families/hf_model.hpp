// transformers' models around their layers: embeddings, tables, head and loss.
#pragma once

#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {

// Position ids, rotary tables and masks: fills Context::tables and position_ids.
void make_tables(Context& c);
// The model's frame lets go of them.
void release_tables(Context& c);

// ids [B, T] -> [B, T, D]. What the model's frame holds besides goes to `frame`.
ValueId embeddings(Context& c, PythonFrame& frame, ValueId ids);

// x [B, T, D] -> logits [B, T, V].
ValueId head(Context& c, ValueId x);

// The model's loss for labels [B, T], shifted by one for causal models.
ValueId loss(Context& c, ValueId logits, ValueId labels);

}  // namespace plimsoll::network::hf
