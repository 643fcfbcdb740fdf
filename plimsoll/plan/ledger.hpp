// The ledger: what autograd saved during forward, under the four counting conventions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::plan {

struct LedgerLine {
  std::int64_t bytes = 0;
  std::int64_t count = 0;  // tensors or storages
};

// [Note: counting conventions] Four answers to "how much did forward save", never mixed:
//   as_saved            every save counted, parameters and their views included (tensors)
//   without_parameters  the same minus parameters and buffers (tensors)
//   distinct            whole storages once, minus parameters and buffers: what is really alive
//   distinct_hf         distinct minus the model's inputs
struct Ledger {
  LedgerLine as_saved;
  LedgerLine without_parameters;
  LedgerLine distinct;
  LedgerLine distinct_hf;
};
Ledger count_ledger(const std::vector<network::SavedRecord>& records);

// Saved bytes of all tensors of one shape and dtype; `operations` names who saved them.
struct ShapeFamily {
  network::Dims shape;
  network::DType dtype = network::DType::kFloat32;
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  std::string saved_by;     // "Mm, Gelu"
  bool parameters = false;  // all of them are parameters or views of them
};

// Largest first.
std::vector<ShapeFamily> shape_families(const std::vector<network::SavedRecord>& records);

}  // namespace plimsoll::plan
