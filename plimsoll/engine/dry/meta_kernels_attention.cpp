// Scaled dot product attention: libtorch's flash kernel for the CPU, CUDA's flash and
// memory-efficient kernels, and the choice among them.
// Letters: B batch, H heads, S query rows, K key rows, D head size.
#include <ATen/OpMathType.h>

#include "plimsoll/engine/dry/flavour.hpp"
#include "plimsoll/engine/dry/kernel_temporaries.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"
#include "plimsoll/engine/library/attention_choice.hpp"

namespace plimsoll::engine::dry {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Logical (B,H,S,D), dense as (B,S,H,D): the layout every kernel gives its results.
at::Tensor empty_by_rows(const at::Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options())
      .transpose(1, 2);
}

// --- the CPU's flash kernel ---------------------------------------------------------------------

struct Tiles {
  std::int64_t queries, keys;
};

Tiles cpu_tiles(std::int64_t query_rows, std::int64_t key_rows) {
  std::int64_t queries = 32;
  if (query_rows >= 768) {
    queries = 256;
  } else if (query_rows >= 192) {
    queries = 64;
  }
  return {std::min(queries, query_rows), std::min<std::int64_t>(512, key_rows)};
}

bool is_16_bit(const at::Tensor& tensor) { return c10::elementSize(tensor.scalar_type()) == 2; }

std::tuple<at::Tensor, at::Tensor> flash_cpu(const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, double, bool,
                                             const OptionalTensor&, std::optional<double>) {
  const auto wide = q.options().dtype(at::toOpMathType(q.scalar_type()));
  at::Tensor out = empty_by_rows(q);
  at::Tensor logsumexp = at::empty({q.size(0), q.size(2), q.size(1)}, wide).transpose(1, 2);
  const Tiles tiles = cpu_tiles(q.size(2), k.size(2));
  const std::int64_t threads = at::get_num_threads(), product = tiles.queries * tiles.keys;
  const at::Tensor sums =
      at::empty({threads, product + 2 * tiles.queries + tiles.queries * v.size(3)}, wide);
  const at::Tensor narrow = is_16_bit(q) ? at::empty({threads, product}, q.options()) : at::Tensor();
  return {std::move(out), std::move(logsumexp)};
}

Three flash_cpu_backward(const at::Tensor&, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, const at::Tensor&, const at::Tensor&, double, bool,
                         const OptionalTensor&, std::optional<double>) {
  Three out{empty_by_rows(q), empty_by_rows(k), empty_by_rows(v)};
  const auto wide = q.options().dtype(at::toOpMathType(q.scalar_type()));
  const Tiles tiles = cpu_tiles(q.size(2), k.size(2));
  const std::int64_t threads = at::get_num_threads(), product = tiles.queries * tiles.keys;
  const at::Tensor products = at::empty({threads, 2 * product}, wide);
  const at::Tensor narrow =
      is_16_bit(q) ? at::empty({threads, 2 * product}, q.options()) : at::Tensor();
  const at::Tensor row = at::empty({tiles.queries}, wide);
  return out;
}

}  // namespace

void register_attention_kernels(torch::Library& meta) {
  add_if_missing(meta, "_scaled_dot_product_flash_attention_for_cpu", TORCH_FN(flash_cpu));
  add_if_missing(meta, "_scaled_dot_product_flash_attention_for_cpu_backward",
                 TORCH_FN(flash_cpu_backward));
}

namespace {

// A bool mask becomes 0 where true and -inf where false.
OptionalTensor added_mask(const OptionalTensor& mask, at::ScalarType dtype) {
  if (!mask.has_value() || mask->scalar_type() != at::kBool) return mask;
  const at::Tensor shown = at::scalar_tensor(0.0, mask->options().dtype(dtype));
  return at::where(*mask, 0.0, at::scalar_tensor(-std::numeric_limits<double>::infinity(), mask->options().dtype(dtype)));
}

at::Tensor scaled_dot_product_attention(const at::Tensor& q, const at::Tensor& k,
                                        const at::Tensor& v, const OptionalTensor& mask,
                                        double dropout, bool causal, std::optional<double> scale,
                                        bool grouped) {
  const auto choice = cpu_attention_choice({q, k, v, mask, dropout, causal, scale, grouped});
  const OptionalTensor added = added_mask(mask, q.scalar_type());
  if (choice == at::SDPBackend::flash_attention) {
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, dropout, causal,
                                                                       added, scale));
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, added, dropout, causal, {},
                                                            scale, grouped));
}

}  // namespace

void register_composites(torch::Library& mode) {
  mode.impl("scaled_dot_product_attention", TORCH_FN(scaled_dot_product_attention));
}

}  // namespace plimsoll::engine::dry
