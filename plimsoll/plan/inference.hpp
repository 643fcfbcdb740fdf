// Inference: weights, the cache of keys and values, FLOPs and bytes of prefill and of one step of
// generation, and the least time a device needs for them.
//
// Weights in the compute dtype, dense; the cache in its own dtype. Not counted: the activations of a
// pass, fragmentation, pages of a paged cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/hardware/device.hpp"
#include "plimsoll/plan/cost.hpp"
#include "plimsoll/plan/model_shape.hpp"

namespace plimsoll::plan {

struct InferenceJob {
  std::int64_t batch = 1;
  std::int64_t prompt = 1;   // tokens that prefill reads, per row
  std::int64_t context = 1;  // tokens in the cache when the step begins, per row
  std::int64_t weight_item = 2;
  std::int64_t kv_item = 2;
};

// The cache of one row of the batch, by kind of layer.
struct CacheLine {
  std::int64_t layers = 0;
  std::string formula;               // "K (key + value)": values per token and layer
  std::int64_t bytes_per_token = 0;  // of one layer
  std::int64_t window = 0;           // such a layer keeps at most so many tokens; 0: all
};

struct KvCache {
  std::vector<CacheLine> lines;
  std::int64_t bytes_per_token = 0;  // of all layers, while no window is full
  std::int64_t bytes_per_row = 0;    // at the context, windows applied
  std::int64_t total = 0;            // of the batch
};
KvCache kv_cache(const ModelShape& model, const InferenceJob& job);

struct InferencePass {
  std::int64_t flops = 0;         // products with the weights that a token visits, and attention
  std::int64_t weight_bytes = 0;  // read: tables that are looked up not counted
  std::int64_t cache_read = 0;
  std::int64_t cache_written = 0;
  std::int64_t bytes() const;
  double intensity() const;
};
// The whole prompt at once; logits of the last position only.
InferencePass prefill(const ModelShape& model, const InferenceJob& job);
// One token per row with the cache.
InferencePass decode(const ModelShape& model, const InferenceJob& job);
// One token per row without a cache: all tokens so far once more.
InferencePass decode_without_cache(const ModelShape& model, const InferenceJob& job);

// Experts that a batch of tokens visits when each takes k of E alike: E (1 - (1 - k/E)^tokens).
double visited_experts(const MlpShape& mlp, std::int64_t tokens);

}  // namespace plimsoll::plan
