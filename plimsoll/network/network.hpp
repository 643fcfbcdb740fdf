// Network: one description of a model at one batch and sequence length, from which parameters, FLOPs,
// saved tensors, the timeline and the run itself all follow.
//
// A flat list of operations over values. Built by code that reads like a forward function (Builder);
// interpreted by Execution with two backends: the model of autograd (plan) and libtorch (engine).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/network/operation.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::network {

// How a parameter starts in plimsoll's own runs.
enum class Init : std::uint8_t { kNormal, kOnes, kZeros };

struct Parameter {
  std::string name;  // as the model's state dict calls it
  Dims shape;
  DType dtype = DType::kFloat32;
  ValueId value = kNoValue;
  std::int32_t unit = -1;  // layer index, or -1 for the root (embeddings, final norm, head)
  Init init = Init::kNormal;
  bool trainable = true;    // false: frozen, no gradient and no optimizer state
  bool adapter = false;     // a low-rank matrix beside a frozen one
  std::uint32_t label = 0;  // index into Network::labels: where it was made
};

enum class InputKind : std::uint8_t {
  kTokens,
  kTargets,
  kCosine,
  kSine,
  kImage,
  kClasses,
  kMask,   // added to attention's scores: 0 or a bias by distance, minus infinity where hidden
  kZeros,  // ids that are all 0
};

struct Input {
  std::string name;
  Dims shape;
  DType dtype = DType::kInt64;
  InputKind kind = InputKind::kTokens;
  ValueId value = kNoValue;

  double theta = 10000.0;  // of rotary tables [1, T, R]
  std::int64_t start = 0;  // position of the first row: of rotary tables and masks
  // Of masks [T, S], or [1, N, T, S] with ALiBi's slope of each head; S is T outside of decoding.
  bool causal = true;
  std::int64_t window = 0;  // keys that a query sees, itself included; 0: all
};

struct Buffer {
  std::string name;
  Dims shape;
  DType dtype = DType::kFloat32;
  ValueId value = kNoValue;
  Init init = Init::kZeros;
  bool cache = false;  // of keys or values: [B, K, S, H]
};

// Elements and tensors, ties counted once. Without adapters and frozen parts all of them learn.
struct ParameterCount {
  std::int64_t all = 0;
  std::int64_t trainable = 0;
  std::int64_t tensors = 0;
  std::int64_t trainable_tensors = 0;
  std::int64_t frozen() const { return all - trainable; }
};

// A checkpointed stretch of operations: reads one computed value and constants, makes one value.
struct Region {
  std::size_t first = 0;  // operations [first, last)
  std::size_t last = 0;
  ValueId input = kNoValue;
  ValueId output = kNoValue;
  std::vector<ValueId> held;  // values of user code that the region's closure keeps
  bool keep_random_state = false;
  bool stops_early = false;  // a rerun ends with the last tensor that forward saved
};

struct Network {
  std::vector<Parameter> parameters;
  std::vector<Input> inputs;
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;
  std::vector<Region> regions;
  std::vector<std::string> labels;          // "layers.3.attn", ...: where operations belong
  std::vector<std::int32_t> label_units;    // by label: layer index, or -1 for the root
  std::vector<std::vector<ValueId>> dying;  // by operation: values whose last use it is
  std::vector<ValueId> kept;                // values that live until the forward function returns
  std::vector<ValueId> released;            // those of them that user code drops before
  std::size_t values = 1;                   // ids are 1 .. values - 1
  std::size_t loss_begin = 0;  // operations from here on belong to phase "loss"; inference has none
  ValueId logits = kNoValue;
  ValueId loss = kNoValue;  // none in passes of inference
  std::int64_t vocabulary = 0;

  ParameterCount parameter_count() const;
  std::int64_t parameter_elements() const { return parameter_count().all; }
};

// How scaled dot product attention is called.
struct AttentionOptions {
  AttentionKernel kernel = AttentionKernel::kFlash;
  double dropout = 0;
  bool grouped = false;     // fewer key/value heads than query heads
  bool causal = true;       // without a mask: the kernel's own causal mask
  double scale = 0;         // of the scores; 0: 1 / sqrt(H)
  std::int64_t window = 0;  // keys that a query sees: FLOPs count no others; 0: all before it
  ValueId mask = kNoValue;  // added to the scores; says itself what is causal
};

// Writes a network as its forward function would run. All shapes are concrete.
class Builder {
 public:
  ValueId parameter(std::string name, const Dims& shape, DType dtype, Init init = Init::kNormal);
  ValueId buffer(std::string name, const Dims& shape, DType dtype, Init init = Init::kZeros);
  // Of keys or values, filled by cache_rows.
  ValueId cache(std::string name, const Dims& shape, DType dtype);
  void cache_rows(ValueId cache, ValueId x);
  ValueId input(std::string name, const Dims& shape, DType dtype, InputKind kind);

  // Label and unit of what follows.
  void enter(std::string label, std::int32_t unit);

