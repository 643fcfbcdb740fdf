#include "tests/differential/random_network.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::tests {
namespace {

using network::AttentionKernel;
using network::Dims;
using network::DType;
using network::InputKind;
using network::OpKind;
using network::ValueId;

struct RandomValue {
  ValueId id;
  Dims shape;
  DType dtype;
};

// Whether a gradient reaches each value, from what the builder holds so far.
std::vector<bool> differentiable(const network::Network& net) {
  std::vector<bool> result(net.values, false);
  for (const network::Parameter& p : net.parameters) result[p.value] = p.trainable;
  for (const network::Operation& op : net.operations) {
    for (ValueId in : op.inputs) {
      if (!result[in]) continue;
      for (ValueId out : op.outputs) result[out] = true;
    }
  }
  return result;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomNetworkOptions& options)
      : options_(options), random_(seed) {}

  network::Network make() {
    start();
    for (std::size_t i = 0; i < options_.operations; ++i) step();
    return finish();
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  bool chance(std::int64_t percent) { return below(100) < percent; }
  std::int64_t pick_size(std::initializer_list<std::int64_t> sizes) {
    return *(sizes.begin() + below(static_cast<std::int64_t>(sizes.size())));
  }

  // Recent values are likelier, so that graphs are deep and still reuse old ones.
  const RandomValue& pick() {
    const auto n = static_cast<std::int64_t>(values_.size());
    const std::int64_t back = std::min(below(n), below(n));
    return values_[static_cast<std::size_t>(n - 1 - back)];
  }

  void push(ValueId id, const Dims& shape, DType dtype) { values_.push_back({id, shape, dtype}); }

  ValueId parameter(const Dims& shape, DType dtype) {
    for (const RandomValue& p : parameters_) {  // reuse one now and then
      if (p.shape == shape && p.dtype == dtype && chance(30)) return p.id;
    }
    const ValueId id = g_.parameter(fmt::format("p{}.weight", parameters_.size()), shape, dtype);
    g_.network().parameters.back().trainable = !chance(15);
    parameters_.push_back({id, shape, dtype});
    return id;
  }

  void start() {
    batch_ = pick_size({1, 1, 2, 3});
    length_ = pick_size({1, 2, 5, 9, 33});
    vocabulary_ = pick_size({3, 7});
    const ValueId ids = g_.input("ids", {batch_, length_}, DType::kInt64, InputKind::kTokens);
    const std::int64_t width = pick_size({2, 4, 8, 12});
    const ValueId table = parameter({vocabulary_, width}, options_.dtype);
    g_.network().parameters.back().trainable = true;
    push(g_.embedding(ids, table), {batch_, length_, width}, options_.dtype);
    if (chance(40)) {
      push(parameter({batch_, length_, width}, options_.dtype), {batch_, length_, width},
           options_.dtype);
    }
    if (chance(30)) {
      const ValueId constant =
          g_.input("constant", {batch_, length_, width}, options_.dtype, InputKind::kImage);
      push(constant, {batch_, length_, width}, options_.dtype);
    }
  }

  void step() {
    const RandomValue x = pick();
    switch (below(12)) {
      case 0:
      case 1:
        return sum_or_product(x);
      case 2:
        return one_to_one(x);
      case 3:
        return one_to_one(x);
      case 4:
      case 5:
        return linear(x);
      case 6:
        return norm(x);
      case 7:
        return shape_change(x);
      case 8:
        return shape_change(x);
      case 9:
        return cut(x);
      case 10:
        return attention(x);
      default:
        return cast_or_statistics(x);
    }
  }

  // With itself, with another value of its shape, or with a broadcast parameter.
  void sum_or_product(const RandomValue& x) {
    RandomValue y = x;
    if (chance(40)) {
      Dims shape{x.shape.back()};
      if (chance(30)) shape = {x.shape.size() > 1 ? x.shape[x.shape.size() - 2] : 1, 1};
      y = {parameter(shape, x.dtype), shape, x.dtype};
    } else {
      std::vector<RandomValue> same;
      for (const RandomValue& v : values_) {
        if (v.shape == x.shape) same.push_back(v);
      }
      y = same[static_cast<std::size_t>(below(static_cast<std::int64_t>(same.size())))];
    }
    const DType dtype = std::max(x.dtype, y.dtype);
    const ValueId out = chance(50) ? g_.add(x.id, y.id) : g_.mul(x.id, y.id);
    push(out, network::broadcast(x.shape, y.shape), dtype);
  }

  void one_to_one(const RandomValue& x) {
    static constexpr std::array kKinds = {OpKind::kNeg,  OpKind::kPow2, OpKind::kGelu,
                                          OpKind::kSilu, OpKind::kRelu, OpKind::kGeluTanh};
    const std::int64_t choice = below(static_cast<std::int64_t>(kKinds.size()) + 3);
    network::Attributes a;
    a.number = 0.5;
    if (choice < static_cast<std::int64_t>(kKinds.size())) {
      return push(g_.activation(kKinds[static_cast<std::size_t>(choice)], x.id), x.shape, x.dtype);
    }
    static constexpr std::array kNumbers = {OpKind::kAddNumber, OpKind::kMulNumber,
                                            OpKind::kDropout};
    const auto kind = kNumbers[static_cast<std::size_t>(choice) - kKinds.size()];
    push(g_.operation(kind, {x.id}, a), x.shape, x.dtype);
  }

  void linear(const RandomValue& x) {
    if (x.shape.size() < 2 || x.shape.size() > 3) return one_to_one(x);
    const std::int64_t out = pick_size({2, 4, 8, 12});
    const ValueId w = parameter({out, x.shape.back()}, x.dtype);
    const ValueId b = chance(40) ? parameter({out}, x.dtype) : network::kNoValue;
    Dims shape = x.shape;
    shape[shape.size() - 1] = out;
    push(g_.linear(x.id, w, b), shape, x.dtype);
  }

  void norm(const RandomValue& x) {
    const Dims shape{x.shape.back()};
    const ValueId w = parameter(shape, x.dtype);
    if (chance(50)) return push(g_.rms_norm(x.id, w, 1e-5), x.shape, x.dtype);
    push(g_.layer_norm(x.id, w, parameter(shape, x.dtype), 1e-5), x.shape, x.dtype);
  }

  void shape_change(const RandomValue& x) {
    if (x.shape.size() < 2 || chance(30)) {
      return push(g_.reshape(x.id, flattened(x.shape)), flattened(x.shape), x.dtype);
    }
    const std::size_t last = x.shape.size() - 1;
    if (chance(60)) {
      Dims shape = x.shape;
      std::swap(shape[last], shape[last - 1]);
      const ValueId t = g_.transpose(x.id, last - 1, last);
      return push(chance(40) ? g_.contiguous(t) : t, shape, x.dtype);
    }
    if (x.shape.size() < 4) {
      Dims shape = x.shape;
      shape.insert(1, 1);
      return push(g_.unsqueeze(x.id, 1), shape, x.dtype);
    }
    one_to_one(x);
  }

  static Dims flattened(const Dims& shape) {
    const std::int64_t rows = network::element_count(shape) / shape.back();
    return {rows, shape.back()};
  }

  // slice, split or cat along the last dimension.
  void cut(const RandomValue& x) {
    const std::size_t dim = x.shape.size() - 1;
    Dims shape = x.shape;
    if (chance(35) || shape[dim] % 2 != 0 || shape[dim] == 0) {
      shape[dim] = 2 * x.shape[dim];
      return push(g_.cat({x.id, x.id}, dim), shape, x.dtype);
    }
    const std::int64_t half = shape[dim] / 2;
    shape[dim] = half;
    if (chance(50)) return push(g_.slice(x.id, dim, 0, half), shape, x.dtype);
    const std::vector<ValueId> parts = g_.split(x.id, half, dim, 2);
    push(parts[0], shape, x.dtype);
    if (chance(70)) push(parts[1], shape, x.dtype);
  }

  // x as queries, keys and values at once: three gradients flow into one tensor.
  void attention(const RandomValue& x) {
    if (x.shape.size() != 3 || x.shape.back() % 2 != 0) return one_to_one(x);
    const std::int64_t heads = 2;
    const Dims split{x.shape[0], x.shape[1], heads, x.shape[2] / heads};
    const auto part = [&] { return g_.transpose(g_.reshape(x.id, split), 1, 2); };
    const ValueId q = part();
    const ValueId k = chance(50) ? q : part();
    const ValueId v = part();
    const bool math = chance(40);
    const AttentionKernel kernel = math ? AttentionKernel::kMath : AttentionKernel::kFlash;
    const ValueId y = g_.attention(q, k, v, kernel, 0, false);
    push(g_.reshape(g_.transpose(y, 1, 2), x.shape), x.shape, x.dtype);
  }

  void cast_or_statistics(const RandomValue& x) {
    if (chance(40)) {
      const DType to = x.dtype == DType::kBFloat16  ? DType::kFloat32
                       : x.dtype == DType::kFloat32 ? DType::kBFloat16
                                                    : DType::kFloat64;
      return push(g_.to(x.id, to), x.shape, to);
    }
    Dims shape = x.shape;
    shape[shape.size() - 1] = 1;
    const ValueId mean = g_.mean(x.id);
    if (chance(50)) return push(g_.mul(x.id, mean), x.shape, x.dtype);
    push(g_.mul(x.id, g_.rsqrt(g_.add_number(g_.pow2(mean), 1.0))), x.shape, x.dtype);
  }

  network::Network finish() {
    const std::vector<bool> trained = differentiable(g_.network());
    while (values_.size() > 1 && !trained[values_.back().id]) values_.pop_back();
    const RandomValue x = values_.back();
    const Dims shape = flattened(x.shape);
    const ValueId logits = g_.reshape(x.id, shape);
    const ValueId target = g_.input("targets", {shape[0]}, DType::kInt64, InputKind::kClasses);
    g_.begin_loss();
    network::Network network = g_.finish(logits, g_.cross_entropy(logits, target));
    network.vocabulary = std::min(shape[1], vocabulary_);
    return network;
  }

  const RandomNetworkOptions options_;
  std::mt19937_64 random_;
  network::Builder g_;
  std::vector<RandomValue> values_;
  std::vector<RandomValue> parameters_;
  std::int64_t batch_ = 1;
  std::int64_t length_ = 1;
  std::int64_t vocabulary_ = 3;
};

}  // namespace

network::Network random_network(std::uint64_t seed, const RandomNetworkOptions& options) {
  return Generator(seed, options).make();
}

}  // namespace plimsoll::tests
