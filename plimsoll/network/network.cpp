#include "plimsoll/network/network.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll::network {
namespace {

bool contains(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Operation index of each value's last use; values that are never used die where they are made.
std::vector<std::size_t> last_uses(const Network& network) {
  std::vector<std::size_t> last(network.values, 0);
  for (std::size_t i = 0; i < network.operations.size(); ++i) {
    for (ValueId v : network.operations[i].inputs) last[v] = i;
    for (ValueId v : network.operations[i].outputs) last[v] = i;
  }
  return last;
}

std::vector<bool> lasting_values(const Network& network) {
  std::vector<bool> lasting(network.values, false);
  for (const Parameter& p : network.parameters) lasting[p.value] = true;
  for (const Input& i : network.inputs) lasting[i.value] = true;
  for (const Buffer& b : network.buffers) lasting[b.value] = true;
  for (ValueId v : network.kept) lasting[v] = true;
  return lasting;
}

// A region's one computed input and its output; what else it reads and user code built is `held`.
void find_borders(Network& network, Region& region, const std::vector<std::size_t>& last,
                  const std::vector<bool>& lasting) {
  std::vector<ValueId> made;
  for (std::size_t i = region.first; i < region.last; ++i) {
    const Operation& op = network.operations[i];
    for (ValueId v : op.inputs) {
      if (contains(made, v)) continue;
      if (!lasting[v]) {
        check(region.input == kNoValue || region.input == v, "a region reads two computed values");
        region.input = v;
      } else if (contains(network.kept, v) && !contains(region.held, v)) {
        region.held.push_back(v);
      }
    }
    made.insert(made.end(), op.outputs.begin(), op.outputs.end());
  }
  for (ValueId v : made) {
    if (last[v] < region.last || lasting[v]) continue;
    check(region.output == kNoValue, "a region makes two values that are used later");
    region.output = v;
  }
  check(region.input != kNoValue && region.output != kNoValue, "a region without input or output");
}

}  // namespace

ParameterCount Network::parameter_count() const {
  ParameterCount count;
  for (const Parameter& p : parameters) {
    const std::int64_t elements = element_count(p.shape);
    count.all = checked_add(count.all, elements);
    ++count.tensors;
    if (!p.trainable) continue;
    count.trainable += elements;
    ++count.trainable_tensors;
  }
  return count;
}

ValueId Builder::parameter(std::string name, const Dims& shape, DType dtype, Init init) {
  const ValueId value = new_value(dtype);
  if (network_.labels.empty()) enter("", -1);
  Parameter& p = network_.parameters.emplace_back();
  p.name = std::move(name);
  p.shape = shape;
  p.dtype = dtype;
  p.value = value;
  p.unit = unit_;
  p.init = init;
  p.label = static_cast<std::uint32_t>(network_.labels.size() - 1);
  return value;
}

ValueId Builder::buffer(std::string name, const Dims& shape, DType dtype, Init init) {
  const ValueId value = new_value(dtype);
  Buffer& b = network_.buffers.emplace_back();
  b.name = std::move(name);
  b.shape = shape;
  b.dtype = dtype;
  b.value = value;
  b.init = init;
  return value;
}

ValueId Builder::cache(std::string name, const Dims& shape, DType dtype) {
  const ValueId value = buffer(std::move(name), shape, dtype);
  network_.buffers.back().cache = true;
  return value;
}

void Builder::cache_rows(ValueId cache, ValueId x) { push(OpKind::kCacheRows, {cache, x}, {}); }

ValueId Builder::input(std::string name, const Dims& shape, DType dtype, InputKind kind) {
  const ValueId value = new_value(dtype);
  Input& i = network_.inputs.emplace_back();
  i.name = std::move(name);
  i.shape = shape;
  i.dtype = dtype;
  i.kind = kind;
  i.value = value;
  return value;
}

void Builder::enter(std::string label, std::int32_t unit) {
  network_.labels.push_back(std::move(label));
  network_.label_units.push_back(unit);
  unit_ = unit;
}

Operation& Builder::push(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes) {
  if (network_.labels.empty()) enter("", -1);
  Operation& op = network_.operations.emplace_back();
  op.kind = kind;
  op.inputs = std::move(inputs);
  op.attributes = attributes;
  op.label = static_cast<std::uint32_t>(network_.labels.size() - 1);
  op.region = region_;
  op.layer = unit_;
  return op;
}

ValueId Builder::new_value(DType dtype) {
  dtypes_.push_back(dtype);
  return static_cast<ValueId>(network_.values++);
}

// Operations of two operands promote; others keep the first operand's dtype, or name their own.
DType Builder::result_dtype(OpKind kind, const std::vector<ValueId>& inputs,
                            const Attributes& attributes) const {
  switch (kind) {
    case OpKind::kArange:
      return DType::kInt64;
    case OpKind::kFresh:
    case OpKind::kTo:
      return attributes.dtype;
    case OpKind::kEmbedding:
      return dtype_of(inputs[1]);
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
      return std::max(dtype_of(inputs[0]), dtype_of(inputs[1]));
    default:
      return dtype_of(inputs[0]);
  }
}

ValueId Builder::op(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes) {
  const ValueId value = new_value(result_dtype(kind, inputs, attributes));
  push(kind, std::move(inputs), attributes).outputs = {value};
  return value;
}

ValueId Builder::arange(std::int64_t n, std::int64_t start) {
  Attributes attributes;
  attributes.start = start;
  attributes.shape = {n};
  return op(OpKind::kArange, {}, attributes);
}

ValueId Builder::fresh(const Dims& shape, DType dtype) {
  Attributes attributes;
  attributes.shape = shape;
  attributes.dtype = dtype;
  const ValueId value = op(OpKind::kFresh, {}, attributes);
  network_.kept.push_back(value);
  return value;
}

void Builder::hold(ValueId x) { push(OpKind::kHold, {x}, {}); }

void Builder::argument(ValueId x) { push(OpKind::kArgument, {x}, {}); }

void Builder::release(ValueId x) {
  hold(x);
  network_.released.push_back(x);
}

ValueId Builder::with_number(OpKind kind, ValueId x, double number) {
  Attributes attributes;
  attributes.number = number;
  return op(kind, {x}, attributes);
}

ValueId Builder::select(ValueId x, std::size_t dim, std::int64_t index) {
  Attributes attributes;
  attributes.dim = static_cast<std::uint8_t>(dim);
  attributes.start = index;
  return op(OpKind::kSelect, {x}, attributes);
}

ValueId Builder::add_number(ValueId x, double number) {
  Attributes attributes;
  attributes.number = number;
  return op(OpKind::kAddNumber, {x}, attributes);
}

ValueId Builder::mul_number(ValueId x, double number) {
  Attributes attributes;
  attributes.number = number;
  return op(OpKind::kMulNumber, {x}, attributes);
}

ValueId Builder::clamp(ValueId x, double bound) {
  Attributes attributes;
  attributes.number = bound;
  return op(OpKind::kClamp, {x}, attributes);
}

ValueId Builder::to(ValueId x, DType dtype) {
  Attributes attributes;
  attributes.dtype = dtype;
  return op(OpKind::kTo, {x}, attributes);
}

ValueId Builder::view(ValueId x, const Dims& shape) {
  Attributes attributes;
  attributes.shape = shape;
  return op(OpKind::kView, {x}, attributes);
}

ValueId Builder::reshape(ValueId x, const Dims& shape) {
  Attributes attributes;
  attributes.shape = shape;
  return op(OpKind::kReshape, {x}, attributes);
}

ValueId Builder::transpose(ValueId x, std::size_t d0, std::size_t d1) {
  Attributes attributes;
  attributes.dim = static_cast<std::uint8_t>(d0);
  attributes.dim2 = static_cast<std::uint8_t>(d1);
  return op(OpKind::kTranspose, {x}, attributes);
}

ValueId Builder::unsqueeze(ValueId x, std::size_t dim) {
  Attributes attributes;
  attributes.dim = static_cast<std::uint8_t>(dim);
  return op(OpKind::kUnsqueeze, {x}, attributes);
}

ValueId Builder::expand(ValueId x, const Dims& shape) {
  Attributes attributes;
  attributes.shape = shape;
  return op(OpKind::kExpand, {x}, attributes);
}

ValueId Builder::slice(ValueId x, std::size_t dim, std::int64_t start, std::int64_t stop) {
  Attributes attributes;
  attributes.dim = static_cast<std::uint8_t>(dim);
  attributes.start = start;
  attributes.stop = stop;
  return op(OpKind::kSlice, {x}, attributes);
}

std::vector<ValueId> Builder::split(ValueId x, std::int64_t size, std::size_t dim,
                                    std::size_t parts) {
  Attributes attributes;
  attributes.dim = static_cast<std::uint8_t>(dim);
  attributes.start = size;
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < parts; ++i) values.push_back(new_value(dtype_of(x)));
  push(OpKind::kSplit, {x}, attributes).outputs = values;
  return values;
}

