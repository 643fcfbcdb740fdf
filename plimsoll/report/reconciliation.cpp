#include "plimsoll/report/reconciliation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

bool is_unnamed(const ReconciliationRow& row) {
  return row.difference.value_or(0) != 0 && row.cause.empty();
}

std::string figure(const std::optional<std::int64_t>& value) {
  return value ? grouped(*value) : "-";
}

std::string signed_figure(const std::optional<std::int64_t>& value) {
  return value && *value > 0 ? "+" + grouped(*value) : figure(value);
}

std::string reason_line(const char* column, const std::string& reason, const TextStyle& style) {
  if (reason.empty()) return "";
  return "  " +
         wrapped(fmt::format("{} is missing where \"-\" stands: {}", column, reason), 2, 4,
                 style.width) +
         "\n";
}

std::string verdict(const Reconciliation& reconciliation) {
  std::size_t different = 0;
  std::size_t compared = 0;
  for (const ReconciliationRow& row : reconciliation.rows) {
    if (row.difference) ++compared;
    if (row.difference.value_or(0) != 0) ++different;
  }
  const std::size_t unnamed = unnamed_differences(reconciliation).size();
  if (compared == 0) return "  nothing was compared\n";
  if (different == 0) return fmt::format("  {} lines compared, all equal\n", compared);
  return fmt::format("  {} lines compared, {} differ, {} of them without a named cause\n", compared,
                     different, unnamed);
}

}  // namespace

ReconciliationRow make_row(std::string line, std::int64_t calculated,
                           std::optional<std::int64_t> dry, std::optional<std::int64_t> measured,
                           std::string cause, Unit unit) {
  ReconciliationRow row{std::move(line), calculated,       dry, measured,
                        std::nullopt,    std::move(cause), unit};
  const std::optional<std::int64_t> seen = measured ? measured : dry;
  if (seen) row.difference = checked_add(*seen, -calculated);
  return row;
}

std::vector<const ReconciliationRow*> unnamed_differences(const Reconciliation& reconciliation) {
  std::vector<const ReconciliationRow*> rows;
  for (const ReconciliationRow& row : reconciliation.rows) {
    if (is_unnamed(row)) rows.push_back(&row);
  }
  return rows;
}

std::string reconciliation_text(const Reconciliation& reconciliation, const TextStyle& style) {
  Table table({{"line", Align::kLeft},
               {"calculated"},
               {"dry-run"},
               {"measured"},
               {"difference"},
               {"cause", Align::kWrap}});
  for (const ReconciliationRow& row : reconciliation.rows) {
    table.row({row.line, grouped(row.calculated), figure(row.dry), figure(row.measured),
               signed_figure(row.difference), is_unnamed(row) ? "not named" : row.cause});
  }
  return bold("Calculated, dry-run, measured", style) + " in bytes\n" + table.text(style) +
         verdict(reconciliation) + reason_line("dry-run", reconciliation.dry_reason, style) +
         reason_line("measured", reconciliation.measured_reason, style);
}

Json reconciliation_json(const Reconciliation& reconciliation) {
  Json rows = Json::array();
  for (const ReconciliationRow& row : reconciliation.rows) {
    rows.push_back({{"line", row.line},
                    {"unit", row.unit == Unit::kBytes ? "bytes" : "count"},
                    {"calculated", row.calculated},
                    {"dry", number_or_null(row.dry)},
                    {"measured", number_or_null(row.measured)},
                    {"difference", number_or_null(row.difference)},
                    {"cause", row.cause.empty() ? Json(nullptr) : Json(row.cause)}});
  }
  Json reason = Json::object();
  if (!reconciliation.dry_reason.empty()) reason["dry"] = reconciliation.dry_reason;
  if (!reconciliation.measured_reason.empty()) reason["measured"] = reconciliation.measured_reason;
  Json json;
  json["rows"] = std::move(rows);
  json["reason"] = std::move(reason);
  return json;
}

}  // namespace plimsoll::report
