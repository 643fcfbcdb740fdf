#include "plimsoll/network/autograd/autograd.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll::network {
namespace {

constexpr std::uint64_t kAccumulatorSequence = std::numeric_limits<std::uint64_t>::max();
// Bytes of the CPU random generator's state, as at::Generator::get_state returns it.
constexpr std::int64_t kRandomStateBytes = 5056;

}  // namespace

void retain(TensorImpl* tensor) { ++tensor->uses; }
void drop(TensorImpl* tensor) {
  if (--tensor->uses == 0) tensor->owner->destroy(tensor);
}

void retain(Node* node) { ++node->uses; }
// Graphs are long chains: nodes are destroyed from a list, not by recursion.
void drop(Node* node) {
  if (--node->uses > 0) return;
  node->owner->doomed_.push_back(node);
  node->owner->destroy_nodes();
}

void retain(Frame* frame) { ++frame->uses; }
void drop(Frame* frame) {
  if (--frame->uses == 0) frame->owner->frame_pool_.recycle(frame);
}

Autograd::~Autograd() = default;

void Autograd::destroy_nodes() {
  if (destroying_) return;
  destroying_ = true;
  while (!doomed_.empty()) {
    Node* node = doomed_.back();
    doomed_.pop_back();
    if (node->variable != nullptr) node->variable->accumulator = nullptr;
    nodes_.recycle(node);
  }
  destroying_ = false;
}

void Autograd::destroy(TensorImpl* tensor) {
  Storage* storage = tensor->storage;
  tensors_.recycle(tensor);
  if (--storage->tensors > 0) return;
  if (storage->block != 0) sink_.release(storage->block, storage->bytes, storage->tag, operation);
  storages_.recycle(storage);
}

TensorImpl* Autograd::make_tensor(const Dims& shape, const Dims& strides, DType dtype,
                                  Storage* storage) {
  TensorImpl* tensor = tensors_.make();
  tensor->owner = this;
  tensor->storage = storage;
  tensor->shape = shape;
  tensor->strides = strides;
  tensor->dtype = dtype;
  ++storage->tensors;
  return tensor;
}

Tensor Autograd::empty_strided(const Dims& shape, const Dims& strides, DType dtype,
                               timeline::Tag block_tag) {
  const std::int64_t bytes = checked_mul(element_count(shape), size_of(dtype));
  Storage* storage = storages_.make();
  storage->bytes = bytes;
  storage->tag = block_tag;
  if (bytes > 0) {
    storage->block = next_block_++;
    sink_.allocate(storage->block, bytes, block_tag, operation);
  }
  return Tensor(make_tensor(shape, strides, dtype, storage));
}

Tensor Autograd::user_tensor(const Dims& shape, DType dtype, timeline::Tag block_tag, bool leaf) {
  Tensor t = empty_strided(shape, contiguous_strides(shape), dtype, block_tag);
  t.impl()->leaf = leaf;
  return t;
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
  if (storage.tag == to || storage.block == 0) return;
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
  Ref<Node> node(nodes_.make());
  node->owner = this;
  node->sequence = next_sequence_++;
  node->operation = operation;
  node->name = name;
  node->formula = formula;
  for (const Tensor* t : inputs) node->edges.push_back(*t ? edge_to(*t) : Edge{});
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
  Ref<Node> node(nodes_.make());
  node->owner = this;
  node->sequence = kAccumulatorSequence;
  node->operation = operation;
  node->name = "AccumulateGrad";
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
  Saved& saved = node.saved.at(slot);
  node.saved_count = std::max(node.saved_count, static_cast<std::uint8_t>(slot + 1));
  const bool packing = !frames_.empty() && !frames_.back().capture;
  if (packing) {
    saved.frame = Ref<Frame>(frames_.back().frame);
    saved.index = saved.frame->packed++;
    return;
  }
  if (!frames_.empty()) {  // a rerun: the frame keeps the tensor, this graph dies at once
    frames_.back().frame->kept.push_back(plain_view(t, t.shape(), t.strides()));
    return;
  }
  if (ledger != nullptr) record_save(t, node.name);
  saved.tensor = output ? plain_view(t, t.shape(), t.strides()) : t;
}

void Autograd::record_save(const Tensor& t, const char* node) {
  const Storage& s = t.storage();
  ledger->push_back({t.shape(), t.dtype(), t.bytes(), s.bytes, s.block, s.tag, operation, node});
}

Tensor Autograd::unpack(Node& node, std::size_t slot) {
  Saved& saved = node.saved[slot];
  if (!saved.frame) return saved.tensor;
  Frame& frame = *saved.frame;
  if (!frame.recomputed) rerun(frame);
  return std::exchange(frame.kept.at(saved.index), Tensor());
}

Tensor Autograd::random_state() { return empty({kRandomStateBytes}, DType::kUInt8); }

Ref<Frame> Autograd::open_frame(std::function<Tensor(const Tensor&)> body, const Tensor& input,
                                bool keep_random_state) {
  Ref<Frame> frame(frame_pool_.make());
  frame->owner = this;
  frame->input = input;
  frame->body = std::move(body);
  if (keep_random_state) frame->random_state = random_state();
  if (ledger != nullptr && frames_.empty()) {
    record_save(input, "Checkpoint");
    if (keep_random_state) record_save(frame->random_state, "Checkpoint");
  }
  frames_.push_back({frame.get(), false});
  return frame;
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
    frame.body(input);
  }
  frames_.pop_back();
  check(frame.kept.size() == frame.packed, "a rerun saved another number of tensors");
  grad_mode = outer_mode;
  operation = outer_operation;
  recompute_flops += std::exchange(flops, outer_flops);
}

}  // namespace plimsoll::network
