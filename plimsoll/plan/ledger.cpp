#include "plimsoll/plan/ledger.hpp"

#include <algorithm>
#include <set>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {
namespace {

using network::SavedRecord;
using timeline::Tag;

bool is_model_state(const SavedRecord& r) {
  return r.tag == Tag::kParameters || r.tag == Tag::kBuffers || r.tag == Tag::kGathered;
}

void add(LedgerLine& line, std::int64_t bytes) {
  line.bytes = checked_add(line.bytes, bytes);
  ++line.count;
}

}  // namespace

Ledger count_ledger(const std::vector<SavedRecord>& records) {
  Ledger ledger;
  std::set<timeline::BlockId> seen;
  for (const SavedRecord& r : records) {
    add(ledger.as_saved, r.bytes);
    if (is_model_state(r)) continue;
    add(ledger.without_parameters, r.bytes);
    if (r.block == 0 || !seen.insert(r.block).second) continue;
    add(ledger.distinct, r.storage_bytes);
    if (r.tag != Tag::kInputs) add(ledger.distinct_hf, r.storage_bytes);
  }
  return ledger;
}

std::vector<ShapeFamily> shape_families(const std::vector<SavedRecord>& records) {
  std::vector<ShapeFamily> families;
  for (const SavedRecord& r : records) {
    auto found = std::find_if(families.begin(), families.end(), [&](const ShapeFamily& f) {
      return f.shape == r.shape && f.dtype == r.dtype && f.parameters == is_model_state(r);
    });
    if (found == families.end()) {
      families.push_back({r.shape, r.dtype, 0, 0, "", is_model_state(r)});
      found = families.end() - 1;
    }
    found->bytes = checked_add(found->bytes, r.bytes);
    ++found->count;
    if (found->saved_by.find(r.node) == std::string::npos) {
      if (!found->saved_by.empty()) found->saved_by += ", ";
      found->saved_by += r.node;
    }
  }
  std::stable_sort(families.begin(), families.end(),
                   [](const ShapeFamily& a, const ShapeFamily& b) { return a.bytes > b.bytes; });
  return families;
}

}  // namespace plimsoll::plan
