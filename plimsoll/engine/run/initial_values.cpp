#include "plimsoll/engine/run/initial_values.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "plimsoll/base/hash.hpp"
#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/run/library_calls.hpp"

namespace plimsoll::engine {
namespace {

using network::InputKind;
using timeline::Tag;

at::TensorOptions options_of(network::DType dtype, at::Device device) {
  return at::TensorOptions().dtype(scalar_type(dtype)).device(device);
}

void fill(at::Tensor& t, network::Init init, std::optional<at::Generator> generator) {
  switch (init) {
    case network::Init::kNormal:
      t.normal_(0.0, 0.02, std::move(generator));
      return;
    case network::Init::kOnes:
      t.fill_(1);
      return;
    case network::Init::kZeros:
      t.zero_();
  }
}

// cos or sin of position * theta^(-2 i / H), pairs (i, i + H/2), computed in double.
void fill_rotary(at::Tensor& table, const network::Input& input) {
  const bool cosine = input.kind == InputKind::kCosine;
  const std::int64_t positions = table.size(1);
  const std::int64_t head_dim = table.size(2);
  const std::int64_t half = head_dim / 2;
  std::vector<double> values(static_cast<std::size_t>(positions * head_dim));
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t i = 0; i < head_dim; ++i) {
      const double pair = static_cast<double>(i % std::max<std::int64_t>(half, 1));
      const double power = -2.0 * pair / static_cast<double>(head_dim);
      const double angle = static_cast<double>(input.start + p) * std::pow(input.theta, power);
      values[static_cast<std::size_t>(p * head_dim + i)] =
          cosine ? std::cos(angle) : std::sin(angle);
    }
  }
  table.copy_(at::from_blob(values.data(), {1, positions, head_dim}, at::kDouble));
}

// ALiBi's slope of each head: powers of 2^(-8/n) for the largest power of two n, then every other
// power of 2^(-4/n) for the heads beyond it.
std::vector<double> alibi_slopes(std::int64_t heads) {
  std::int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  std::vector<double> slopes;
  for (std::int64_t i = 0; i < heads; ++i) {
    const double power = i < n
                             ? -8.0 * static_cast<double>(i + 1) / static_cast<double>(n)
                             : -4.0 * static_cast<double>(2 * (i - n) + 1) / static_cast<double>(n);
    slopes.push_back(std::exp2(power));
  }
  return slopes;
}

// 0, or ALiBi's bias by distance, where query i sees key j; minus infinity elsewhere.
void fill_mask(at::Tensor& mask, const network::Input& input) {
  const std::int64_t last = input.start + mask.size(-2);
  const bool alibi = mask.dim() == 4;
  const std::vector<double> slopes = alibi ? alibi_slopes(mask.size(1)) : std::vector<double>{0.0};
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(mask.numel()));
  for (const double slope : slopes) {
    for (std::int64_t i = input.start; i < last; ++i) {
      for (std::int64_t j = 0; j < mask.size(-1); ++j) {
        const bool hidden = (input.causal && j > i) || (input.window > 0 && j <= i - input.window);
        const double bias = slope * static_cast<double>(j - i);
        values.push_back(hidden ? -std::numeric_limits<float>::infinity()
                                : static_cast<float>(bias));
      }
    }
  }
  mask.copy_(at::from_blob(values.data(), mask.sizes(), at::kFloat));
}

}  // namespace

void fill_parameter(const network::Parameter& parameter, std::uint64_t seed, at::Tensor tensor) {
  if (tensor.is_meta()) return;
  // Every name has a stream of its own.
  const std::uint64_t own_seed = fnv1a(parameter.name, seed);
  fill(tensor, parameter.init, at::make_generator<at::CPUGeneratorImpl>(own_seed));
}

at::Tensor initial_parameter(const network::Parameter& parameter, at::Device device,
                             std::uint64_t seed) {
  const TagScope tag(Tag::kParameters);
  at::Tensor t = at::empty(sizes(parameter.shape), options_of(parameter.dtype, device));
  fill_parameter(parameter, seed, t);
  return t;
}

at::Tensor initial_buffer(const network::Buffer& buffer, at::Device device) {
  const TagScope tag(buffer.cache ? Tag::kKvCache : Tag::kBuffers);
  at::Tensor t = at::empty(sizes(buffer.shape), options_of(buffer.dtype, device));
  fill(t, buffer.init, std::nullopt);
  return t;
}

at::Tensor initial_input(const network::Input& input, const network::Network& network,
                         at::Device device) {
  const TagScope tag(Tag::kInputs);
  at::Tensor t = at::empty(sizes(input.shape), options_of(input.dtype, device));
  switch (input.kind) {
    case InputKind::kTokens:
    case InputKind::kTargets:
    case InputKind::kClasses:
      return t.random_(0, network.vocabulary);
    case InputKind::kImage:
      return t.normal_();
    case InputKind::kCosine:
    case InputKind::kSine:
      if (device != at::kMeta) {
        fill_rotary(t, input);
      }
      return t;
    case InputKind::kMask:
      if (device != at::kMeta) fill_mask(t, input);
      return t;
    case InputKind::kZeros:
      return t.zero_();
  }
  return t;
}

}  // namespace plimsoll::engine
