// The backward pass: the engine's rules of order, accumulation and validation.
#include <algorithm>
#include <utility>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/network/rules/kernels.hpp"

namespace plimsoll::network {

void Autograd::backward(const Tensor& loss) {
  std::vector<OpenFrame> outer_frames = std::exchange(frames_, {});
  const bool outer_mode = std::exchange(grad_mode, false);
  Tensor one = empty(loss.shape(), loss.dtype());  // held by the caller until the end
  if (!loss.impl()->node) {
    // A loss that is a leaf or a constant has no graph; libtorch refuses the latter.
    if (loss.impl()->leaf) {
      Gradients in;
      in.push_back(one);
      accumulate(*loss.impl(), in);
    }
  } else {
    Node& root = *loss.impl()->node;
    count_dependencies(root);
    root.buffer.resize(root.output_count);
    root.buffer[loss.impl()->output] = one;
    ready_.push_back({root.sequence, next_arrival_++, Ref<Node>(&root)});
    run_ready_nodes();
  }
  frames_ = std::move(outer_frames);
  grad_mode = outer_mode;
}

// Fills Node::pending with the number of edges that will deliver to each reachable node.
void Autograd::count_dependencies(Node& root) {
  std::vector<Node*>& unfollowed = memory_.unfollowed;
  unfollowed.assign(1, &root);
  root.visited = true;
  while (!unfollowed.empty()) {
    Node* node = unfollowed.back();
    unfollowed.pop_back();
    for (const Edge& edge : node->edges) {
      Node* next = edge.node.get();
      if (next == nullptr) continue;
      ++next->pending;
      if (std::exchange(next->visited, true)) continue;
      unfollowed.push_back(next);
    }
  }
}

// The ready node with the highest sequence number runs first, accumulators before all others.
// Outputs, incoming gradients and saved tensors of a node coexist: they die in this order.
void Autograd::run_ready_nodes() {
  // After an exception, too, no node may outlive the leaf that it accumulates into.
  struct Emptied {
    std::vector<Ready>& ready;
    ~Emptied() { ready.clear(); }
  };
  const Emptied emptied{ready_};
  const timeline::OperationId outer_operation = operation;
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    const Ref<Node> held = std::move(ready_.back().node);
    ready_.pop_back();
    Node& node = *held;
    node.visited = false;  // an accumulator serves the next backward pass, too
    operation = node.operation;
    if (node.watch >= 0 && on_watched_node) on_watched_node(node.watch);
    Gradients out;
    call(node, node.buffer, out);
    node.buffer.clear();
    node.release_saved();
    deliver(node, out);
  }
  operation = outer_operation;
}

void Autograd::call(Node& node, Gradients& in, Gradients& out) {
  if (node.variable != nullptr) {
    TensorImpl& leaf = *node.variable;
    accumulate(leaf, in);
    if (on_leaf_gradient) on_leaf_gradient(leaf);
    return;
  }
  out.resize(node.edges.size());
  const bool any = std::any_of(in.begin(), in.end(), [](const Tensor& g) { return bool(g); });
  if (!any) return;
  node.formula(*this, node, in, out);
  validate(node, out);
}

// Gradients get the shape and dtype of what they belong to, after all of them exist.
void Autograd::validate(const Node& node, Gradients& out) {
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    const Edge& edge = node.edges[i];
    if (!edge.node || !out[i]) {
      out[i].reset();
      continue;
    }
    const OutputMeta& meta = edge.node->output;
    if (!(out[i].shape() == meta.shape)) out[i] = rules::sum_to(*this, out[i], meta.shape);
    if (out[i].dtype() != meta.dtype) out[i] = rules::cast(*this, out[i], meta.dtype);
  }
}

// Hands the gradients on. The node lets go of its edges, so that a graph that was run needs no memory
// (libtorch's lives as long as the loss; it holds no bytes either).
void Autograd::deliver(Node& node, Gradients& out) {
  for (std::size_t i = 0; i < node.edges.size(); ++i) {
    Edge edge = std::exchange(node.edges[i], Edge());
    Node* next = edge.node.get();
    if (next == nullptr) continue;
    if (next->buffer.empty()) next->buffer.resize(next->output_count);
    if (i < out.size() && out[i]) add_to_buffer(next->buffer[edge.output], out[i]);
    if (--next->pending == 0) {
      ready_.push_back({next->sequence, next_arrival_++, std::move(edge.node)});
      std::push_heap(ready_.begin(), ready_.end());
    }
  }
}

// The first gradient moves in. A further one is added in place iff nobody else can see the old one;
// it lives on until its node has delivered all its outputs.
void Autograd::add_to_buffer(Tensor& slot, Tensor& gradient) {
  if (!slot) {
    slot = std::exchange(gradient, Tensor());
    return;
  }
  const bool alone = slot.only_use() && slot.storage().tensors == 1;
  if (alone && slot.dense()) return;
  slot = rules::pointwise(*this, {&slot, &gradient});
}

// [Note: stealing] An undefined .grad takes the incoming gradient over when nobody else uses it and
// its layout is the variable's; otherwise it is cloned. A defined .grad is added to in place.
void Autograd::accumulate(TensorImpl& leaf, Gradients& in) {
  Tensor gradient = std::exchange(in[0], Tensor());
  if (!gradient || leaf.grad) return;
  const bool dense = is_dense(leaf.shape, leaf.strides);
  bool fits = dense ? true : gradient.contiguous();
  for (std::size_t i = 0; dense && i < leaf.shape.size(); ++i) {
    fits = fits && (gradient.size(i) == 1 || gradient.strides()[i] == leaf.strides[i]);
  }
  Tensor kept;
  if (fits && gradient.only_use()) {
    kept = plain_view(gradient, gradient.shape(), gradient.strides());
    retag(gradient.storage(), timeline::Tag::kGradients);
  } else {
    kept =
        empty_strided(gradient.shape(), dense ? leaf.strides : contiguous_strides(gradient.shape()),
                      gradient.dtype(), timeline::Tag::kGradients);
  }
  leaf.grad = Ref<TensorImpl>(kept.impl());
}

}  // namespace plimsoll::network
