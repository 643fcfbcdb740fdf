#include "plimsoll/network/rules/attention.hpp"

#include <algorithm>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/network/rules/elementwise.hpp"
#include "plimsoll/network/rules/kernels.hpp"
#include "plimsoll/network/rules/products.hpp"
#include "plimsoll/network/rules/softmax.hpp"
#include "plimsoll/network/rules/views.hpp"

namespace plimsoll::network::rules {
namespace {

bool is_half(DType dtype) { return size_of(dtype) == 2; }

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
  a.count(&FlopCount::attention_full, checked_mul(per_pair, pairs));
  a.count(&FlopCount::attention_exact, checked_mul(per_pair, square.seen));
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

struct Operands {
  Tensor q, k, v, output, logsumexp, mask;
};

Operands unpack_operands(Autograd& a, Node& node) {
  Operands of;
  of.k = a.unpack(node, kKey);
  of.q = a.unpack(node, kQuery);
  of.v = a.unpack(node, kValue);
  of.logsumexp = a.unpack(node, kLogsumexp);
  of.output = a.unpack(node, kOutput);
  of.mask = a.unpack(node, kMask);
  a.unpack(node, kSeed);
  a.unpack(node, kOffset);
  return of;
}

void make_gradients(Autograd& a, const Node& node, const Operands& of, Gradients& out) {
  count_attention(a, of.q.shape(), node.square, 5);
  out[0] = gradient_like(a, of.q);
  out[1] = gradient_like(a, of.k);
  out[2] = gradient_like(a, of.v);
}

// The kernels read the gradient in (B, T, heads, H) order: null, or a copy for the call.
Tensor dense_copy(Autograd& a, const Tensor& gradient) {
  const Tensor g = transposed(a, gradient, 1, 2);
  return g.contiguous() ? Tensor() : a.scratch(g.shape(), g.dtype());
}

// libtorch's CPU kernel: tiles per thread.
void flash_tiles_backward(Autograd& a, const Operands& of, const Tensor& gradient) {
  const Tensor copy = dense_copy(a, gradient);
  const Tiles tiles = flash_tiles(of.q.size(2), of.k.size(2));
  const DType wide = accumulation_dtype(of.q.dtype());
  const Tensor scratch = a.scratch({a.facts.threads, 2 * tiles.queries * tiles.keys}, wide);
  Tensor reduced;
  if (is_half(of.q.dtype())) {
    reduced = a.scratch({a.facts.threads, 2 * tiles.queries * tiles.keys}, of.q.dtype());
  }
  a.scratch({tiles.queries}, wide);
}

// CUDA's kernel: row sums and dq in fp32 over whole tiles; grouped key heads get gradients of their
// own first, which are then summed.
void flash_accumulators(Autograd& a, const Operands& of) {
  const Tensor& q = of.q;
  const std::int64_t heads = q.size(1);
  const std::int64_t rows = rounded_up(q.size(2), a.facts.flash_backward_rows);
  const std::int64_t width = rounded_up(q.size(3), q.size(3) <= 128 ? 32 : 64);
  const Tensor row_sums = a.scratch({q.size(0), heads, rows}, DType::kFloat32);
  const Tensor dq = a.scratch({q.size(0), rows, heads, width}, DType::kFloat32);
  if (of.k.size(1) == heads) return;
  const Dims expanded_shape{q.size(0), of.k.size(2), heads, q.size(3)};
  const Tensor dk = a.scratch(expanded_shape, q.dtype());
  const Tensor dv = a.scratch(expanded_shape, q.dtype());
}

void flash_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Operands of = unpack_operands(a, node);
  if (a.facts.flash_backward_rows == 0) {
    make_gradients(a, node, of, out);
    if (a.facts.flash_scratch) flash_tiles_backward(a, of, in[0]);
    return;
  }
  const Tensor copy = dense_copy(a, in[0]);
  make_gradients(a, node, of, out);
  flash_accumulators(a, of);
}

// Sums of gradient times output per row. In fp32 they are taken by tensors, the product first.
Tensor efficient_row_sums(Autograd& a, const Tensor& q) {
  const Dims sums_shape{q.size(0), q.size(1), q.size(2)};
  if (is_half(q.dtype())) return a.scratch(sums_shape, DType::kFloat32);
  const Tensor product = a.scratch(swapped(q.shape(), 1, 2), DType::kFloat32);
  const Tensor sums = a.scratch(sums_shape, DType::kFloat32);
  const bool already_in_order = q.size(1) == 1 || q.size(2) == 1;
  return already_in_order ? sums : a.scratch(sums_shape, DType::kFloat32);
}

// dq in fp32 tiles, each with a header of 16 bytes.
Tensor efficient_tiles(Autograd& a, const Tensor& q) {
  constexpr std::int64_t kHeader = 16;
  const std::int64_t side = a.facts.efficient_tile;
  const std::int64_t tile = checked_mul(checked_mul(side, side), 4) + kHeader;
  const std::int64_t rows = (q.size(2) + side - 1) / side;
  const std::int64_t columns = (q.size(3) + side - 1) / side;
  return a.assumed_scratch({q.size(0), q.size(1), rows, columns, tile}, DType::kUInt8);
}

void efficient_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Operands of = unpack_operands(a, node);
  const Tensor copy = dense_copy(a, in[0]);
  make_gradients(a, node, of, out);
  const Tensor row_sums = efficient_row_sums(a, of.q);
  efficient_tiles(a, of.q);
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

struct Seeds {
  Tensor seed, offset;
};

Seeds make_seeds(Autograd& a, const SeedTensors& of) {
  if (of.words == 0) return {};
  const Dims shape = of.words == 1 ? Dims{} : Dims{of.words};
  if (!of.on_device) return {a.host_tensor(shape, DType::kInt64), a.host_tensor({}, DType::kInt64)};
  return {a.empty(shape, DType::kInt64), a.empty({}, DType::kInt64)};
}

// Both fused kernels save q, k, v, output, logsumexp, a mask and what their generator's state needs.
Tensor fused(Autograd& a, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
             bool efficient, const AttentionSquare& square) {
  const Ref<Node> node = efficient
                             ? a.record("EfficientAttention", efficient_backward, {&q, &k, &v})
                             : a.record("FlashAttention", flash_backward, {&q, &k, &v});
  if (node) {
    a.save_input(*node, kQuery, q);
    a.save_input(*node, kKey, k);
    a.save_input(*node, kValue, v);
    if (mask) a.save_input(*node, kMask, mask);
    node->square = square;
  }
  Tensor out = empty_like(a, q);
  // The memory-efficient kernel computes no logsumexp for a pass that nobody goes back through.
  const std::int64_t padded = rounded_up(q.size(2), a.facts.efficient_row_multiple);
  const std::int64_t rows = !efficient ? q.size(2) : node ? padded : 0;
  const Tensor lse = a.empty({q.size(0), q.size(1), rows}, accumulation_dtype(q.dtype()));
  const Seeds seeds = make_seeds(a, efficient ? a.facts.efficient_seed : a.facts.flash_seed);
  Few<Tensor, 2> scratch;
  if (a.facts.flash_scratch) flash_scratch_forward(a, q, k, scratch);
  count_attention(a, q.shape(), square, 2);
  if (!node) return out;
  a.save_output(*node, kOutput, out);
  a.save_output(*node, kLogsumexp, lse);
  if (seeds.seed) {
    a.save_output(*node, kSeed, seeds.seed);
    a.save_output(*node, kOffset, seeds.offset);
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

bool kernel_exists(const LibraryFacts& facts, AttentionKernel kernel, const AttentionUse& use) {
  if (kernel == AttentionKernel::kMath) return true;
  if (use.dropout && !facts.attention_dropout) return false;
  if (kernel == AttentionKernel::kFlash) {
    return facts.flash_exists && (facts.flash_reads_wide || is_half(use.dtype)) &&
           (facts.flash_reads_masks || !use.masked);
  }
  if (use.dtype == DType::kBFloat16 && !facts.efficient_reads_bf16) return false;
  return facts.efficient_exists && use.dtype != DType::kFloat64 &&
         (facts.efficient_grouped || !use.grouped);
}

AttentionKernel chosen_kernel(const LibraryFacts& facts, const AttentionUse& use) {
  for (const AttentionKernel kernel : {AttentionKernel::kFlash, AttentionKernel::kEfficient}) {
    if (kernel_exists(facts, kernel, use)) return kernel;
  }
  return AttentionKernel::kMath;
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
  const AttentionUse use{q.dtype(), call.dropout, grouped, static_cast<bool>(mask)};
  const AttentionKernel kernel =
      kernel_exists(a.facts, call.kernel, use) ? call.kernel : chosen_kernel(a.facts, use);
  const bool flashable = readable_by_flash(q) && readable_by_flash(k) && readable_by_flash(v);
  const bool choice = mask && mask.dtype() == DType::kBool;
  const Tensor bias = choice ? bias_of_choice(a, mask, q.dtype()) : mask;
  if (kernel == AttentionKernel::kMath || !flashable) {
    return math(a, q, k, v, bias, call, square);
  }
  return fused(a, q, k, v, bias, kernel == AttentionKernel::kEfficient, square);
}

}  // namespace plimsoll::network::rules
