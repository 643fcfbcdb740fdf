// Nodes of the backward graph, saved tensors and checkpoint frames.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/network/autograd/tensor.hpp"

namespace plimsoll::network {

// A fixed number of slots for T, used from the front.
template <class T, std::size_t N>
class Few {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }
  T& push_back(T item) {
    check(size_ < N, "more inputs or outputs than a node has slots");
    items_[size_] = std::move(item);
    return items_[size_++];
  }
  void resize(std::size_t n) {
    check(n <= N, "more inputs or outputs than a node has slots");
    while (size_ < n) items_[size_++] = T{};
    while (size_ > n) items_[--size_] = T{};
  }
  void clear() { resize(0); }

 private:
  std::array<T, N> items_{};
  std::uint8_t size_ = 0;
};

inline constexpr std::size_t kMaxEdges = 4;
inline constexpr std::size_t kMaxSaved = 7;
using Gradients = Few<Tensor, kMaxEdges>;

// A checkpointed region between forward and backward: keeps its input, reruns its body at the first
// unpack. `body` holds the tensors that the region reads from outside besides parameters.
struct Frame {
  Autograd* owner = nullptr;
  std::uint32_t uses = 0;
  std::uint32_t packed = 0;  // saved tensors counted in forward
  bool recomputed = false;
  Tensor input;
  Tensor random_state;  // the CPU generator's state, when kept
  std::function<Tensor(const Tensor&)> body;
  std::vector<Tensor> kept;        // captured by the rerun, each dropped at its unpack
  std::vector<Tensor> outputs;     // policy "matmuls": results that are not recomputed
  std::size_t next_output = 0;
};
void retain(Frame* frame);
void drop(Frame* frame);

// One saved tensor: itself, or a number in a checkpoint frame.
struct Saved {
  Tensor tensor;
  Ref<Frame> frame;
  std::uint32_t index = 0;

  bool present() const { return tensor || frame; }
  void reset() {
    tensor.reset();
    frame.reset();
  }
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
  Autograd* owner = nullptr;
  std::uint32_t uses = 0;
  std::uint64_t sequence = 0;  // taken before the operation runs; accumulators: the largest
  timeline::OperationId operation = 0;
  const char* name = "";
  Formula formula = nullptr;   // null: an accumulator of a leaf's gradient
  TensorImpl* variable = nullptr;  // accumulators: the leaf (which outlives the graph)
  Few<Edge, kMaxEdges> edges;
  OutputMeta output;               // all outputs of a node are alike (equal parts of a split)
  std::uint8_t output_count = 0;
  std::uint8_t saved_count = 0;    // slots in use
  std::array<Saved, kMaxSaved> saved;

  // What formulas need besides saved tensors.
  Dims dims;
  std::int64_t number = 0;
  DType dtype = DType::kFloat32;

  // Scratch of a backward pass.
  std::uint32_t pending = 0;
  bool visited = false;
  Gradients buffer;

  bool wants(std::size_t input) const { return static_cast<bool>(edges[input].node); }
  void release_saved() {
    for (std::size_t i = 0; i < saved_count; ++i) saved[i].reset();
  }
};

}  // namespace plimsoll::network
