// Convolutions, pooling and padding of images.
//
// [Note: Convolution on the CPU]
// libtorch's CPU has two ways for plain 2-d convolutions, and both need copies:
//   blocked:  oneDNN, for fp32 with several images or one large one: copies with channels in
//             blocks, results copied back;
//   unfolded: one matrix product with the image unfolded into its windows. Always taken when oneDNN
//             is switched off.
// oneDNN decides by itself how many channels a block has. Its copies were compared for kernels of
// 3 x 3 with stride 1 on images of at least 3 x 3; for others they are an estimate. Grouped, dilated and transposed
// convolutions have results only.
// Letters: B batch, C channels in, O channels out.
#include <ATen/native/ConvUtils.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/kernel_temporaries.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"
#include "plimsoll/engine/library/convolution_block.hpp"

namespace plimsoll::engine::dry {
namespace {

using at::IntArrayRef;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

struct Setting {
  std::vector<std::int64_t> stride, padding, dilation;
  bool transposed;
  std::vector<std::int64_t> output_padding;
  std::int64_t groups;
};

std::vector<std::int64_t> ints(c10::SymIntArrayRef values) {
  std::vector<std::int64_t> out;
  for (const c10::SymInt& value : values) out.push_back(value.expect_int());
  return out;
}

std::vector<std::int64_t> output_shape(const Tensor& x, const Tensor& weight, const Setting& how) {
  if (how.transposed) {
    return at::native::conv_input_size(x.sizes(), weight.sizes(), how.padding, how.output_padding,
                                       how.stride, how.dilation, how.groups);
  }
  return at::native::conv_output_size(x.sizes(), weight.sizes(), how.padding, how.stride,
                                      how.dilation);
}

enum class Way { kPlain, kUnfolded, kBlocked };

bool is_ones(IntArrayRef values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t value) { return value == 1; });
}