ValueId Builder::cat(std::vector<ValueId> parts, std::size_t dim) {
  Attributes attributes;
  attributes.dim = static_cast<std::uint8_t>(dim);
  return op(OpKind::kCat, std::move(parts), attributes);
}

ValueId Builder::linear(ValueId x, ValueId weight, ValueId bias) {
  const OpKind kind = keep_linears_ ? OpKind::kKeptLinear : OpKind::kLinear;
  if (bias == kNoValue) return op(kind, {x, weight});
  return op(kind, {x, weight, bias});
}

ValueId Builder::layer_norm(ValueId x, ValueId weight, ValueId bias, double eps) {
  Attributes attributes;
  attributes.number = eps;
  if (weight == kNoValue) return op(OpKind::kLayerNorm, {x}, attributes);
  if (bias == kNoValue) return op(OpKind::kLayerNorm, {x, weight}, attributes);
  return op(OpKind::kLayerNorm, {x, weight, bias}, attributes);
}

ValueId Builder::rms_norm(ValueId x, ValueId weight, double eps) {
  Attributes attributes;
  attributes.number = eps;
  return op(OpKind::kRmsNorm, {x, weight}, attributes);
}

ValueId Builder::dropout(ValueId x, double p) {
  if (p == 0) return x;
  Attributes attributes;
  attributes.number = p;
  return op(OpKind::kDropout, {x}, attributes);
}

