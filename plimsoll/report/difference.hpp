// What differs between two plans: settings, and figures with the largest changes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/plan_file.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

struct DifferentSetting {
  std::string name;
  std::string a, b;  // "" where a plan does not have it
};

struct DifferentFigure {
  std::string name;
  formats::FigureUnit unit = formats::FigureUnit::kBytes;
  std::optional<std::int64_t> a, b;  // none where a plan does not know it
  // B - A; none when one is unknown, and when it leaves 64 bits.
  std::optional<std::int64_t> difference;
};

struct Difference {
  std::string a, b;  // titles of the models
  std::vector<DifferentSetting> settings;
  // Bytes first, then FLOPs, then counts; within a unit by |B - A|, and last what one plan alone knows.
  std::vector<DifferentFigure> rows;
  std::int64_t equal = 0;  // figures that do not differ
};

Difference difference_of(const formats::PlanFile& a, const formats::PlanFile& b);

std::string difference_text(const Difference& difference, const TextStyle& style);
Json difference_json(const Difference& difference);  // schema plimsoll.diff/1

}  // namespace plimsoll::report