// libtorch's own condition for oneDNN, for fp32 and one group.
bool takes_onednn(const Tensor& x, const Tensor& weight, const Setting& how) {
  if (!at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return false;
  const IntArrayRef window = weight.sizes().slice(2);
  constexpr std::int64_t large_batch = 16, large_image = 20480, large_window = 3;
  const bool worthwhile = !is_ones(how.stride) || x.size(0) >= large_batch || !is_ones(window) ||
                          at::get_num_threads() > 1;
  const bool big = (window[0] > large_window && window[1] > large_window) || x.size(0) > 1 ||
                   x.numel() > large_image;
  return x.scalar_type() == at::kFloat && worthwhile && big;
}

Way way_of(const Tensor& x, const Tensor& weight, const Setting& how) {
  const bool plain = x.dim() == 4 && how.groups == 1 && !how.transposed && is_ones(how.dilation);
  if (!plain || current_flavour() != Flavour::kCpu) return Way::kPlain;
  return takes_onednn(x, weight, how) ? Way::kBlocked : Way::kUnfolded;
}

// The copies that one convolution makes, all in the dtype of x.
class Copies {
 public:
  Copies(const Tensor& x, const Tensor& weight, IntArrayRef out)
      : x_(x), weight_(weight), pixels_out_(c10::multiply_integers(out.slice(2))) {}

  // With windows of one pixel the image is its own unfolding.
  Tensor unfolded() const {
    if (window() == 1) return {};
    return empty({x_.size(0), x_.size(1) * window(), pixels_out_});
  }
  bool reads_image_directly() const { return x_.size(1) < convolution_block(); }
  bool is_color() const { return x_.size(1) == 3; }
  Tensor image() const {
    return empty({x_.size(0), padded(x_.size(1)), c10::multiply_integers(x_.sizes().slice(2))});
  }
  Tensor result() const { return empty({x_.size(0), padded(weight_.size(0)), pixels_out_}); }
  Tensor weight(bool as_it_is) const {
    const std::int64_t in = as_it_is ? x_.size(1) : padded(x_.size(1));
    return empty({padded(weight_.size(0)), in, window()});
  }
  // Undefined when the channels fill their blocks; otherwise with room to align.
  Tensor padded_bias() const {
    constexpr std::int64_t room = 128;
    const std::int64_t channels = padded(weight_.size(0));
    if (channels == weight_.size(0)) return {};
    return scratch(channels * static_cast<std::int64_t>(x_.element_size()) + room);
  }
  Tensor bias() const { return empty({weight_.size(0)}); }

 private:
  static std::int64_t padded(std::int64_t channels) {
    return (channels + convolution_block() - 1) / convolution_block() * convolution_block();
  }
  std::int64_t window() const { return c10::multiply_integers(weight_.sizes().slice(2)); }
  Tensor empty(IntArrayRef shape) const { return at::empty(shape, x_.options()); }

  const Tensor& x_;
  const Tensor& weight_;
  std::int64_t pixels_out_;
};

void blocked_forward(const Copies& copies, bool bias, Tensor& result) {
  Tensor padded_bias, image;
  if (bias) padded_bias = copies.padded_bias();
  if (!copies.reads_image_directly()) image = copies.image();
  const Tensor weight = copies.weight(copies.reads_image_directly());
  result = copies.result();
}

Tensor convolve(const Tensor& x, const Tensor& weight, bool bias, const Setting& how) {
  const auto shape = output_shape(x, weight, how);
  const Copies copies(x, weight, shape);
  Tensor copy;
  switch (way_of(x, weight, how)) {
    case Way::kPlain:
      break;
    case Way::kUnfolded:
      copy = copies.unfolded();
      break;
    case Way::kBlocked:
      blocked_forward(copies, bias, copy);
      break;
  }
  return at::empty(shape, x.options());
}

Tensor convolution(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
                   c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                   c10::SymIntArrayRef dilation, bool transposed,
                   c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const Setting how{ints(stride), ints(padding),        ints(dilation),
                    transposed,   ints(output_padding), groups.expect_int()};
  return convolve(x, weight, bias.has_value() && bias->defined(), how);
}

Tensor bias_like(const Tensor& gradient) {
  return at::empty({gradient.size(1)}, gradient.options());
}

Three unfolded_gradients(const Tensor& gradient, const Tensor& x, const Tensor& weight,
                         const Copies& copies, std::array<bool, 3> needed) {
  Three out;
  if (needed[0]) std::get<0>(out) = at::empty_like(x, at::MemoryFormat::Contiguous);
  if (needed[2]) std::get<2>(out) = gradient.sum({0, 2, 3});
  if (!needed[1]) return out;
  std::get<1>(out) = at::empty_like(weight, at::MemoryFormat::Contiguous);
  const Tensor unfolded = copies.unfolded();
  return out;
}

Tensor blocked_image_gradient(const Tensor& x, const Copies& copies) {
  Tensor image;
  {
    const Tensor gradient = copies.result();
    const Tensor weight = copies.weight(/*as_it_is=*/false);
    image = copies.image();
  }
  return at::empty_like(x, at::MemoryFormat::Contiguous);
}

// One kernel computes both, also when only the bias learns.
void blocked_weight_gradients(const Tensor& gradient, const Tensor& weight, const Copies& copies,
                              bool bias, Three& out) {
  Tensor weight_copy, bias_copy;
  {
    const Tensor gradient_copy = copies.result();
    Tensor image;
    if (!copies.is_color()) image = copies.image();
    weight_copy = copies.weight(copies.is_color());
    if (bias) {
      const Tensor padded = copies.padded_bias();
      bias_copy = copies.bias();
    }
  }
  if (bias) std::get<2>(out) = bias_like(gradient);
  std::get<1>(out) = at::empty_like(weight, at::MemoryFormat::Contiguous);
}

Three convolution_backward(const Tensor& gradient, const Tensor& x, const Tensor& weight,
                           c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                           c10::SymIntArrayRef dilation, bool transposed,
                           c10::SymIntArrayRef output_padding, c10::SymInt groups,
                           std::array<bool, 3> needed) {
  const Setting how{ints(stride), ints(padding),        ints(dilation),
                    transposed,   ints(output_padding), groups.expect_int()};
  const Copies copies(x, weight, gradient.sizes());
  Three out;
  switch (way_of(x, weight, how)) {
    case Way::kPlain:
      if (needed[0]) std::get<0>(out) = at::empty_like(x, at::MemoryFormat::Contiguous);
      if (needed[1]) std::get<1>(out) = at::empty_like(weight, at::MemoryFormat::Contiguous);
      if (needed[2]) std::get<2>(out) = bias_like(gradient);
      break;
    case Way::kUnfolded:
      return unfolded_gradients(gradient, x, weight, copies, needed);
    case Way::kBlocked:
      if (needed[0]) std::get<0>(out) = blocked_image_gradient(x, copies);
      if (needed[1] || needed[2]) {
        blocked_weight_gradients(gradient, weight, copies, needed[2], out);
      }
      break;
  }
  return out;
}

// --- pooling, padding ----------------------------------------------------------------------------

Tensor adaptive_average(const Tensor& x, c10::SymIntArrayRef size) {
  const auto sides = ints(size);
  std::vector<std::int64_t> shape = x.sizes().vec();
  std::copy_backward(sides.begin(), sides.end(), shape.end());
  return at::empty(shape, x.options().memory_format(x.suggest_memory_format()));
}

Tensor adaptive_average_backward(const Tensor&, const Tensor& x) { return at::empty_like(x); }

Tensor reflection_pad2d(const Tensor& x, c10::SymIntArrayRef padding) {
  const auto sides = ints(padding);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[shape.size() - 1] += sides[0] + sides[1];
  shape[shape.size() - 2] += sides[2] + sides[3];
  return at::empty(shape, x.options());
}

Tensor reflection_pad2d_backward(const Tensor&, const Tensor& x, c10::SymIntArrayRef) {
  return at::zeros_like(x, at::MemoryFormat::Contiguous);
}

// The image is copied if it is not contiguous.
Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  std::vector<std::int64_t> shape = x.sizes().vec();
  const std::size_t last = shape.size() - 1;
  shape[last - 2] /= factor * factor;
  shape[last - 1] *= factor;
  shape[last] *= factor;
  Tensor out = at::empty(shape, x.options());
  const Tensor copy = x.contiguous();
  return out;
}

}  // namespace

void register_image_kernels(torch::Library& meta) {
  meta.impl("convolution_overrideable", TORCH_FN(convolution));
  meta.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  add_if_missing(meta, "_adaptive_avg_pool2d", TORCH_FN(adaptive_average));
  add_if_missing(meta, "_adaptive_avg_pool2d_backward", TORCH_FN(adaptive_average_backward));
  add_if_missing(meta, "reflection_pad2d", TORCH_FN(reflection_pad2d));
  add_if_missing(meta, "reflection_pad2d_backward", TORCH_FN(reflection_pad2d_backward));
  add_if_missing(meta, "pixel_shuffle", TORCH_FN(pixel_shuffle));
}

}  // namespace plimsoll::engine::dry
