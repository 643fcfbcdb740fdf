// What optimizers allocate: states, counters and transients, by implementation.
#pragma once

#include <vector>

#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

// Whether step counters are in memory that the walk's events are not about.
bool counters_on_host(const Job& job);

class OptimizerWalk {
 public:
  // `first_operation` is the operation id of parameter 0's optimizer events.
  OptimizerWalk(network::Autograd& autograd, const Job& job,
                const std::vector<network::Tensor>& parameters,
                timeline::OperationId first_operation);

  // States that exist before the first step.
  void allocate_states();

  // One step over all parameters that have a gradient.
  void step();

 private:
  struct State {
    network::Tensor first;
    network::Tensor second;
    network::Tensor counter;                      // the step as a 4-byte tensor
    network::Tensor first_scales, second_scales;  // of 8-bit moments, by block
    bool made = false;
  };
  void make_state(std::size_t i);
  void make_factors(std::size_t i);
  void make_8bit_state(std::size_t i);
  network::Tensor make_counter();
  bool has_gradient(std::size_t i) const;
  void scale_gradients();
  void adamw_loop(std::size_t i);
  void sgd_loop(std::size_t i);
  void adafactor_loop(std::size_t i);
  void update(std::size_t i);
  bool makes_states_first() const;
  void list_step();
  void count_step(std::size_t i);

  network::Autograd& a_;
  const Job& job_;
  const Recipe recipe_;
  const std::vector<network::Tensor>& parameters_;
  const timeline::OperationId first_operation_;
  std::vector<State> states_;
  network::Tensor denominator_;  // of the last parameter that Python's AdamW loop updated
  // Variables of Adafactor's loop, which keep their values until the next parameter's replace them.
  network::Tensor row_mean_, column_mean_, squared_, estimate_;
  network::Tensor tables_[2];  // what 8-bit moments stand for
};

}  // namespace plimsoll::plan
