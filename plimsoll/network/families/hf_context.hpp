// What all parts of transformers' forward functions share: the builder, the model's facts and
// parameters, library calls under autocast, and how long Python frames hold values.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plimsoll/network/families/decoder_weights.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/network/families/hf_style.hpp"

namespace plimsoll::network::hf {

// Letters: B batch, T tokens, N query heads, K key/value heads, H head size.
struct Context {
  Context(const NetworkSpec& model, const BuildOptions& run)
      : spec(model), a(model.architecture), o(run), style(style_of(model)) {}

  Builder g;
  const NetworkSpec& spec;
  const Architecture& a;
  const BuildOptions& o;
  const Style style;
  TransformerWeights w;

  // Tables that the model's frame holds, by kind of layer: [0] sees all keys, [1] a window.
  struct LayerTables {
    ValueId cos = kNoValue;  // [1, T, R]
    ValueId sin = kNoValue;
    ValueId mask = kNoValue;  // [B, 1, T, T]: bool for sdpa, else added to the scores
  };
  LayerTables tables[2];
  ValueId position_ids = kNoValue;
  ValueId alibi = kNoValue;

  // Attention's probabilities that the block returned; the model's frame holds on to them until the
  // next block returned (bloom, falcon).
  ValueId returned = kNoValue;

  bool eager() const { return o.kernel == AttentionKernel::kEager; }
  std::int64_t rotary_dim() const { return a.rotary_dim > 0 ? a.rotary_dim : spec.head_dim; }
  DType narrow_dtype() const { return DType::kBFloat16; }
  Dims heads_shape(std::int64_t heads) const { return {o.batch, o.sequence, heads, spec.head_dim}; }

  // A tensor that user code makes and drops like any other value.
  ValueId local(const Dims& shape, DType dtype);

  // --- library calls; under autocast their operands are cast first, the last one first: that is
  // the order in which g++ evaluates the arguments of the library's wrappers
  ValueId narrow(ValueId x) { return o.autocast ? g.to(x, narrow_dtype()) : x; }
  ValueId linear(ValueId x, const Affine& weights);
  ValueId plain_linear(ValueId x, const Affine& weights);  // an nn.Linear in every model
  // y + scale * B(A(x)), as peft's wrapper of a linear layer computes it; y without an adapter.
  ValueId adapted(ValueId x, ValueId y, const Affine& weights);
  ValueId matmul(ValueId x, ValueId y, const AttentionOptions& options);
  ValueId cat(const std::vector<ValueId>& parts, std::size_t dim);  // of the widest dtype
  ValueId dropout(ValueId x) { return g.dropout(x, o.dropout); }
  ValueId dropout_if(bool wanted, ValueId x) { return wanted ? dropout(x) : x; }

  // What a checkpointed layer's closure keeps of its arguments, read or not.
  void hold_arguments(const LayerFacts& facts);

 private:
  // The cast of a parameter, which autocast keeps until it ends.
  ValueId narrow_parameter(ValueId p);
  ValueId column_linear(ValueId x, const Affine& weights);

  std::map<ValueId, ValueId> casts_;
};

// A Python frame: the values it names live until it returns.
class PythonFrame {
 public:
  explicit PythonFrame(Context& c) : c_(c) {}
  PythonFrame(const PythonFrame&) = delete;
  PythonFrame& operator=(const PythonFrame&) = delete;
  ~PythonFrame() {
    for (ValueId v : values_) {
      if (v != kNoValue) c_.g.hold(v);
    }
  }

  ValueId operator()(ValueId v) {
    values_.push_back(v);
    return v;
  }

 private:
  Context& c_;
  std::vector<ValueId> values_;
};

}  // namespace plimsoll::network::hf
