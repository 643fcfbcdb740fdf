#include "plimsoll/engine/run/single_steps.hpp"

#include "plimsoll/base/checked.hpp"

namespace plimsoll::engine {
namespace {

using network::OpKind;

// A number as Python's arithmetic passes it: a tensor without dimensions that yields in promotion.
at::Tensor wrapped(double number) { return at::native::wrapped_scalar_tensor(number); }

at::Tensor pick_one(const at::Tensor& x, std::int64_t dim, std::int64_t index) {
  c10::List<std::optional<at::Tensor>> indices;
  for (std::int64_t i = 0; i < dim; ++i) indices.push_back(std::nullopt);
  indices.push_back(at::full({1}, index, at::TensorOptions().dtype(at::kLong).device(x.device())));
  return at::index(x, indices);
}

// Step by step: C++ evaluates right operands first and keeps every temporary to the end of its line.
at::Tensor bloom_curve(const at::Tensor& x) {
  at::Tensor inner = x * 0.79788456;
  at::Tensor cube = x * 0.044715;
  cube = cube * x;
  cube = cube + 1;
  inner = inner * cube;
  cube.reset();
  return at::tanh(inner);
}

// bloom's gelu, both ways in single operations.
class BloomGelu : public torch::autograd::Function<BloomGelu> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& x) {
    context->save_for_backward({x});
    const at::Tensor half = x * 0.5;
    const at::Tensor t = bloom_curve(x);
    const at::Tensor sum = t + 1.0;
    return half * sum;
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor t = bloom_curve(x);
    at::Tensor slope = x * 0.5;
    {
      at::Tensor left = t * t;
      left = at::rsub(left, at::Scalar(1));
      at::Tensor right = x * 0.1070322243;
      right = right * x;
      right = right + 0.79788456;
      left = left * right;
      right.reset();
      slope = slope * left;
    }
    at::Tensor share = t + 1;
    share = share * 0.5;
    slope = slope + share;
    share.reset();
    return {slope * gradients[0]};
  }
};

}  // namespace

at::Tensor call_single_step(const network::Operation& op, const std::vector<at::Tensor>& values) {
  const network::Attributes& a = op.attributes;
  const auto in = [&](std::size_t i) -> const at::Tensor& { return values[op.inputs[i]]; };
  at::Tensor x = in(0);
  switch (op.kind) {
    case OpKind::kSelect:
      return x.select(a.dim, a.start);
    case OpKind::kEverySecond:
      return x.slice(-1, a.start, x.size(-1), 2);
    case OpKind::kStack:
      return at::stack({x, in(1)}, -1);
    case OpKind::kPickOne:
      return pick_one(x, a.dim, a.start);
    case OpKind::kSub:
      return at::sub(x, in(1));
    case OpKind::kAddInPlace:
      return x.add_(in(1));
    case OpKind::kScale:
      return at::mul(x, wrapped(a.number));
    case OpKind::kDivide:
      return at::div(x, wrapped(a.number));
    case OpKind::kScaleInPlace:
      return x.mul_(wrapped(a.number));
    case OpKind::kDivideInPlace:
      return x.div_(wrapped(a.number));
    case OpKind::kPow3:
      return at::pow(x, 3);
    case OpKind::kColumnLinear:
      return at::addmm(in(2), x, in(1));
    case OpKind::kBatchedProduct:
      return at::bmm(x, in(1));
    case OpKind::kBiasedProduct:
      return at::baddbmm(x, in(1), in(2), 1, a.number);
    case OpKind::kBloomGelu:
      return BloomGelu::apply(x);
    default:
      throw InternalError("operation without a library call");
  }
}

}  // namespace plimsoll::engine
