// The parts of a layer as transformers computes them. Letters as in hf_context.hpp.
#pragma once

#include "plimsoll/network/families/hf_context.hpp"

namespace plimsoll::network::hf {

// x [..., n] -> the same shape, in x's dtype.
ValueId norm(Context& c, ValueId x, const Affine& w);

// Query, key and value heads [B, heads, T, H].
struct Heads {
  ValueId q = kNoValue;
  ValueId k = kNoValue;
  ValueId v = kNoValue;
};

// Turns queries and keys of one layer, whose attention's frame is given; `heads` as the style has
// them at this point.
void rotate(Context& c, PythonFrame& attention, Heads& heads, const Context::LayerTables& tables);

// Attention's result and, in eager attention, the probabilities that callers hold on to.
struct AttentionResult {
  ValueId y = kNoValue;
  ValueId probabilities = kNoValue;
};

// Heads -> [B, T, N, H].
AttentionResult eager_attention(Context& c, const Heads& heads, ValueId mask, const LayerFacts& f);
AttentionResult sdpa(Context& c, const Heads& heads, ValueId mask, const LayerFacts& f);

// x [B, T, D] -> [B, T, D].
AttentionResult attention(Context& c, ValueId x, const LayerWeights& w, const LayerFacts& f);
ValueId mlp(Context& c, ValueId x, const LayerWeights& w);
// The steps of an MLP without a gate, in the caller's frame.
ValueId plain_mlp(Context& c, ValueId x, const LayerWeights& w);
ValueId activation(Context& c, ValueId x);
// residual + dropout(x), as a function of its own in transformers.
ValueId dropout_add(Context& c, ValueId x, ValueId residual);

// x [B, T, D] -> [B, T, D]: layer `i`, under checkpointing when the options say so.
ValueId layer(Context& c, ValueId x, std::int64_t i);
ValueId bloom_layer(Context& c, ValueId x, const LayerWeights& w);
ValueId falcon_layer(Context& c, ValueId x, const LayerWeights& w);

}  // namespace plimsoll::network::hf
