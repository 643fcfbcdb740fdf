#include "plimsoll/network/autograd/autograd.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll::network {
namespace {

constexpr std::uint64_t kAccumulatorSequence = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void destroy(TensorImpl* tensor) { tensor->owner->destroy(tensor); }
void drop(Node* node) {
  if (--node->uses == 0) node->owner->destroy(node);
}
void drop(Frame* frame) {
  if (--frame->uses == 0) frame->owner->memory_.frames.recycle(frame);
}

Autograd::~Autograd() = default;

// Graphs are long chains: nodes are destroyed from a list, not by recursion. The nodes themselves
// are linked, since a destructor cannot ask for memory.
void Autograd::destroy(Node* node) {
  node->next_doomed = std::exchange(doomed_, node);
  if (std::exchange(destroying_, true)) return;
  while (doomed_ != nullptr) {
    Node* last = std::exchange(doomed_, doomed_->next_doomed);
    if (last->variable != nullptr) last->variable->accumulator = nullptr;
    memory_.nodes.recycle(last);
  }
  destroying_ = false;
}

void Autograd::destroy(TensorImpl* tensor) {
  Storage* storage = tensor->storage;
  memory_.tensors.recycle(tensor);
  if (--storage->tensors > 0) return;
  if (storage->block != 0 && storage->counted) {
    sink_.release(storage->block, storage->bytes, storage->tag, operation);
  }
  memory_.storages.recycle(storage);
}

TensorImpl* Autograd::make_tensor(const Dims& shape, const Dims& strides, DType dtype,
                                  Storage* storage) {
  ++storage->tensors;
  return memory_.tensors.make(this, storage, shape, strides, dtype);
}

Tensor Autograd::empty_strided(const Dims& shape, const Dims& strides, DType dtype,
                               timeline::Tag block_tag) {
  const std::int64_t bytes = checked_mul(element_count(shape), size_of(dtype));
  const timeline::BlockId block = bytes > 0 ? next_block_++ : 0;
  Storage* storage = memory_.storages.make(bytes, block, block_tag);
  if (bytes > 0) sink_.allocate(block, bytes, block_tag, operation);
  return Tensor(make_tensor(shape, strides, dtype, storage));
}

Tensor Autograd::host_tensor(const Dims& shape, DType dtype) {
  const std::int64_t bytes = checked_mul(element_count(shape), size_of(dtype));
  Storage* storage = memory_.storages.make(bytes, next_block_++, tag);
  storage->counted = false;
  return Tensor(make_tensor(shape, contiguous_strides(shape), dtype, storage));
}

Tensor Autograd::user_tensor(const Dims& shape, DType dtype, timeline::Tag block_tag, bool leaf) {
  Tensor t = empty_strided(shape, contiguous_strides(shape), dtype, block_tag);
  t.impl()->leaf = leaf;
  return t;
}

Tensor Autograd::user_tensor_in(const Tensor& holder, const Dims& shape, DType dtype, bool leaf) {
  Tensor t(make_tensor(shape, contiguous_strides(shape), dtype, &holder.storage()));
  t.impl()->leaf = leaf;
  return t;
}

void Autograd::free_storage(Storage& storage) {
  if (storage.block != 0) sink_.release(storage.block, storage.bytes, storage.tag, operation);
  storage.block = 0;
}

void Autograd::refill_storage(Storage& storage, timeline::Tag purpose) {
  check(storage.block == 0, "a storage is filled twice");
  storage.tag = purpose;
  if (storage.bytes == 0) return;
  storage.block = next_block_++;
  sink_.allocate(storage.block, storage.bytes, purpose, operation);
}

Tensor Autograd::plain_view(const Tensor& t, const Dims& shape, const Dims& strides) {
  return Tensor(make_tensor(shape, strides, t.dtype(), &t.storage()));
}

Tensor Autograd::tracked_view(const Tensor& t, const Dims& shape, const Dims& strides) {
  Tensor view = plain_view(t, shape, strides);
  view.impl()->base = t.impl()->base ? t.impl()->base : Ref<TensorImpl>(t.impl());
  return view;
}

void Autograd::retag(Storage& storage, timeline::Tag to) {
  if (storage.tag == to || storage.block == 0 || !storage.counted) return;
  sink_.retag(storage.block, storage.bytes, storage.tag, to);
  storage.tag = to;
}

bool Autograd::records(std::initializer_list<const Tensor*> inputs) const {
  if (!grad_mode) return false;
  for (const Tensor* t : inputs) {
    if (*t && t->needs_grad()) return true;
  }
  return false;
}

Ref<Node> Autograd::record(const char* name, Formula formula,
                           std::initializer_list<const Tensor*> inputs) {
  if (!records(inputs)) return {};
  Ref<Node> node(memory_.nodes.make(this, next_sequence_++, operation, name));
  node->formula = formula;
  for (const Tensor* t : inputs) node->edges.push_back(*t ? edge_to(*t) : Edge{});
  return node;
}

Ref<Node> Autograd::record(const char* name, Formula formula, std::span<const Tensor> inputs) {
  const bool any = std::any_of(inputs.begin(), inputs.end(),
                               [](const Tensor& t) { return t && t.needs_grad(); });
  if (!grad_mode || !any) return {};
  Ref<Node> node(memory_.nodes.make(this, next_sequence_++, operation, name));
  node->formula = formula;
  for (const Tensor& t : inputs) node->edges.push_back(t ? edge_to(t) : Edge{});
  return node;
}

Edge Autograd::edge_to(const Tensor& t) {
  TensorImpl& impl = *t.impl();
  if (impl.node) return {impl.node, impl.output};
  if (!impl.leaf) return {};
  return {accumulator_of(impl), 0};
}

// A leaf has one accumulator, shared by all its uses while the graph lives.
Ref<Node> Autograd::accumulator_of(TensorImpl& leaf) {
  if (leaf.accumulator != nullptr) return Ref<Node>(leaf.accumulator);
  Ref<Node> node(memory_.nodes.make(this, kAccumulatorSequence, operation, "AccumulateGrad"));
  node->variable = &leaf;
  node->output = {leaf.shape, leaf.dtype};
  node->output_count = 1;
  leaf.accumulator = node.get();
  return node;
}

Tensor& Autograd::attach(const Ref<Node>& node, Tensor& out) {
  if (!node) return out;
  out.impl()->node = node;
  out.impl()->output = node->output_count++;
  node->output = {out.shape(), out.dtype()};
  return out;
}

void Autograd::save(Node& node, std::size_t slot, const Tensor& t, bool output) {
  check(slot < kMaxSaved, "more saved tensors than a node has slots");
  const bool first = node.saved_slots == 0;
  node.saved_slots = static_cast<std::uint8_t>(node.saved_slots | (1U << slot));
  if (!frames_.empty()) return save_in_frame(node, slot, t, first);
  if (ledger != nullptr) record_save(t, node.name);
  if (node.saved.size() <= slot) node.saved.resize(slot + 1);
  node.saved[slot] = output ? plain_view(t, t.shape(), t.strides()) : t;
}

// Forward only counts, and takes slots for the node; a rerun meets the nodes in the same order and
// keeps their tensors in the frame, while its own graph dies at once.
void Autograd::save_in_frame(Node& node, std::size_t slot, const Tensor& t, bool first) {
  auto [frame, capture] = frames_.back();
  std::uint32_t& next_slot = capture ? frame->kept_slots : frame->packed_slots;
  if (first) {
    node.first_slot = next_slot;
    next_slot += kMaxSaved;
  }
  if (!capture) {
    ++frame->packed;
    if (first) node.frame = Ref<Frame>(frame);
    return;
  }
  frame->kept.resize(next_slot);
  frame->kept[node.first_slot + slot] = plain_view(t, t.shape(), t.strides());
  ++frame->rerun_packed;
  if (frame->stops_early && frame->rerun_packed == frame->packed) throw RerunStopped{};
}

void Autograd::record_save(const Tensor& t, const char* node) {
  const Storage& s = t.storage();
  ledger->push_back(
      {t.shape(), t.dtype(), t.bytes(), s.bytes, s.block, s.tag, operation, node, !s.counted});
}

Tensor Autograd::unpack(Node& node, std::size_t slot) {
  const unsigned saved = node.saved_slots;
  if ((saved >> slot & 1U) == 0) return {};
  if (!node.frame) return node.saved[slot];
  Frame& frame = *node.frame;
  if (!frame.recomputed) rerun(frame);
  return std::exchange(frame.kept.at(node.first_slot + slot), Tensor());
}

Tensor Autograd::random_state() { return empty({facts.random_state_bytes}, DType::kUInt8); }

Ref<Frame> Autograd::open_frame(std::function<Tensor(const Tensor&)> body, const Tensor& input,
                                bool keep_random_state, bool stops_early) {
  Ref<Frame> frame(memory_.frames.make());
  frame->stops_early = stops_early;
  frame->owner = this;
  frame->input = input;
  frame->body = std::move(body);
  if (keep_random_state && facts.random_state_bytes > 0) frame->random_state = random_state();
  if (ledger != nullptr && frames_.empty()) {
    record_save(input, "Checkpoint");
    if (frame->random_state) record_save(frame->random_state, "Checkpoint");
  }
  frames_.push_back({frame.get(), false});
  return frame;
}

void Autograd::keep_result(Frame& frame, const Tensor& result) {
  frame.outputs.push_back(plain_view(result, result.shape(), result.strides()));
  if (ledger != nullptr) record_save(result, "Checkpoint");
}

// Runs the region again on a detached input, before the allocations of the node that asked for a
// saved tensor and while its incoming gradients are alive. The rerun's own graph dies at once.
void Autograd::rerun(Frame& frame) {
  const bool outer_mode = std::exchange(grad_mode, true);
  const timeline::OperationId outer_operation = operation;
  const FlopCount outer_flops = std::exchange(flops, {});
  frame.recomputed = true;
  frames_.push_back({&frame, true});
  {
    Tensor input = plain_view(frame.input, frame.input.shape(), frame.input.strides());
    input.impl()->leaf = frame.input.needs_grad();
    Tensor current_random_state;
    if (frame.random_state) current_random_state = random_state();
    try {
      frame.body(input);
    } catch (const RerunStopped&) {
    }
  }
  frames_.pop_back();
  check(frame.rerun_packed == frame.packed, "a rerun saved another number of tensors");
  grad_mode = outer_mode;
  operation = outer_operation;
  recompute_flops += std::exchange(flops, outer_flops);
}

}  // namespace plimsoll::network
