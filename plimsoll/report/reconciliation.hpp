// Calculated, dry-run and measured figures side by side, with a named cause for every difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/json.hpp"
#include "plimsoll/report/section.hpp"

namespace plimsoll::report {

enum class Unit : std::uint8_t { kBytes, kCount };

struct ReconciliationRow {
  std::string line;  // "steady backward: peak", "A as_saved", ...
  std::int64_t calculated = 0;
  std::optional<std::int64_t> dry;       // none: the run could not be had
  std::optional<std::int64_t> measured;  // none: the run could not be had
  std::optional<std::int64_t> difference;
  std::string cause;  // empty: nobody knows, which fails the check unless the difference is 0
  Unit unit = Unit::kBytes;
};

struct Reconciliation {
  std::vector<ReconciliationRow> rows;
  std::string dry_reason;       // why figures of the column are absent; empty when all are there
  std::string measured_reason;  // the same for the measured column
};

// A row with its difference filled in: measured - calculated, or dry - calculated without a
// measurement; none when there is neither.
ReconciliationRow make_row(std::string line, std::int64_t calculated,
                           std::optional<std::int64_t> dry, std::optional<std::int64_t> measured,
                           std::string cause = {}, Unit unit = Unit::kBytes);

// Rows whose difference is not 0 and has no cause. Any of them means exit code 1.
std::vector<const ReconciliationRow*> unnamed_differences(const Reconciliation& reconciliation);

Section reconciliation_section(const Reconciliation& reconciliation);

// {"rows": [...]} and, for absent columns, "reason": {...}.
Json reconciliation_json(const Reconciliation& reconciliation);

}  // namespace plimsoll::report
