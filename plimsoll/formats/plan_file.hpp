// What `plimsoll plan --json` wrote, read again to be compared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

enum class FigureUnit : std::uint8_t { kBytes, kFlops, kCount };

struct PlanFigure {
  std::string name;  // its place in the file: "posts.O.moments"
  FigureUnit unit = FigureUnit::kBytes;
  std::int64_t value = 0;
};

struct PlanFile {
  std::string title;                                          // of the model
  std::vector<std::pair<std::string, std::string>> settings;  // of the job, as JSON writes them
  std::vector<PlanFigure> figures;                            // those that are known
};

// Refused: what is no JSON, no plan of schema plimsoll.plan/1, or lacks a part of one.
Result<PlanFile> read_plan_file(const std::filesystem::path& path);

}  // namespace plimsoll::formats
