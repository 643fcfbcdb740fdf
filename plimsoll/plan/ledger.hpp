// The ledger: what autograd saved during forward, under the four counting conventions.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
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
  // Of both last lines: bytes in host memory, not on the device (states of random generators).
  std::int64_t host_bytes = 0;
};

// Parameters, gathered ones too, and buffers: saved by reference, alive whether saved or not.
bool is_model_state(timeline::Tag tag);

// Counts saved tensors one by one; the only place that knows the conventions.
class LedgerCounter {
 public:
  // `storage` tells storages apart; 0 for a tensor without one. `tag` is the storage's; `on_host`:
  // it does not lie on the device.
  void add(std::int64_t bytes, std::int64_t storage_bytes, std::uint64_t storage, timeline::Tag tag,
           bool on_host = false);
  const Ledger& ledger() const { return ledger_; }

 private:
  Ledger ledger_;
  std::unordered_set<std::uint64_t> seen_;
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
