// A training run whose weights and tokens are closed forms, as the recorded PyTorch runs used them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::tests {

// The recorded runs summed in the order of AVX2 kernels; that of AVX-512 moves a gradient norm of the 10M
// model in fp32 by 3.08e-6 after eight steps. Holds for the whole process, and only when it is called
// before libtorch has chosen its first kernel; what the user chose (ATEN_CPU_CAPABILITY) stays.
void use_kernels_of_the_record();

// How a run is shared among ranks: rank r has the r-th part of the rows of each step.
struct Sharing {
  comm::Communicator* world = nullptr;
  shard::Stage stage = shard::Stage::kParameters;
  int prefetch = 1;
};

class ClosedFormRun {
 public:
  // `config` is a case's "config" of truth/reference_losses.json. `sharing`: one rank of several.
  explicit ClosedFormRun(const nlohmann::json& config, const Sharing& sharing = {});
  ~ClosedFormRun();

  // One step on the next tokens; the mean loss over this rank's rows.
  double step();
  // Of the step that was just made, over all rows.
  double gradient_norm() const;
  // By the recorded runs' names ("blocks.0.attn.wq.weight"). Collective in a shared run.
  at::Tensor parameter(const std::string& reference_name) const;
  // The mean gradient over all rows of the step that was just made. Collective in a shared run.
  at::Tensor gradient(const std::string& reference_name) const;
  std::vector<std::string> parameter_names() const;
  const network::Network& network() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::tests
