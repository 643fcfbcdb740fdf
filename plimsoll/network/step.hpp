// The order of a training step and of a pass of inference, written once for the planner and for the
// engine.
//
// A Backend has, besides what Execution asks for:
//   void begin_phase(timeline::PhaseKey); void end_phase();
//   void zero_grad();                      // .grad = none for all parameters
//   void backward(const Tensor& loss, bool last_micro_batch);
//   void optimizer_step();
//   void finish_backward();                // what a sharded backward pass leaves to reduce
// and may have
//   std::int32_t repeats(std::int32_t m);  // so many micro-batches behind m are m again and need not run
#pragma once

#include "plimsoll/network/execute.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::network {

struct StepShape {
  std::int32_t accumulate = 1;  // micro-batches per step
  bool hold_logits = false;     // the caller keeps the logits until the step's end
  bool reduces = false;         // gradients are summed over ranks: phase "reduce" after backward
};

template <class Backend>
class TrainingStep {
 public:
  using Tensor = typename Backend::Tensor;
  using Values = std::vector<Tensor>;

  TrainingStep(const Network& network, const StepShape& shape, Backend& backend, Values& values)
      : network_(network),
        shape_(shape),
        backend_(backend),
        values_(values),
        execution_(network, backend, values) {}

  // One step: zero_grad, then forward, loss and backward per micro-batch, then the optimizer. The
  // caller drops logits and loss between phases, as a training loop does.
  void run(std::int32_t step) {
    phase(timeline::Phase::kZeroGrad, step, 0, [&] { backend_.zero_grad(); });
    for (std::int32_t m = 0; m < shape_.accumulate; ++m) {
      micro_batch(step, m);
      if (m + 1 < shape_.accumulate) drop_results();
      if constexpr (requires { backend_.repeats(m); }) m += backend_.repeats(m);
    }
    phase(timeline::Phase::kOptimizer, step, 0, [&] { backend_.optimizer_step(); });
    drop_results();
  }

 private:
  template <class Body>
  void phase(timeline::Phase phase, std::int32_t step, std::int32_t micro_batch, Body body) {
    backend_.begin_phase({phase, step, micro_batch});
    body();
    backend_.end_phase();
  }

  void micro_batch(std::int32_t step, std::int32_t m) {
    phase(timeline::Phase::kForward, step, m, [&] { execution_.run(0, network_.loss_begin); });
    phase(timeline::Phase::kLoss, step, m, [&] {
      execution_.run(network_.loss_begin, network_.operations.size());
      execution_.drop_kept();
    });
    if (!shape_.hold_logits) values_[network_.logits] = Tensor();
    phase(timeline::Phase::kBackward, step, m,
          [&] { backend_.backward(values_[network_.loss], m + 1 == shape_.accumulate); });
    if (!shape_.reduces) return;
    phase(timeline::Phase::kReduce, step, m, [&] { backend_.finish_backward(); });
  }

  void drop_results() {
    values_[network_.logits] = Tensor();
    values_[network_.loss] = Tensor();
  }

  const Network& network_;
  const StepShape shape_;
  Backend& backend_;
  Values& values_;
  Execution<Backend> execution_;
};

// A pass of inference: forward alone, without gradients. Besides what Execution asks for the backend has
// begin_phase and end_phase.
template <class Backend>
class InferencePass {
 public:
  using Values = std::vector<typename Backend::Tensor>;

  InferencePass(const Network& network, Backend& backend, Values& values)
      : network_(network),
        backend_(backend),
        values_(values),
        execution_(network, backend, values) {}

  // The caller reads the logits with `use` after the pass and drops them before the next one.
  template <class Use>
  void run(std::int32_t step, Use use) {
    backend_.begin_phase({timeline::Phase::kForward, step, 0});
    execution_.run(0, network_.operations.size());
    execution_.drop_kept();
    backend_.end_phase();
    use(values_[network_.logits]);
    values_[network_.logits] = typename Backend::Tensor();
  }

 private:
  const Network& network_;
  Backend& backend_;
  Values& values_;
  Execution<Backend> execution_;
};

}  // namespace plimsoll::network
