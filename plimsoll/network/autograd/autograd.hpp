// A torch-free model of libtorch's autograd engine: which tensors are allocated, which are kept and
// when each storage is released during one training step, to the byte.
//
// Design: rules (plimsoll/network/rules) call this class as eager code calls libtorch. Lifetimes are
// those of C++ objects, so a rule's scopes say when its temporaries die. The engine's own rules (order
// of nodes, in-place or out-of-place accumulation, stealing of gradients, validation) are in
// backward.cpp; each was compared event by event with libtorch 2.13 on the CPU.
// Non-goals: values, devices, hooks of user code, retain_graph, double backward.
// Re-entrant: one Autograd per run, no global state. Not for use by two threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "plimsoll/network/autograd/node.hpp"
#include "plimsoll/network/library_facts.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::network {

// One tensor that autograd saved during forward.
struct SavedRecord {
  Dims shape;
  DType dtype = DType::kFloat32;
  std::int64_t bytes = 0;          // elements * item size
  std::int64_t storage_bytes = 0;  // of the whole storage
  timeline::BlockId block = 0;
  timeline::Tag tag = timeline::Tag::kActivations;  // of the storage, when saved
  timeline::OperationId operation = 0;
  const char* node = "";
  bool on_host = false;  // outside the memory that the events are about
};

// Floating-point operations by kind; attention by the three conventions.
struct FlopCount {
  std::int64_t matmul = 0;           // products of activations with weights
  std::int64_t attention_full = 0;   // the whole S x S square
  std::int64_t attention_exact = 0;  // only pairs that a causal mask keeps
  std::int64_t convolution = 0;

  FlopCount& operator+=(const FlopCount& other) {
    matmul = checked_add(matmul, other.matmul);
    attention_full = checked_add(attention_full, other.attention_full);
    attention_exact = checked_add(attention_exact, other.attention_exact);
    convolution = checked_add(convolution, other.convolution);
    return *this;
  }
  std::int64_t total_full() const {
    return checked_add(checked_add(matmul, convolution), attention_full);
  }
  std::int64_t total_half() const {
    return checked_add(checked_add(matmul, convolution), attention_full / 2);
  }
  std::int64_t total_exact() const {
    return checked_add(checked_add(matmul, convolution), attention_exact);
  }
};

// Memory of the model's objects. A second walk in the memory of the first asks the system for none.
struct AutogradMemory {
  Pool<TensorImpl> tensors;
  Pool<Storage> storages;
  Pool<Node> nodes;
  Pool<Frame> frames;
  std::vector<Node*> unfollowed;  // by count_dependencies; empty between its calls
};

class Autograd {
 public:
  // `memory` may be used by one Autograd after the other, never by two at once; null: its own.
  Autograd(const LibraryFacts& library_facts, timeline::Sink& event_sink,
           AutogradMemory* memory = nullptr)
      : facts(library_facts),
        sink_(event_sink),
        memory_(memory == nullptr ? own_memory_ : *memory) {}
  Autograd(const Autograd&) = delete;
  Autograd& operator=(const Autograd&) = delete;
  ~Autograd();

  const LibraryFacts facts;

  // --- state that the driver of a step sets
  timeline::OperationId operation = 0;              // label of the next events
  timeline::Tag tag = timeline::Tag::kActivations;  // of the next allocations
  bool grad_mode = true;
  std::vector<SavedRecord>* ledger = nullptr;  // when set, every save is appended
  FlopCount flops;
  FlopCount recompute_flops;  // of reruns; not in `flops`
  // By operation id: how many operations of a larger network the one of this id stands for. FLOPs count
  // that often. Empty: one each.
  std::span<const std::int64_t> weights;
  // Called after a leaf's gradient is complete in this backward pass.
  std::function<void(TensorImpl& leaf)> on_leaf_gradient;
  // Called with Node::watch before a watched node runs: where a hook on its output would be.
  std::function<void(std::int32_t watch)> on_watched_node;

  std::int64_t weight() const { return weights.empty() ? 1 : weights[operation]; }
  // FLOPs of the operation that runs.
  void count(std::int64_t FlopCount::*kind, std::int64_t number) {
    flops.*kind = checked_add(flops.*kind, checked_mul(weight(), number));
  }

