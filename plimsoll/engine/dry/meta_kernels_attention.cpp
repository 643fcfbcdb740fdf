// Scaled dot product attention: libtorch's flash kernel for the CPU, CUDA's flash and
// memory-efficient kernels.
// Letters: B batch, H heads, S query rows, D head size.
#include "plimsoll/engine/dry/kernel_temporaries.hpp"
#include "plimsoll/engine/dry/meta_kernels.hpp"

namespace plimsoll::engine::dry {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// Logical (B,H,S,D), dense as (B,S,H,D).
Tensor empty_by_rows(const Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options())
      .transpose(1, 2);
}

Three empty_gradients(const Tensor& q, const Tensor& k, const Tensor& v) {
  Three out;
  std::get<0>(out) = empty_by_rows(q);
  std::get<1>(out) = empty_by_rows(k);
  std::get<2>(out) = empty_by_rows(v);
  return out;
}

// --- the CPU's flash kernel ----------------------------------------------------------------------

// Scratch of one thread, in values.
struct Tiles {
  std::int64_t queries, keys;
  std::int64_t product() const { return queries * keys; }
};

Tiles tiles_of(const Tensor& q, const Tensor& k) {
  std::int64_t queries = 32;
  if (q.size(2) >= 192) queries = 64;
  if (q.size(2) >= 768) queries = 256;
  return {std::min(queries, q.size(2)), std::min<std::int64_t>(512, k.size(2))};
}

// 16-bit inputs need a second, narrow copy of the products.
Tensor narrow_products(const Tensor& q, std::int64_t values) {
  return q.element_size() == 2 ? at::empty({values}, q.options()) : Tensor();
}

std::tuple<Tensor, Tensor> flash_cpu(const Tensor& q, const Tensor& k, const Tensor& v, double,
                                     bool, const OptionalTensor&, std::optional<double>) {
  Tensor out = at::empty_like(q);
  Tensor logsumexp = at::empty({q.size(0), q.size(2), q.size(1)}, wide(q)).transpose(1, 2);
  const Tiles tiles = tiles_of(q, k);
  const std::int64_t threads = at::get_num_threads();
  const std::int64_t rows = 2 * tiles.queries + tiles.queries * v.size(3);
  const Tensor products = at::empty({threads, tiles.product() + rows}, wide(q));
  const Tensor narrow = narrow_products(q, threads * tiles.product());
  return {std::move(out), std::move(logsumexp)};
}

Three flash_cpu_backward(const Tensor& gradient, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor&, const Tensor&, double, bool, const OptionalTensor&,
                         std::optional<double>) {
  Three out = empty_gradients(q, k, v);
  const Tensor by_rows = gradient.transpose(1, 2).contiguous();
  const Tiles tiles = tiles_of(q, k);
  const std::int64_t threads = at::get_num_threads();
  const Tensor products = at::empty({threads, 2 * tiles.product()}, wide(q));
  const Tensor narrow = narrow_products(q, threads * 2 * tiles.product());
  const Tensor row = at::empty({tiles.queries}, wide(q));
  return out;
}

// --- CUDA ----------------------------------------------------------------------------------------

using FlashResult =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

// Words that seed the dropout, saved with or without one.
Tensor random_state(const Tensor& q, at::IntArrayRef shape = {}) {
  return at::empty(shape, q.options().dtype(at::kLong));
}

FlashResult flash_cuda(const Tensor& q, const Tensor& k, const Tensor&, double, bool, bool,
                       std::optional<double>) {
  Tensor out = empty_by_rows(q);
  Tensor logsumexp = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
  return {std::move(out),
          std::move(logsumexp),
          Tensor(),
          Tensor(),
          q.sym_size(2),
          k.sym_size(2),
          random_state(q, {2}),
          random_state(q),
          at::empty({0}, q.options())};
}

Three flash_cuda_backward(const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor&, const Tensor&, const Tensor&, const Tensor&, c10::SymInt,
                          c10::SymInt, double, bool, const Tensor&, const Tensor&,
                          std::optional<double>) {
  return empty_gradients(q, k, v);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_cuda(const Tensor& q, const Tensor&,
                                                          const Tensor& v, const OptionalTensor&,
                                                          bool with_logsumexp, double, bool,
                                                          std::optional<double>) {
  // The kernel works on blocks of 32 rows.
  constexpr std::int64_t block = 32;
  const std::int64_t rows = with_logsumexp ? (q.size(2) + block - 1) / block * block : 0;
  Tensor out = at::empty({q.size(0), q.size(2), q.size(1), v.size(3)}, q.options()).transpose(1, 2);
  Tensor logsumexp = at::empty({q.size(0), q.size(1), rows}, q.options().dtype(at::kFloat));
  return {std::move(out), std::move(logsumexp), random_state(q), random_state(q)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_cuda_backward(
    const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
    const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, std::array<bool, 4> needed,
    bool, std::optional<double>) {
  auto [dq, dk, dv] = empty_gradients(q, k, v);
  Tensor dmask = needed[3] && mask.defined() ? at::empty_like(mask) : Tensor();
  return {std::move(dq), std::move(dk), std::move(dv), std::move(dmask)};
}

}  // namespace

void register_attention_kernels(torch::Library& meta) {
  const std::string prefix = "_scaled_dot_product_";
  const auto add = [&](const char* name, auto kernel) {
    add_if_missing(meta, (prefix + name).c_str(), kernel);
  };
  add("flash_attention_for_cpu", TORCH_FN(flash_cpu));
  add("flash_attention_for_cpu_backward", TORCH_FN(flash_cpu_backward));
  add("flash_attention", TORCH_FN(flash_cuda));
  add("flash_attention_backward", TORCH_FN(flash_cuda_backward));
  add("efficient_attention", TORCH_FN(efficient_cuda));
  add("efficient_attention_backward", TORCH_FN(efficient_cuda_backward));
}

}  // namespace plimsoll::engine::dry
