// The tensors behind "20 copies per layer": what one layer keeps for backward, tensor by tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

struct LayerTensor {
  std::string saved_by;  // the first of autograd's nodes that saved it: "Mm", "Checkpoint"
  network::Dims shape;
  network::DType dtype = network::DType::kFloat32;
  std::int64_t bytes = 0;  // of its storage
};

// Storages that one layer keeps, each once, parameters and inputs left out, in the order in which
// they were saved. The layer is the second one, whose input is another layer's output; a layer's
// input counts as its own. Not for image networks. `job` has passed validate().
std::vector<LayerTensor> layer_tensors(const network::NetworkSpec& spec, const Job& job);

// Their bytes in units of B T D e.
double layer_copies(const std::vector<LayerTensor>& tensors, const network::NetworkSpec& spec,
                    const Job& job);

}  // namespace plimsoll::plan