namespace {

Attributes attention_attributes(const AttentionOptions& options) {
  Attributes attributes;
  attributes.kernel = options.kernel;
  attributes.number = options.dropout;
  attributes.grouped = options.grouped;
  attributes.causal = options.causal;
  attributes.scale = options.scale;
  attributes.window = options.window;
  return attributes;
}

}  // namespace

ValueId Builder::attention(ValueId q, ValueId k, ValueId v, const AttentionOptions& options) {
  const Attributes attributes = attention_attributes(options);
  if (options.mask == kNoValue) return op(OpKind::kAttention, {q, k, v}, attributes);
  return op(OpKind::kAttention, {q, k, v, options.mask}, attributes);
}

ValueId Builder::attention(ValueId q, ValueId k, ValueId v, AttentionKernel kernel, double dropout,
                           bool grouped) {
  AttentionOptions options;
  options.kernel = kernel;
  options.dropout = dropout;
  options.grouped = grouped;
  return attention(q, k, v, options);
}

ValueId Builder::matmul(ValueId x, ValueId y, const AttentionOptions& options) {
  return op(OpKind::kMatmul, {x, y}, attention_attributes(options));
}

void Builder::end_region(bool keep_random_state, bool stops_early) {
  Region region;
  region.last = network_.operations.size();
  region.first = region.last;
  while (region.first > 0 && network_.operations[region.first - 1].region == region_) {
    --region.first;
  }
  region.keep_random_state = keep_random_state;
  region.stops_early = stops_early;
  network_.regions.push_back(region);
  region_ = -1;
  keep_linears_ = false;
}

Network Builder::finish(ValueId logits, ValueId loss) {
  Network network = std::exchange(network_, Network());
  dtypes_ = {DType::kBool};
  network.logits = logits;
  network.loss = loss;
  const std::vector<std::size_t> last = last_uses(network);
  std::vector<bool> lasting = lasting_values(network);
  for (Region& region : network.regions) find_borders(network, region, last, lasting);
  lasting[logits] = lasting[loss] = true;  // the driver of the step drops these
  for (ValueId v : network.released) lasting[v] = false;
  network.dying.resize(network.operations.size());
  std::vector<bool> listed(network.values, false);
  for (std::size_t i = 0; i < network.operations.size(); ++i) {
    const Operation& op = network.operations[i];
    for (const std::vector<ValueId>* values : {&op.inputs, &op.outputs}) {
      for (ValueId v : *values) {
        if (last[v] != i || lasting[v] || listed[v]) continue;
        listed[v] = true;
        network.dying[i].push_back(v);
      }
    }
  }
  return network;
}

}  // namespace plimsoll::network
