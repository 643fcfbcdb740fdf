#include "plimsoll/study/family_columns.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace plimsoll::study {
namespace {

// The same family at twice the batch: the batch dimension, or rows made of it, doubled.
bool doubles_into(const network::Dims& shape, const network::Dims& doubled) {
  if (shape.size() != doubled.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (doubled[i] == shape[i]) continue;
    network::Dims grown = shape;
    grown[i] *= 2;
    return grown == doubled;
  }
  return false;
}

// The family that `family` becomes at twice the batch; itself when it does not grow.
const plan::ShapeFamily& grown(const plan::ShapeFamily& family,
                               const std::vector<plan::ShapeFamily>& doubled) {
  if (family.parameters) return family;
  const auto found =
      std::find_if(doubled.rbegin(), doubled.rend(), [&](const plan::ShapeFamily& other) {
        return other.dtype == family.dtype && !other.parameters &&
               doubles_into(family.shape, other.shape);
      });
  return found == doubled.rend() ? family : *found;
}

// What only the run saved: nothing is dropped because the calculation does not know it.
void add_unforeseen(const FamilyColumn& column, report::FamiliesReport& report) {
  if (!column.measured) return;
  std::set<FamilyKey> foreseen;
  for (const plan::ShapeFamily& family : column.calculated) foreseen.insert(key_of(family));
  for (const auto& [key, bytes] : *column.measured) {
    if (foreseen.contains(key)) continue;
    report::FamilyRow row;
    std::tie(row.shape, row.dtype, std::ignore) = key;
    row.measured = bytes;
    report.rows.push_back(std::move(row));
  }
}

std::optional<std::int64_t> measured_bytes(const FamilyColumn& column,
                                           const plan::ShapeFamily& family) {
  if (!column.measured) return std::nullopt;
  const auto found = column.measured->find(key_of(family));
  return found == column.measured->end() ? 0 : found->second;
}

}  // namespace

FamilyKey key_of(const plan::ShapeFamily& family) {
  return {to_text(family.shape), std::string(network::name(family.dtype)), family.parameters};
}

report::FamiliesReport compare_families(const FamilyColumn& once, const FamilyColumn& twice) {
  report::FamiliesReport report;
  for (const plan::ShapeFamily& family : once.calculated) {
    const plan::ShapeFamily& later = grown(family, twice.calculated);
    report::FamilyRow row;
    row.shape = to_text(family.shape);
    row.dtype = network::name(family.dtype);
    row.saved_by = family.saved_by;
    row.calculated = family.bytes;
    row.calculated_doubled = later.bytes;
    row.measured = measured_bytes(once, family);
    row.measured_doubled = measured_bytes(twice, later);
    if (family.parameters) report.parameter_bytes += family.bytes;
    report.rows.push_back(std::move(row));
  }
  add_unforeseen(once, report);
  return report;
}

}  // namespace plimsoll::study
