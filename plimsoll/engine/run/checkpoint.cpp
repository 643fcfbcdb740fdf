#include "plimsoll/engine/run/checkpoint.hpp"

#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plimsoll/engine/library/saved_tensor_hooks.hpp"

namespace plimsoll::engine {
namespace {

at::Tensor random_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(state);
}

// What a region leaves behind between forward and backward. Owned by the graph's hooks.
class Frame {
 public:
  Frame(RegionBody body, const at::Tensor& input, bool keep_random_state, bool stops_early)
      : body_(std::move(body)),
        input_(input.detach(), "checkpoint"),
        wants_gradient_(input.requires_grad()),
        stops_early_(stops_early) {
    if (keep_random_state) random_state_ = random_state();
  }

  std::size_t pack() { return packed_++; }

  // Results of linear layers: kept by the first run, handed out by the rerun in the same order.
  bool recomputing() const { return recomputed_; }
  void keep_result(const at::Tensor& result) { results_.push_back(result.variable_data()); }
  at::Tensor take_result() { return std::exchange(results_.at(next_result_++), at::Tensor()); }

  at::Tensor unpack(std::size_t index) {
    if (!recomputed_) rerun();
    KeptTensor kept = std::exchange(kept_.at(index), KeptTensor());
    at::Tensor tensor = kept.get();
    if (!tensor.defined()) {
      throw std::runtime_error(
          "[checkpoint] a second backward pass through a checkpointed region: "
          "expected one. Hint: retain_graph is not supported here");
    }
    return tensor;
  }

 private:
  class Capture;

  void rerun();

  RegionBody body_;
  KeptTensor input_;
  bool wants_gradient_;
  bool stops_early_;
  at::Tensor random_state_;
  std::size_t packed_ = 0;
  bool recomputed_ = false;
  std::vector<KeptTensor> kept_;
  std::vector<at::Tensor> results_;
  std::size_t next_result_ = 0;
};

// The innermost region that this thread runs or reruns.
thread_local Frame* current_frame = nullptr;

class CurrentFrameScope {
 public:
  explicit CurrentFrameScope(Frame* frame) : previous_(std::exchange(current_frame, frame)) {}
  ~CurrentFrameScope() { current_frame = previous_; }
  CurrentFrameScope(const CurrentFrameScope&) = delete;
  CurrentFrameScope& operator=(const CurrentFrameScope&) = delete;

 private:
  Frame* previous_;
};

// In forward: a saved tensor becomes its number in the frame.
class CountingHook final : public torch::autograd::SavedVariableHooks {
 public:
  explicit CountingHook(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  void call_pack_hook(const at::Tensor&) override { index_ = frame_->pack(); }
  at::Tensor call_unpack_hook() override { return frame_->unpack(index_); }

 private:
  std::shared_ptr<Frame> frame_;
  std::size_t index_ = 0;
};

class Counting final : public SavedTensorHandler {
 public:
  explicit Counting(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    return std::make_unique<CountingHook>(frame_);
  }

 private:
  std::shared_ptr<Frame> frame_;
};

// Unwinds a rerun that has nothing left to save.
class RerunStopped final : public std::exception {};

// In the rerun: a saved tensor goes to the frame; the rerun's own graph keeps nothing.
class CapturingHook final : public torch::autograd::SavedVariableHooks {
 public:
  CapturingHook(std::vector<KeptTensor>& kept, std::size_t last) : kept_(kept), last_(last) {}
  void call_pack_hook(const at::Tensor& tensor) override {
    kept_.emplace_back(tensor.detach(), "checkpoint");
    if (kept_.size() == last_) throw RerunStopped();
  }
  at::Tensor call_unpack_hook() override {
    throw std::logic_error("[checkpoint] the graph of a rerun was used");
  }

 private:
  std::vector<KeptTensor>& kept_;
  const std::size_t last_;  // stops after this many; 0: never
};

class Frame::Capture final : public SavedTensorHandler {
 public:
  Capture(std::vector<KeptTensor>& kept, std::size_t last) : kept_(kept), last_(last) {}
  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    return std::make_unique<CapturingHook>(kept_, last_);
  }

 private:
  std::vector<KeptTensor>& kept_;
  const std::size_t last_;
};

// Restores the generator when a rerun ends, also by an exception.
class RandomStateScope {
 public:
  explicit RandomStateScope(const at::Tensor& state) {
    if (!state.defined()) return;
    before_ = random_state();
    set_random_state(state);
  }
  ~RandomStateScope() {
    if (before_.defined()) set_random_state(before_);
  }
  RandomStateScope(const RandomStateScope&) = delete;
  RandomStateScope& operator=(const RandomStateScope&) = delete;

 private:
  at::Tensor before_;
};

void Frame::rerun() {
  recomputed_ = true;
  const at::AutoGradMode grad_mode(true);
  Capture capture(kept_, stops_early_ ? packed_ : 0);
  const SavedTensorScope scope(&capture);
  const CurrentFrameScope current(this);
  const at::Tensor input = input_.get().detach().requires_grad_(wants_gradient_);
  const RandomStateScope random(random_state_);
  try {
    body_(input);
  } catch (const RerunStopped&) {
    // Everything that backward asks for is there.
  }
  if (kept_.size() != packed_) {
    throw std::runtime_error("[checkpoint] the rerun saved " + std::to_string(kept_.size()) +
                             " tensors, expected " + std::to_string(packed_) +
                             ". Hint: the region must do the same work each time");
  }
}

// Computes or takes the result; backward as two products and a sum.
class KeptLinear : public torch::autograd::Function<KeptLinear> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    // Without any gradient the layer saves nothing: both runs compute it.
    const bool bias_learns = bias && bias->requires_grad();
    const bool learns = x.requires_grad() || weight.requires_grad() || bias_learns;
    if (learns && current_frame->recomputing()) return current_frame->take_result();
    at::Tensor result = at::linear(x, weight, bias);
    if (learns && !current_frame->recomputing()) current_frame->keep_result(result);
    return result;
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const Tensors saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor g = gradients[0].reshape({-1, weight.size(0)});
    Tensors result(3);
    if (context->needs_input_grad(0)) result[0] = at::_unsafe_view(g.mm(weight), x.sizes());
    if (context->needs_input_grad(1)) {
      result[1] = g.t().mm(x.reshape({-1, weight.size(1)}));
    }
    const bool has_bias = context->saved_data["has_bias"].toBool();
    if (has_bias && context->needs_input_grad(2)) result[2] = g.sum(0);
    return result;
  }
};

}  // namespace

at::Tensor checkpoint(RegionBody body, at::Tensor input, bool keep_random_state, bool stops_early) {
  const auto frame = std::make_shared<Frame>(body, input, keep_random_state, stops_early);
  Counting counting(frame);
  const SavedTensorScope scope(&counting);
  const CurrentFrameScope current(frame.get());
  return body(input);
}

at::Tensor kept_linear(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias) {
  if (current_frame == nullptr) {
    throw std::logic_error("[checkpoint] kept_linear outside a checkpointed region");
  }
  return KeptLinear::apply(x, weight, bias);
}

}  // namespace plimsoll::engine
