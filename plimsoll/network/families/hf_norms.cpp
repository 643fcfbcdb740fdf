// Norms as transformers writes them. Most are single steps in fp32.
#include "plimsoll/network/families/hf_parts.hpp"

namespace plimsoll::network::hf {
namespace {

constexpr DType kWide = DType::kFloat32;

// x * rsqrt(mean(x^2) + eps) of a wide x; the variance lives as long as `frame`.
ValueId normalised(Context& c, PythonFrame& frame, ValueId wide) {
  const ValueId variance = frame(c.g.mean(c.g.pow2(wide)));
  return c.g.mul(wide, c.g.rsqrt(c.g.add_number(variance, c.spec.norm_eps)));
}

ValueId llama_norm(Context& c, ValueId x, const Affine& w) {
  PythonFrame frame(c);
  const DType dtype = c.g.dtype_of(frame(x));
  const ValueId normal = frame(normalised(c, frame, c.g.to(x, kWide)));
  if (c.style.norm == NormStyle::kWeightFirst) return c.g.to(c.g.mul(w.weight, normal), dtype);
  return c.g.mul(w.weight, c.g.to(normal, dtype));
}

ValueId one_plus_norm(Context& c, ValueId x, const Affine& w) {
  PythonFrame frame(c);
  const DType dtype = c.g.dtype_of(frame(x));
  ValueId normal = kNoValue;
  {
    PythonFrame inner(c);
    const ValueId wide = inner(c.g.to(x, kWide));
    const ValueId sum = c.g.add_number(c.g.mean(c.g.pow2(wide)), c.spec.norm_eps);
    normal = c.g.mul(wide, c.g.rsqrt(sum));
  }
  const ValueId factor = c.g.add_number(c.g.to(w.weight, kWide), 1);
  const ValueId y = frame(c.g.mul(normal, factor));
  return c.g.to(y, dtype);
}

ValueId plain_norm(Context& c, ValueId x) {
  PythonFrame frame(c);
  const DType dtype = c.g.dtype_of(frame(x));
  return c.g.to(c.g.layer_norm(c.g.to(x, kWide), kNoValue, kNoValue, c.spec.norm_eps), dtype);
}

// The model casts the operands by hand under a GPU's autocast only.
ValueId one_plus_call(Context& c, ValueId x, const Affine& w) {
  PythonFrame frame(c);
  const ValueId factor = c.g.add_number(w.weight, 1);
  return c.g.layer_norm(frame(x), frame(factor), w.bias, c.spec.norm_eps);
}

ValueId cohere_norm(Context& c, ValueId x, const Affine& w) {
  PythonFrame frame(c);
  const DType dtype = c.g.dtype_of(frame(x));
  const ValueId wide = c.g.to(x, kWide);
  const ValueId mean = frame(c.g.mean(wide));
  const ValueId variance = frame(c.g.mean(c.g.pow2(c.g.sub(wide, mean))));
  const ValueId centred = c.g.sub(wide, mean);
  const ValueId rstd = c.g.rsqrt(c.g.add_number(variance, c.spec.norm_eps));
  const ValueId normal = c.g.mul(centred, rstd);
  const ValueId y = frame(c.g.mul(c.g.to(w.weight, kWide), normal));
  return c.g.to(y, dtype);
}

}  // namespace

ValueId norm(Context& c, ValueId x, const Affine& w) {
  switch (c.style.norm) {
    case NormStyle::kLlama:
    case NormStyle::kWeightFirst:
      return llama_norm(c, x, w);
    case NormStyle::kOnePlus:
      return one_plus_norm(c, x, w);
    case NormStyle::kPlain:
      return plain_norm(c, x);
    case NormStyle::kOnePlusCall:
      return one_plus_call(c, x, w);
    case NormStyle::kCohere:
      return cohere_norm(c, x, w);
    case NormStyle::kLibrary:
      break;
  }
  PythonFrame frame(c);
  return c.g.layer_norm(frame(x), w.weight, w.bias, c.spec.norm_eps);
}

}  // namespace plimsoll::network::hf
