// [Note: Convolution kernels] libtorch's CPU has two for 3x3 convolutions, and both need copies:
//   blocked: oneDNN, for fp32 with several images or one large one. Works on copies with channels in
//            blocks of 8 (AVX2; processors with wider units use other blocks) and copies results back.
//   unfolded: the rest. One matrix product with the image unfolded into 9 values per pixel.
// Compared event by event with libtorch 2.13, one thread, on 3,700 shapes with sides from 3 on. Not
// modelled: sides 1 and 2, whose weight gradient oneDNN computes by other means (validate() refuses
// such networks), and the sums that more threads keep of it.
#include "plimsoll/network/rules/convolution.hpp"

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

constexpr std::int64_t kWindow = 9;  // 3 x 3
constexpr std::int64_t kColorChannels = 3;
// A single image goes to oneDNN when it has more values than this.
constexpr std::int64_t kLargeImage = 20480;
// oneDNN's scratch for a padded bias: the values and room to align them.
constexpr std::int64_t kAlignment = 128;

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (std::int64_t factor : factors) result = checked_mul(result, factor);
  return result;
}

void count(Autograd& a, const Dims& x, std::int64_t out_channels) {
  a.count(&FlopCount::convolution, product({2, kWindow, out_channels, x[0], x[1], x[2], x[3]}));
}

// The sizes of one convolution and the copies that its kernels make.
class Copies {
 public:
  Copies(Autograd& a, const Tensor& x, const Tensor& weight)
      : a_(a),
        dtype_(x.dtype()),
        block_(a.facts.convolution_block),
        batch_(x.size(0)),
        in_(x.size(1)),
        out_(weight.size(0)),
        pixels_(checked_mul(x.size(2), x.size(3))) {}

  bool blocked() const {
    if (dtype_ != DType::kFloat32) return false;
    return batch_ > 1 || product({in_, pixels_}) > kLargeImage;
  }
  // Fewer channels than a block are read as they are, except in gradients.
  bool reads_image_directly() const { return in_ < block_; }
  bool is_color() const { return in_ == kColorChannels; }

  Tensor unfolded() const { return scratch({batch_, kWindow, in_, pixels_}); }
  Tensor image() const { return scratch({batch_, padded(in_), pixels_}); }
  Tensor result() const { return scratch({batch_, padded(out_), pixels_}); }
  Tensor weight(bool color_as_it_is) const {
    return scratch({padded(out_), color_as_it_is ? in_ : padded(in_), kWindow});
  }
  // Null when the channels fill their blocks.
  Tensor padded_bias() const {
    if (padded(out_) == out_) return {};
    return a_.scratch({checked_add(checked_mul(padded(out_), size_of(dtype_)), kAlignment)},
                      DType::kUInt8);
  }
  Tensor bias() const { return scratch({out_}); }
  // Sums over images and pixels of 16-bit gradients are taken in fp32, unless few dimensions remain.
  bool sums_in_fp32() const {
    return size_of(dtype_) == 2 && batch_ > 1 && out_ > 1 && pixels_ > 1;
  }

 private:
  std::int64_t padded(std::int64_t channels) const {
    return (channels + block_ - 1) / block_ * block_;
  }
  Tensor scratch(std::initializer_list<std::int64_t> sizes) const {
    return a_.scratch({product(sizes)}, dtype_);
  }

  Autograd& a_;
  const DType dtype_;
  const std::int64_t block_;
  const std::int64_t batch_;
  const std::int64_t in_;
  const std::int64_t out_;
  const std::int64_t pixels_;
};

Tensor blocked_forward(Autograd& a, const Copies& copies, const Dims& shape, bool has_bias) {
  Tensor result;
  {
    Tensor bias;
    Tensor image;
    if (has_bias) bias = copies.padded_bias();
    if (!copies.reads_image_directly()) image = copies.image();
    const Tensor weight = copies.weight(copies.reads_image_directly());
    result = copies.result();
  }
  return a.empty(shape, DType::kFloat32);
}

void blocked_image_gradient(Autograd& a, const Copies& copies, const Tensor& x, Tensor& out) {
  Tensor image;
  {
    const Tensor gradient = copies.result();
    const Tensor weight = copies.weight(/*color_as_it_is=*/false);
    image = copies.image();
  }
  out = a.empty(x.shape(), x.dtype());
}