  ValueId arange(std::int64_t n, std::int64_t start = 0);
  ValueId fresh(const Dims& shape, DType dtype);  // lives until forward returns
  void hold(ValueId x);
  // Saved-tensor hooks see x as an argument of the region that comes next.
  void argument(ValueId x);
  // x lives until forward returns.
  void keep(ValueId x) { network_.kept.push_back(x); }
  // User code lets go of a kept value here; regions that read it still hold it.
  void release(ValueId x);
  // Of a value made so far, by type promotion.
  DType dtype_of(ValueId x) const { return dtypes_.at(x); }
  ValueId embedding(ValueId ids, ValueId weight) { return op(OpKind::kEmbedding, {ids, weight}); }
  ValueId add(ValueId x, ValueId y) { return op(OpKind::kAdd, {x, y}); }
  ValueId mul(ValueId x, ValueId y) { return op(OpKind::kMul, {x, y}); }
  ValueId sub(ValueId x, ValueId y) { return op(OpKind::kSub, {x, y}); }
  ValueId scale(ValueId x, double number) { return with_number(OpKind::kScale, x, number); }
  ValueId divide(ValueId x, double number) { return with_number(OpKind::kDivide, x, number); }
  ValueId with_number(OpKind kind, ValueId x, double number);
  ValueId add_number(ValueId x, double number);
  ValueId mul_number(ValueId x, double number);
  ValueId clamp(ValueId x, double bound);  // to [-bound, bound]
  ValueId neg(ValueId x) { return op(OpKind::kNeg, {x}); }
  ValueId pow2(ValueId x) { return op(OpKind::kPow2, {x}); }
  ValueId mean(ValueId x) { return op(OpKind::kMean, {x}); }
  ValueId rsqrt(ValueId x) { return op(OpKind::kRsqrt, {x}); }
  ValueId to(ValueId x, DType dtype);
  // x itself when it has that dtype, or is none.
  ValueId cast(ValueId x, DType dtype) {
    return x == kNoValue || dtype_of(x) == dtype ? x : to(x, dtype);
  }
  ValueId view(ValueId x, const Dims& shape);
  ValueId reshape(ValueId x, const Dims& shape);
  ValueId transpose(ValueId x, std::size_t d0, std::size_t d1);
  ValueId contiguous(ValueId x) { return op(OpKind::kContiguous, {x}); }
  ValueId unsqueeze(ValueId x, std::size_t dim);
  ValueId select(ValueId x, std::size_t dim, std::int64_t index);
  ValueId expand(ValueId x, const Dims& shape);
  ValueId slice(ValueId x, std::size_t dim, std::int64_t start, std::int64_t stop);
  std::vector<ValueId> split(ValueId x, std::int64_t size, std::size_t dim, std::size_t parts);
  ValueId cat(std::vector<ValueId> parts, std::size_t dim);
  ValueId linear(ValueId x, ValueId weight, ValueId bias = kNoValue);
  // Weight and bias may be kNoValue; a bias without a weight does not exist.
  ValueId layer_norm(ValueId x, ValueId weight, ValueId bias, double eps);
  ValueId rms_norm(ValueId x, ValueId weight, double eps);
  ValueId activation(OpKind kind, ValueId x) { return op(kind, {x}); }
  ValueId dropout(ValueId x, double p);  // x itself when p is 0
  ValueId attention(ValueId q, ValueId k, ValueId v, const AttentionOptions& options);
  ValueId attention(ValueId q, ValueId k, ValueId v, AttentionKernel kernel, double dropout,
                    bool grouped);
  // A product [B, N, T, .] of attention's scores or probabilities; `options` say what FLOPs count.
  ValueId matmul(ValueId x, ValueId y, const AttentionOptions& options);
  ValueId cross_entropy(ValueId x, ValueId target) {
    return op(OpKind::kCrossEntropy, {x, target});
  }
  ValueId operation(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes = {}) {
    return op(kind, std::move(inputs), attributes);
  }

  // Everything between the two is one checkpoint region. With `keep_linears` the results of its
  // linear layers are kept instead of recomputed.
  void begin_region(bool keep_linears) {
    region_ = static_cast<std::int32_t>(network_.regions.size());
    keep_linears_ = keep_linears;
  }
  void end_region(bool keep_random_state, bool stops_early = false);

  void begin_loss() { network_.loss_begin = network_.operations.size(); }
  // Finishes: computes last uses and region borders. The builder is empty afterwards.
  Network finish(ValueId logits, ValueId loss);

  Network& network() { return network_; }

 private:
  ValueId new_value(DType dtype);
  DType result_dtype(OpKind kind, const std::vector<ValueId>& inputs,
                     const Attributes& attributes) const;
  ValueId op(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes = {});
  Operation& push(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes);

  Network network_;
  std::vector<DType> dtypes_{DType::kBool};  // by ValueId
  std::int32_t region_ = -1;
  bool keep_linears_ = false;
  std::int32_t unit_ = -1;
};

}  // namespace plimsoll::network
