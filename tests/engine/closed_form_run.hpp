// A training run whose weights and tokens are closed forms, as the recorded PyTorch runs used them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::tests {

class ClosedFormRun {
 public:
  // `config` is a case's "config" of truth/reference_losses.json.
  explicit ClosedFormRun(const nlohmann::json& config);
  ~ClosedFormRun();

  // One step on the next tokens; the mean loss.
  double step();
  // Of the step that was just made.
  double gradient_norm() const;
  // By the recorded runs' names ("blocks.0.attn.wq.weight").
  at::Tensor parameter(const std::string& reference_name) const;
  const network::Network& network() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::tests
