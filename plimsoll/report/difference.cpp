#include "plimsoll/report/difference.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

using formats::FigureUnit;
using formats::PlanFile;

std::string_view name(FigureUnit unit) {
  switch (unit) {
    case FigureUnit::kBytes:
      return "bytes";
    case FigureUnit::kFlops:
      return "FLOPs";
    case FigureUnit::kCount:
      return "count";
  }
  return "?";
}

std::optional<std::int64_t> difference(const DifferentFigure& row) {
  std::int64_t result = 0;
  if (!row.a || !row.b || __builtin_sub_overflow(*row.b, *row.a, &result)) return std::nullopt;
  return result;
}

// Rows in the order of A, then those of B alone.
std::vector<DifferentFigure> joined(const PlanFile& a, const PlanFile& b) {
  std::vector<DifferentFigure> rows;
  std::map<std::string, std::size_t> places;
  for (const formats::PlanFigure& figure : a.figures) {
    places.emplace(figure.name, rows.size());
    rows.push_back({figure.name, figure.unit, figure.value, std::nullopt, std::nullopt});
  }
  for (const formats::PlanFigure& figure : b.figures) {
    const auto [place, is_new] = places.emplace(figure.name, rows.size());
    if (is_new)
      rows.push_back({figure.name, figure.unit, std::nullopt, std::nullopt, std::nullopt});
    rows[place->second].b = figure.value;
  }
  for (DifferentFigure& row : rows) row.difference = difference(row);
  return rows;
}

bool comes_first(const DifferentFigure& a, const DifferentFigure& b) {
  if (a.unit != b.unit) return a.unit < b.unit;
  if (a.difference.has_value() != b.difference.has_value()) return a.difference.has_value();
  const auto size = [](const DifferentFigure& row) {
    return std::abs(static_cast<double>(row.difference.value_or(0)));
  };
  return size(a) > size(b);
}

std::vector<DifferentSetting> different_settings(const PlanFile& a, const PlanFile& b) {
  std::vector<DifferentSetting> result;
  const std::map<std::string, std::string> before(a.settings.begin(), a.settings.end());
  std::map<std::string, std::string> after(b.settings.begin(), b.settings.end());
  for (const auto& [key, value] : before) {
    if (after[key] != value) result.push_back({key, value, after[key]});
    after.erase(key);
  }
  for (const auto& [key, value] : after) result.push_back({key, "", value});
  return result;
}

std::string signed_text(std::int64_t value) { return (value > 0 ? "+" : "") + grouped(value); }

// As people read it: the exact figures are in the two files.
std::string figure_text(const std::optional<std::int64_t>& value, FigureUnit unit) {
  if (!value) return "unknown";
  if (*value < 0 || unit == FigureUnit::kCount) return grouped(*value);
  return unit == FigureUnit::kBytes ? human(Bytes{*value}) : human(Flops{*value});
}

std::string share(const DifferentFigure& row) {
  if (!row.difference || !row.a || *row.a == 0) return "";
  return fmt::format("{:+.1f} %",
                     100 * static_cast<double>(*row.difference) / static_cast<double>(*row.a));
}

std::string or_absent(const std::string& text) { return text.empty() ? "-" : visible(text); }

}  // namespace

Difference difference_of(const PlanFile& a, const PlanFile& b) {
  Difference result{a.title, b.title, different_settings(a, b), {}, 0};
  for (DifferentFigure& row : joined(a, b)) {
    if (row.difference == 0) {
      ++result.equal;
    } else {
      result.rows.push_back(std::move(row));
    }
  }
  std::stable_sort(result.rows.begin(), result.rows.end(), comes_first);
  return result;
}

std::string difference_text(const Difference& difference, const TextStyle& style) {
  Table settings({{"", Align::kLeft}, {"A", Align::kLeft}, {"B", Align::kLeft}});
  settings.row({"model", or_absent(difference.a), or_absent(difference.b)});
  for (const DifferentSetting& setting : difference.settings) {
    settings.row({visible(setting.name), or_absent(setting.a), or_absent(setting.b)});
  }
  Table table({{"", Align::kLeft}, {"A"}, {"B"}, {"B - A"}, {""}});
  for (const DifferentFigure& row : difference.rows) {
    table.row({visible(row.name), figure_text(row.a, row.unit), figure_text(row.b, row.unit),
               row.difference ? signed_text(*row.difference) : "", share(row)});
  }
  std::string text = bold("Settings", style) + " that differ\n" + settings.text(style) + "\n";
  text += bold("Figures", style) + ", largest changes first: bytes, then FLOPs, then counts\n";
  text += table.text(style);
  return text +
         fmt::format("  {} differ, {} are equal\n", difference.rows.size(), difference.equal);
}

Json difference_json(const Difference& difference) {
  const auto or_null = [](const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json;
  json["schema"] = "plimsoll.diff/1";
  json["models"] = {{"a", difference.a}, {"b", difference.b}};
  Json settings = Json::array();
  for (const DifferentSetting& setting : difference.settings) {
    settings.push_back({{"name", setting.name}, {"a", setting.a}, {"b", setting.b}});
  }
  json["settings"] = std::move(settings);
  Json rows = Json::array();
  for (const DifferentFigure& row : difference.rows) {
    rows.push_back({{"name", row.name},
                    {"unit", name(row.unit)},
                    {"a", or_null(row.a)},
                    {"b", or_null(row.b)},
                    {"difference", or_null(row.difference)}});
  }
  json["rows"] = std::move(rows);
  json["equal"] = difference.equal;
  return json;
}

}  // namespace plimsoll::report
