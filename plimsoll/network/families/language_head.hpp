// What every causal language model here ends with: logits, targets, cross entropy.
#pragma once

#include <functional>

#include "plimsoll/network/families/families.hpp"

namespace plimsoll::network {

// Token ids [B, T], and targets [B, T] unless they are the ids; inference has no targets.
struct TokenInputs {
  ValueId ids = kNoValue;
  ValueId targets = kNoValue;
};
TokenInputs token_inputs(Builder& g, const BuildOptions& options);

// Mean cross entropy of logits [B, T, V] against targets [B, T], in options.loss_dtype.
ValueId language_loss(Builder& g, ValueId logits, ValueId targets, const NetworkSpec& spec,
                      const BuildOptions& options);

// The same loss from what the head's matrix reads, x [B, T, width]: rows are cut into at most
// options.loss_chunks chunks of ceil(B T / chunks); logits of a chunk live while its loss is computed,
// and again while its backward pass runs. `logits`: rows [n, width] -> [n, V].
ValueId chunked_loss(Builder& g, ValueId x, ValueId targets, const NetworkSpec& spec,
                     const BuildOptions& options, const std::function<ValueId(ValueId)>& logits);

// [B, T, heads * H] -> [B, heads, T, H].
ValueId split_heads(Builder& g, ValueId x, std::int64_t heads, std::int64_t head_dim,
                    const BuildOptions& options);

// The inverse, contiguous.
ValueId merge_heads(Builder& g, ValueId x, std::int64_t heads, std::int64_t head_dim,
                    const BuildOptions& options);

}  // namespace plimsoll::network