  // --- tensors
  Tensor empty(const Dims& shape, DType dtype) {
    return empty_strided(shape, contiguous_strides(shape), dtype, tag);
  }
  Tensor empty_strided(const Dims& shape, const Dims& strides, DType dtype, timeline::Tag tag);
  // A block of scratch, tagged as workspace.
  Tensor scratch(const Dims& shape, DType dtype) {
    return empty_strided(shape, contiguous_strides(shape), dtype, timeline::Tag::kWorkspace);
  }
  // Scratch whose size is only assumed: a tag of its own, so that plans can say how much.
  Tensor assumed_scratch(const Dims& shape, DType dtype) {
    return empty_strided(shape, contiguous_strides(shape), dtype, timeline::Tag::kAssumedWorkspace);
  }
  // A tensor outside the memory that is counted: no events, but saved tensors list it.
  Tensor host_tensor(const Dims& shape, DType dtype);
  // A tensor of the user's: parameter (requires a gradient when `leaf`), buffer or input.
  Tensor user_tensor(const Dims& shape, DType dtype, timeline::Tag tag, bool leaf);
  // The same inside the storage of `holder`, as one of several tensors over it.
  Tensor user_tensor_in(const Tensor& holder, const Dims& shape, DType dtype, bool leaf);
  // Frees the memory below tensors that live on, and gives them memory again.
  void free_storage(Storage& storage);
  void refill_storage(Storage& storage, timeline::Tag tag);
  Tensor plain_view(const Tensor& t, const Dims& shape, const Dims& strides);
  Tensor tracked_view(const Tensor& t, const Dims& shape, const Dims& strides);
  void retag(Storage& storage, timeline::Tag tag);

  // --- graph
  bool records(std::initializer_list<const Tensor*> inputs) const;
  // A node for an operation on `inputs` (null handles allowed), or null when none needs a gradient.
  Ref<Node> record(const char* name, Formula formula, std::initializer_list<const Tensor*> inputs);
  Ref<Node> record(const char* name, Formula formula, std::span<const Tensor> inputs);
  void save_input(Node& node, std::size_t slot, const Tensor& t) { save(node, slot, t, false); }
  void save_output(Node& node, std::size_t slot, const Tensor& t) { save(node, slot, t, true); }
  Tensor unpack(Node& node, std::size_t slot);
  // Makes `out` the next output of `node` (null: a result that needs no gradient).
  Tensor& attach(const Ref<Node>& node, Tensor& out);

  // --- checkpointing
  // A further argument of the frame that opens next, which saved-tensor hooks see.
  void record_argument(const Tensor& t) {
    if (ledger != nullptr) record_save(t, "Checkpoint");
  }
  Ref<Frame> open_frame(std::function<Tensor(const Tensor&)> body, const Tensor& input,
                        bool keep_random_state, bool stops_early = false);
  void close_frame() { frames_.pop_back(); }
  // The frame keeps a result that its rerun will not compute again.
  void keep_result(Frame& frame, const Tensor& result);
  // Inside a frame with policy "matmuls": the innermost frame, forward or rerun; null outside.
  Frame* current_frame() const { return frames_.empty() ? nullptr : frames_.back().frame; }
  bool recomputing() const { return !frames_.empty() && frames_.back().capture; }

  // Runs the backward pass of a scalar. The caller keeps `loss`.
  void backward(const Tensor& loss);

  // Tensors alive; 0 after a run in which nothing leaked.
  std::size_t tensors_alive() const { return memory_.tensors.alive(); }

 private:
  struct RerunStopped {};  // unwinds a rerun that has nothing left to save

  friend void destroy(TensorImpl*);
  friend void drop(Node*);
  friend void drop(Frame*);

  // The innermost open frame: forward packs into it, a rerun captures for it.
  struct OpenFrame {
    Frame* frame;
    bool capture;
  };
  struct Ready {
    std::uint64_t sequence;
    std::uint64_t arrival;
    Ref<Node> node;
    bool operator<(const Ready& other) const {
      return sequence != other.sequence ? sequence < other.sequence : arrival > other.arrival;
    }
  };

  TensorImpl* make_tensor(const Dims& shape, const Dims& strides, DType dtype, Storage* storage);
  void save(Node& node, std::size_t slot, const Tensor& t, bool output);
  void save_in_frame(Node& node, std::size_t slot, const Tensor& t, bool first);
  void record_save(const Tensor& t, const char* node);
  Edge edge_to(const Tensor& t);
  Ref<Node> accumulator_of(TensorImpl& leaf);
  Tensor random_state();
  void rerun(Frame& frame);

  void count_dependencies(Node& root);
  void run_ready_nodes();
  void call(Node& node, Gradients& in, Gradients& out);
  void validate(const Node& node, Gradients& out);
  void deliver(Node& node, Gradients& out);
  void add_to_buffer(Tensor& slot, Tensor& gradient);
  void accumulate(TensorImpl& leaf, Gradients& in);

  void destroy(TensorImpl* tensor);
  void destroy(Node* node);

  timeline::Sink& sink_;
  AutogradMemory own_memory_;
  AutogradMemory& memory_;
  Node* doomed_ = nullptr;  // what destroy() has yet to destroy, the last one first
  bool destroying_ = false;
  std::vector<OpenFrame> frames_;
  std::vector<Ready> ready_;
  timeline::BlockId next_block_ = 1;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t next_arrival_ = 0;
};

}  // namespace plimsoll::network
