#include "plimsoll/plan/ledger.hpp"

#include <algorithm>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {
namespace {

using network::SavedRecord;
using timeline::Tag;

void add_to(LedgerLine& line, std::int64_t bytes) {
  line.bytes = checked_add(line.bytes, bytes);
  ++line.count;
}

}  // namespace

bool is_model_state(Tag tag) {
  return tag == Tag::kParameters || tag == Tag::kBuffers || tag == Tag::kGathered;
}

void LedgerCounter::add(std::int64_t bytes, std::int64_t storage_bytes, std::uint64_t storage,
                        Tag tag, bool on_host) {
  add_to(ledger_.as_saved, bytes);
  if (is_model_state(tag)) return;
  add_to(ledger_.without_parameters, bytes);
  if (storage == 0 || !seen_.insert(storage).second) return;
  add_to(ledger_.distinct, storage_bytes);
  if (on_host) ledger_.host_bytes = checked_add(ledger_.host_bytes, storage_bytes);
  if (tag != Tag::kInputs) add_to(ledger_.distinct_hf, storage_bytes);
}

Ledger count_ledger(const std::vector<SavedRecord>& records) {
  LedgerCounter counter;
  for (const SavedRecord& r : records) {
    counter.add(r.bytes, r.storage_bytes, r.block, r.tag, r.on_host);
  }
  return counter.ledger();
}

std::vector<ShapeFamily> shape_families(const std::vector<SavedRecord>& records) {
  std::vector<ShapeFamily> families;
  for (const SavedRecord& r : records) {
    auto found = std::find_if(families.begin(), families.end(), [&](const ShapeFamily& f) {
      return f.shape == r.shape && f.dtype == r.dtype && f.parameters == is_model_state(r.tag);
    });
    if (found == families.end()) {
      families.push_back({r.shape, r.dtype, 0, 0, "", is_model_state(r.tag)});
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