// One kernel computes both: a bias that learns beside a frozen weight pays for the weight's gradient,
// which is handed back for the node to drop.
Tensor blocked_weight_gradients(Autograd& a, const Node& node, const Copies& copies,
                                const Tensor& w, Gradients& out) {
  Tensor weight;
  Tensor bias;
  {
    const Tensor gradient = copies.result();
    Tensor image;
    if (!copies.is_color()) image = copies.image();
    weight = copies.weight(copies.is_color());
    if (node.wants(2)) {
      const Tensor padded = copies.padded_bias();
      bias = copies.bias();
    }
  }
  if (node.wants(2)) out[2] = a.empty({w.size(0)}, w.dtype());
  const Tensor gradient = a.empty(w.shape(), w.dtype());
  if (node.wants(1)) out[1] = gradient;
  return gradient;
}

void unfolded_gradients(Autograd& a, const Node& node, const Copies& copies, const Tensor& x,
                        const Tensor& w, const Tensor& gradient, Gradients& out) {
  if (node.wants(0)) out[0] = a.empty(x.shape(), x.dtype());
  if (node.wants(2)) {
    out[2] = a.empty({w.size(0)}, w.dtype());
    if (copies.sums_in_fp32()) {
      const Tensor sum = a.scratch({w.size(0)}, DType::kFloat32);
      a.scratch(gradient.shape(), DType::kFloat32);
    }
  }
  if (!node.wants(1)) return;
  out[1] = a.empty(w.shape(), w.dtype());
  copies.unfolded();
}

void plain_gradients(Autograd& a, const Node& node, const Tensor& x, const Tensor& w,
                     Gradients& out) {
  if (node.wants(0)) out[0] = a.empty(x.shape(), x.dtype());
  if (node.wants(1)) out[1] = a.empty(w.shape(), w.dtype());
  if (node.wants(2)) out[2] = a.empty({w.size(0)}, w.dtype());
}

// One call computes all three gradients: input, weight, bias.
void conv2d_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor w = a.unpack(node, 1);
  if (node.wants(0)) count(a, x.shape(), w.size(0));
  if (node.wants(1)) count(a, x.shape(), w.size(0));
  if (a.facts.convolution_block == 0) return plain_gradients(a, node, x, w, out);
  const Copies copies(a, x, w);
  if (!copies.blocked()) return unfolded_gradients(a, node, copies, x, w, in[0], out);
  if (node.wants(0)) blocked_image_gradient(a, copies, x, out[0]);
  Tensor unused;
  if (node.wants(1) || node.wants(2)) unused = blocked_weight_gradients(a, node, copies, w, out);
}

Tensor convolve(Autograd& a, const Tensor& x, const Tensor& weight, bool has_bias) {
  const Dims shape{x.size(0), weight.size(0), x.size(2), x.size(3)};
  if (a.facts.convolution_block == 0) return a.empty(shape, x.dtype());
  const Copies copies(a, x, weight);
  if (copies.blocked()) return blocked_forward(a, copies, shape, has_bias);
  const Tensor unfolded = copies.unfolded();
  return a.empty(shape, x.dtype());
}

void max_pool2_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor indices = a.unpack(node, 1);
  out[0] = a.empty(x.shape(), x.dtype());
}

}  // namespace

Tensor conv2d(Autograd& a, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Ref<Node> node = a.record("Convolution", conv2d_backward, {&x, &weight, &bias});
  if (node) {
    a.save_input(*node, 0, x);
    a.save_input(*node, 1, weight);
  }
  count(a, x.shape(), weight.size(0));
  Tensor out = convolve(a, x, weight, static_cast<bool>(bias));
  return a.attach(node, out);
}

Tensor max_pool2(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("MaxPool2", max_pool2_backward, {&x});
  if (node) a.save_input(*node, 0, x);
  const Dims shape{x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2};
  Tensor out = a.empty(shape, x.dtype());
  const Tensor indices = a.empty(shape, DType::kInt64);
  if (node) a.save_output(*node, 1, indices);
  return a.attach(node, out);
}

}  // namespace plimsoll::network::rules
