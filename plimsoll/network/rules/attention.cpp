#include "plimsoll/network/rules/attention.hpp"

#include <algorithm>

#include "plimsoll/network/rules/elementwise.hpp"
#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/network/rules/products.hpp"
#include "plimsoll/network/rules/softmax.hpp"
#include "plimsoll/network/rules/views.hpp"

namespace plimsoll::network::rules {
namespace {

bool is_half(DType dtype) { return size_of(dtype) == 2; }

DType accumulation_dtype(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// Tiles of the CPU's flash kernel: query rows by length, at most 512 keys.
struct Tiles {
  std::int64_t queries;
  std::int64_t keys;
};
Tiles flash_tiles(std::int64_t query_length, std::int64_t key_length) {
  const std::int64_t rows = query_length >= 768 ? 256 : query_length >= 192 ? 64 : 32;
  return {std::min(rows, query_length), std::min<std::int64_t>(512, key_length)};
}

// FLOPs of `products` matrix products of the attention square, by convention.
void count_attention(Autograd& a, const Dims& q, const AttentionSquare& square,
                     std::int64_t products) {
  const std::int64_t heads = checked_mul(q[0], q[1]);
  const std::int64_t per_pair = checked_mul(checked_mul(2 * products, heads), q[3]);
  const std::int64_t pairs = checked_mul(square.queries, square.keys);
  a.flops.attention_full = checked_add(a.flops.attention_full, checked_mul(per_pair, pairs));
  a.flops.attention_exact =
      checked_add(a.flops.attention_exact, checked_mul(per_pair, square.seen));
}

// Slots of saved tensors; seed and offset only where the library keeps them.
constexpr std::size_t kQuery = 0;
constexpr std::size_t kKey = 1;
constexpr std::size_t kValue = 2;
constexpr std::size_t kOutput = 3;
constexpr std::size_t kLogsumexp = 4;
constexpr std::size_t kMask = 5;
constexpr std::size_t kSeed = 6;
constexpr std::size_t kOffset = 7;

// Gradients are dense in (B, T, heads, H) order whatever q's layout is.
Tensor gradient_like(Autograd& a, const Tensor& t) {
  const Tensor dense = a.empty(swapped(t.shape(), 1, 2), t.dtype());
  return a.plain_view(dense, t.shape(), swapped(dense.strides(), 1, 2));
}

void flash_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor k = a.unpack(node, kKey);
  const Tensor q = a.unpack(node, kQuery);
  const Tensor v = a.unpack(node, kValue);
  const Tensor lse = a.unpack(node, kLogsumexp);
  const Tensor o = a.unpack(node, kOutput);
  const Tensor mask = a.unpack(node, kMask);
  if (a.facts.attention_saves_seed) {
    a.unpack(node, kSeed);
    a.unpack(node, kOffset);
  }
  count_attention(a, q.shape(), node.square, 5);
  out[0] = gradient_like(a, q);
  out[1] = gradient_like(a, k);
  out[2] = gradient_like(a, v);
  if (!a.facts.flash_scratch) return;
  // The kernel reads the gradient in (B, T, heads, H) order.
  const Tensor g = transposed(a, in[0], 1, 2);
  Tensor copy;
  if (!g.contiguous()) copy = a.scratch(g.shape(), g.dtype());
  const Tiles tiles = flash_tiles(q.size(2), k.size(2));
  const DType wide = accumulation_dtype(q.dtype());
  const Tensor scratch = a.scratch({a.facts.threads, 2 * tiles.queries * tiles.keys}, wide);
  Tensor reduced;
  if (is_half(q.dtype())) {
    reduced = a.scratch({a.facts.threads, 2 * tiles.queries * tiles.keys}, q.dtype());
  }
  a.scratch({tiles.queries}, wide);
}

std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

void flash_scratch_forward(Autograd& a, const Tensor& q, const Tensor& k, Few<Tensor, 2>& held) {
  const Tiles tiles = flash_tiles(q.size(2), k.size(2));
  const std::int64_t row =
      tiles.queries * tiles.keys + 2 * tiles.queries + tiles.queries * q.size(3);
  held.push_back(a.scratch({a.facts.threads, row}, accumulation_dtype(q.dtype())));
  if (is_half(q.dtype())) {
    held.push_back(a.scratch({a.facts.threads, tiles.queries * tiles.keys}, q.dtype()));
  }
}

Tensor flash(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
             bool padded, const AttentionSquare& square) {
  const Ref<Node> node = a.record("FlashAttention", flash_backward, {&q, &k, &v});
  if (node) {
    a.save_input(*node, kQuery, q);
    a.save_input(*node, kKey, k);
    a.save_input(*node, kValue, v);
    if (mask) a.save_input(*node, kMask, mask);
    node->square = square;
  }
  Tensor out = empty_like(a, q);
  const std::int64_t rows =
      padded ? rounded_up(q.size(2), a.facts.efficient_row_multiple) : q.size(2);
  const Tensor lse = a.empty({q.size(0), q.size(1), rows}, accumulation_dtype(q.dtype()));
  Tensor seed;
  Tensor offset;
  if (a.facts.attention_saves_seed) {
    seed = a.empty({}, DType::kInt64);
    offset = a.empty({}, DType::kInt64);
  }
  Few<Tensor, 2> scratch;
  if (a.facts.flash_scratch) flash_scratch_forward(a, q, k, scratch);
  count_attention(a, q.shape(), square, 2);
  if (!node) return out;
  a.save_output(*node, kOutput, out);
  a.save_output(*node, kLogsumexp, lse);
  if (seed) {
    a.save_output(*node, kSeed, seed);
    a.save_output(*node, kOffset, offset);
  }
  return a.attach(node, out);
}

// --- math: products and a softmax

// repeat_interleave of grouped heads: unsqueeze, expand, copy, flatten.
Tensor repeat_heads(Autograd& a, const Tensor& x, std::int64_t times) {
  const std::int64_t batch = x.size(0);
  const std::int64_t heads = x.size(1);
  const Tensor wide = expand(a, unsqueeze(a, x, 2), {batch, heads, times, x.size(2), x.size(3)});
  return view(a, clone(a, wide), {batch, heads * times, x.size(2), x.size(3)});
}

// The causal mask: ones and their lower triangle as bool, then a float mask; q's scale is one more
// number. All but the float mask die at once.
Tensor causal_mask(Autograd& a, std::int64_t queries, std::int64_t keys, DType dtype) {
  Tensor ones = a.scratch({queries, keys}, DType::kBool);
  const Tensor triangle = a.scratch({queries, keys}, DType::kBool);
  ones.reset();
  const Tensor zero = a.scratch({}, dtype);
  const Tensor minus_infinity = a.scratch({}, dtype);
  return a.scratch({queries, keys}, dtype);
}

// _safe_softmax: rows without any key give 0, which costs two masks and a zero.
Tensor safe_softmax(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("SafeSoftmax", softmax_backward, {&x});
  Tensor out = empty_like(a, x);
  if (node) a.save_output(*node, 0, out);
  a.attach(node, out);
  const Tensor masked = a.scratch(x.shape(), DType::kBool);
  Dims rows = x.shape();
  rows[rows.size() - 1] = 1;
  const Tensor empty_rows = a.scratch(rows, DType::kBool);
  a.scratch({}, x.dtype());
  return out;
}

void mask_backward(Autograd&, Node&, Gradients& in, Gradients& out) { out[0] = in[0]; }

// scores += mask: in place, one node. A mask of another dtype is cast for the call.
void add_mask(Autograd& a, Tensor& scores, const Tensor& mask) {
  const Ref<Node> node = a.record("AddMask", mask_backward, {&scores});
  if (mask.dtype() != scores.dtype() && a.facts.cast_operands) {
    a.scratch(mask.shape(), scores.dtype());
  }
  a.attach(node, scores);
}

Tensor probabilities(Autograd& a, const Tensor& scaled_q, const Tensor& k, const Tensor& mask,
                     bool with_dropout, const AttentionSquare& square) {
  Tensor scores;
  {
    const Tensor scaled_k = mul_number(a, transpose(a, k, 2, 3));
    scores = matmul4(a, scaled_q, scaled_k, square);
  }
  if (mask) add_mask(a, scores, mask);
  scores = safe_softmax(a, scores);
  return with_dropout ? dropout(a, scores) : scores;
}

Tensor math(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v,
            const Tensor& given_mask, const AttentionCall& call, const AttentionSquare& square) {
  const DType dtype = q.dtype();
  const DType wide = is_half(dtype) ? DType::kFloat32 : dtype;
  const Tensor wide_q = to(a, q, wide);
  const Tensor wide_k = to(a, k, wide);
  const Tensor wide_v = to(a, v, wide);
  const Tensor scaled_q = mul_number(a, wide_q);
  const bool own_mask = call.causal && !given_mask;
  const Tensor mask = own_mask ? causal_mask(a, q.size(2), k.size(2), wide) : given_mask;
  const std::int64_t group = call.grouped ? q.size(1) / k.size(1) : 1;
  const Tensor all_k = group > 1 ? repeat_heads(a, wide_k, group) : wide_k;
  const Tensor all_v = group > 1 ? repeat_heads(a, wide_v, group) : wide_v;
  const Tensor weights = probabilities(a, scaled_q, all_k, mask, call.dropout, square);
  const Tensor second_result = to(a, weights, dtype);  // dropped by the caller
  return to(a, matmul4(a, weights, all_v, square), dtype);
}

}  // namespace

AttentionKernel chosen_kernel(const LibraryFacts& facts, DType dtype, bool dropout) {
  if (facts.backend == Backend::kCpu)
    return dropout ? AttentionKernel::kMath : AttentionKernel::kFlash;
  return is_half(dtype)             ? AttentionKernel::kFlash
         : dtype == DType::kFloat32 ? AttentionKernel::kEfficient
                                    : AttentionKernel::kMath;
}

namespace {

// Flash kernels read heads as contiguous vectors; the library falls back to math otherwise.
bool readable_by_flash(const Tensor& t) { return t.strides().back() == 1; }

// A bool mask becomes 0 and minus infinity; an expanded one is written out.
Tensor bias_of_choice(Autograd& a, const Tensor& mask, DType dtype) {
  const Tensor minus_infinity = a.scratch({}, dtype);
  const Tensor zero = a.scratch({}, dtype);
  return a.empty(mask.shape(), dtype);
}

// CUDA's flash kernel takes no mask: the memory-efficient one does, unless heads are grouped.
AttentionKernel kernel_with_mask(const Autograd& a, AttentionKernel kernel, bool grouped) {
  if (a.facts.backend == Backend::kCpu || kernel == AttentionKernel::kMath) return kernel;
  return grouped ? AttentionKernel::kMath : AttentionKernel::kEfficient;
}

// Keys that query i of `queries` sees, summed: i + 1 and the keys before the first query, at most
// `window`.
std::int64_t seen_pairs(std::int64_t queries, std::int64_t keys, std::int64_t window) {
  const std::int64_t before = keys - queries;
  if (window == 0 || window >= keys) {
    return checked_mul(queries, keys) - checked_mul(queries, queries - 1) / 2;
  }
  // The first `growing` queries see fewer than `window` keys.
  const std::int64_t growing = std::clamp<std::int64_t>(window - before - 1, 0, queries);
  const std::int64_t grown = checked_mul(growing, growing + 1) / 2 + checked_mul(growing, before);
  return checked_add(grown, checked_mul(queries - growing, window));
}

}  // namespace

AttentionSquare attention_square(std::int64_t queries, std::int64_t keys, bool causal,
                                 std::int64_t window) {
  const std::int64_t seen = causal ? seen_pairs(queries, keys, window) : checked_mul(queries, keys);
  return {queries, keys, seen};
}

Tensor attention(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 const AttentionCall& call) {
  const AttentionSquare square = attention_square(q.size(2), k.size(2), call.causal, call.window);
  const bool grouped = q.size(1) != k.size(1);
  const AttentionKernel kernel = mask ? kernel_with_mask(a, call.kernel, grouped) : call.kernel;
  const bool flashable = readable_by_flash(q) && readable_by_flash(k) && readable_by_flash(v);
  const bool choice = mask && mask.dtype() == DType::kBool;
  const Tensor bias = choice ? bias_of_choice(a, mask, q.dtype()) : mask;
  if (kernel == AttentionKernel::kMath || !flashable) {
    return math(a, q, k, v, bias, call, square);
  }
  return flash(a, q, k, v, bias, kernel == AttentionKernel::kEfficient, square);
}

}  // namespace plimsoll::network::rules
