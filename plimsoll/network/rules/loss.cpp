#include "plimsoll/network/rules/loss.hpp"

#include <algorithm>

#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network::rules {
namespace {

// The sorted indices and where each came from, while the gradient is summed.
struct SortedIndices {
  Tensor indices, positions;
};

SortedIndices sort_indices(Autograd& a, const Tensor& ids) {
  const Dims count{ids.elements()};
  SortedIndices sorted;
  sorted.indices = a.scratch(count, ids.dtype());
  sorted.positions = a.scratch(count, ids.dtype());
  a.scratch(count, ids.dtype());  // 0, 1, 2 ..: sorted along
  return sorted;
}

// Runs of equal indices are cut into pieces of at most kPiece rows; each piece gets a sum of its own.
void sum_runs(Autograd& a, const Tensor& ids, const Dims& table, DType dtype) {
  constexpr std::int64_t kPiece = 10;
  const std::int64_t count = ids.elements();
  const std::int64_t runs = std::min(count, table[0]);
  const std::int64_t pieces = checked_add(count / kPiece, runs);
  const Tensor run_begins = a.scratch({count}, ids.dtype());
  const Tensor run_count = a.scratch({}, DType::kInt64);
  const Tensor pieces_per_run = a.scratch({runs}, ids.dtype());
  const Tensor first_pieces = a.scratch({runs}, ids.dtype());
  const Tensor piece_count = a.scratch({}, DType::kInt64);
  const Tensor piece_begins = a.scratch({pieces}, ids.dtype());
  a.scratch({pieces, table[1]}, accumulation_dtype(dtype));
}

// A dense gradient of the whole table.
void embedding_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor ids = a.unpack(node, 0);
  const Dims& table = node.input(0).shape;
  const bool copies = !in[0].contiguous();
  Tensor copy;
  if (copies && a.facts.embedding_copies_first) copy = a.scratch(in[0].shape(), in[0].dtype());
  const bool sorts =
      a.facts.embedding_sort_above > 0 && ids.elements() > a.facts.embedding_sort_above;
  SortedIndices sorted;
  if (sorts) sorted = sort_indices(a, ids);
  out[0] = a.empty(table, in[0].dtype());
  if (sorts) sum_runs(a, ids, table, in[0].dtype());
  if (copies && !a.facts.embedding_copies_first) a.scratch(in[0].shape(), in[0].dtype());
}

void log_softmax_backward(Autograd& a, Node& node, Gradients& in, Gradients& out) {
  const Tensor result = a.unpack(node, 0);
  out[0] = a.empty(result.shape(), result.dtype());
  const Tensor copy = contiguous_copy(a, in[0]);
}

void nll_loss_backward(Autograd& a, Node& node, Gradients&, Gradients& out) {
  const Tensor x = a.unpack(node, 0);
  const Tensor target = a.unpack(node, 1);
  const Tensor total_weight = a.unpack(node, 2);
  out[0] = a.empty(x.shape(), x.dtype());
}

Tensor log_softmax(Autograd& a, const Tensor& x) {
  const Ref<Node> node = a.record("LogSoftmax", log_softmax_backward, {&x});
  Tensor out = a.empty(x.shape(), x.dtype());
  const Tensor copy = contiguous_copy(a, x);
  if (node) a.save_output(*node, 0, out);
  return a.attach(node, out);
}

Tensor nll_loss(Autograd& a, const Tensor& x, const Tensor& target) {
  const Ref<Node> node = a.record("NllLoss", nll_loss_backward, {&x});
  if (node) {
    a.save_input(*node, 0, x);
    a.save_input(*node, 1, target);
  }
  Tensor out = a.empty({}, x.dtype());
  const Tensor total_weight = a.empty({}, x.dtype());
  if (node) a.save_output(*node, 2, total_weight);
  return a.attach(node, out);
}

}  // namespace

Tensor embedding(Autograd& a, const Tensor& ids, const Tensor& weight) {
  const Ref<Node> node = a.record("Embedding", embedding_backward, {&weight});
  if (node) a.save_input(*node, 0, ids);
  Dims shape = ids.shape();
  shape.push_back(weight.size(1));
  Tensor out = a.empty(shape, weight.dtype());
  return a.attach(node, out);
}

Tensor cross_entropy(Autograd& a, const Tensor& x, const Tensor& target) {
  return nll_loss(a, log_softmax(a, x), target);
}

}  // namespace plimsoll::network::rules
