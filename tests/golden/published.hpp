// Published figures and what their `compare` says about how they are compared.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/truth_files.hpp"

namespace plimsoll::test {

// The rows of published.json whose `what` begins with `what`.
inline std::vector<nlohmann::json> published(const std::string& what) {
  std::vector<nlohmann::json> rows;
  for (const nlohmann::json& row : truth("published.json")) {
    if (row.at("what").get<std::string>().starts_with(what)) rows.push_back(row);
  }
  REQUIRE_FALSE(rows.empty());
  return rows;
}

// Digits behind the point of a printed figure: 31.4 has one, 1120 none.
inline int printed_decimals(const nlohmann::json& value) {
  const std::string text = value.dump();
  const auto point = text.find('.');
  if (point == std::string::npos || text.substr(point) == ".0") return 0;
  return static_cast<int>(text.size() - point - 1);
}

// "at the printed digits": rounded; with "floor or round", cut off will do.
inline bool equals_as_printed(double exact, const nlohmann::json& row) {
  const double scale = std::pow(10.0, printed_decimals(row.at("value")));
  const double printed = std::round(row.at("value").get<double>() * scale);
  const bool cut = row.at("compare").get<std::string>().find("floor") != std::string::npos;
  return std::round(exact * scale) == printed || (cut && std::floor(exact * scale) == printed);
}

}  // namespace plimsoll::test
