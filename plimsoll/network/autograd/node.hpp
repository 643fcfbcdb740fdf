// Nodes of the backward graph, saved tensors and checkpoint frames.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "plimsoll/network/autograd/tensor.hpp"

namespace plimsoll::network {

// A list of T whose first N objects need no heap memory; only those in use are constructed.
template <class T, std::size_t N>
class Few {
 public:
  Few() {}
  Few(Few&& other) noexcept {
    if (other.on_heap()) {
      items_ = std::exchange(other.items_, other.own_);
      size_ = std::exchange(other.size_, 0U);
      capacity_ = std::exchange(other.capacity_, N);
      return;
    }
    for (T& item : other) new (&items_[size_++]) T(std::move(item));
    other.clear();
  }
  Few& operator=(Few&&) = delete;
  ~Few() {
    clear();
    if (on_heap()) operator delete (items_, std::align_val_t{alignof(T)});
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& push_back(T item) {
    if (size_ == capacity_) grow(size_ + 1U);
    return *new (&items_[size_++]) T(std::move(item));
  }
  void resize(std::size_t n) {
    if (n > capacity_) grow(n);
    while (size_ < n) new (&items_[size_++]) T();
    while (size_ > n) items_[--size_].~T();
  }
  void clear() { resize(0); }

 private:
  bool on_heap() const { return capacity_ > N; }
  void grow(std::size_t n) {
    const std::size_t wanted = std::max<std::size_t>(n, 2U * capacity_);
    T* more = static_cast<T*>(operator new (wanted * sizeof(T), std::align_val_t{alignof(T)}));
    for (std::size_t i = 0; i < size_; ++i) {
      new (&more[i]) T(std::move(items_[i]));
      items_[i].~T();
    }
    if (on_heap()) operator delete (items_, std::align_val_t{alignof(T)});
    items_ = more;
    capacity_ = static_cast<std::uint32_t>(wanted);
  }

  union {
    T own_[N];
  };
  T* items_ = own_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
};

// What attention computes per head: queries times keys, of which its mask leaves `seen` pairs. The
// counting conventions of FLOPs need it whichever kernel computes the whole square. All 0: no attention.
struct AttentionSquare {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t seen = 0;
};

inline constexpr std::size_t kFewEdges = 4;  // most nodes have no more
inline constexpr std::size_t kMaxSaved = 8;
using Gradients = Few<Tensor, kFewEdges>;

struct Frame;
void retain(Frame* frame);
void drop(Frame* frame);

// A checkpointed region between forward and backward: keeps its input, reruns its body at the first
// unpack. `body` holds the tensors that the region reads from outside besides parameters.
struct Frame {
  Autograd* owner = nullptr;
  std::uint32_t uses = 0;
  std::uint32_t packed = 0;        // tensors that forward saved
  std::uint32_t rerun_packed = 0;  // and that the rerun saved
  std::uint32_t packed_slots = 0;  // that nodes took in forward (Node::first_slot)
  std::uint32_t kept_slots = 0;    // and in the rerun
  bool recomputed = false;
  bool stops_early = false;  // the rerun ends when it has saved as many tensors as forward did
  Tensor input;
  Tensor random_state;  // the CPU generator's state, when kept
  std::function<Tensor(const Tensor&)> body;
  std::vector<Tensor> kept;     // by slot: captured by the rerun, each dropped at its unpack
  std::vector<Tensor> outputs;  // policy "matmuls": results that are not recomputed
  std::size_t next_output = 0;
};

struct Edge {
  Ref<Node> node;  // null: no gradient wanted
  std::uint32_t output = 0;
};

struct OutputMeta {
  Dims shape;
  DType dtype = DType::kFloat32;
};

// Computes a node's gradients: `in` by output of the node, `out` by input. Missing ones are null.
using Formula = void (*)(Autograd& engine, Node& node, Gradients& in, Gradients& out);

struct Node {
  Node(Autograd* engine, std::uint64_t order, timeline::OperationId label, const char* node_name)
      : owner(engine), sequence(order), name(node_name), operation(label) {}

  Autograd* owner;
  std::uint64_t sequence;  // taken before the operation runs; accumulators: the largest
  const char* name;
  Formula formula = nullptr;       // null: an accumulator of a leaf's gradient
  TensorImpl* variable = nullptr;  // accumulators: the leaf (which outlives the graph)
  std::uint32_t uses = 0;
  timeline::OperationId operation;
  std::int32_t watch = -1;  // >= 0: reported when the gradients of its outputs are there
  Few<Edge, kFewEdges> edges;
  OutputMeta output;  // all outputs of a node are alike (equal parts of a split)
  std::uint32_t output_count = 0;

  // Saved tensors are here, or after a forward pass under checkpointing in `frame`: slot i is then
  // kept[first_slot + i] of the rerun. Bit i of saved_slots: was slot i saved at all.
  std::uint8_t saved_slots = 0;
  std::uint32_t first_slot = 0;
  Few<Tensor, kMaxSaved> saved;
  Tensor number;  // of x * number: kept by the node itself, also under checkpointing
  Ref<Frame> frame;

  // What formulas need besides saved tensors and the inputs' shapes.
  std::uint8_t dim = 0;
  std::uint8_t dim2 = 0;
  std::uint8_t layouts = 0;  // of a product's operands
  AttentionSquare square;    // of a product inside attention, and of attention itself

  Node* next_doomed = nullptr;  // in the list of those that are about to be destroyed

  // Scratch of a backward pass.
  bool visited = false;
  std::uint32_t pending = 0;
  Gradients buffer;

  bool wants(std::size_t input) const { return static_cast<bool>(edges[input].node); }
  // Shape and dtype of an input that wants a gradient.
  const OutputMeta& input(std::size_t i) const { return edges[i].node->output; }
  void release_saved() {
    for (Tensor& tensor : saved) tensor.reset();
    number.reset();
    frame.reset();
  }
};

inline void retain(Node* node) { ++node->uses; }
inline void retain(Frame* frame) { ++frame->uses; }

}  // namespace plimsoll::network
