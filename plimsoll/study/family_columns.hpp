// Families of saved tensors as columns: what is calculated beside what a run saved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/report/measure_reports.hpp"

namespace plimsoll::study {

// Shape, dtype, parameter or not: what names a family.
using FamilyKey = std::tuple<std::string, std::string, bool>;
using BytesByFamily = std::map<FamilyKey, std::int64_t>;

FamilyKey key_of(const plan::ShapeFamily& family);

// One batch.
struct FamilyColumn {
  std::vector<plan::ShapeFamily> calculated;
  std::optional<BytesByFamily> measured;  // none: there was no run
};

// One row per family of either side of `once`, the calculated ones first. `twice` is the same job at
// twice the batch: a family grows when it has one whose batch dimension, or rows made of it, is
// doubled. Fills in rows and parameter_bytes.
report::FamiliesReport compare_families(const FamilyColumn& once, const FamilyColumn& twice);

}  // namespace plimsoll::study
