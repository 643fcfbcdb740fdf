// What `plimsoll measure --json` wrote, read again to be shown beside a plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

struct MeasuredLine {
  std::string line;
  bool bytes = true;  // otherwise a count
  std::int64_t calculated = 0;
  std::optional<std::int64_t> dry;
  std::optional<std::int64_t> measured;
  std::string cause;  // of a difference; empty: none is named
};

struct MeasurementFile {
  // Key and value as JSON writes it, of the model and of the job, but for lists of assumptions.
  std::vector<std::pair<std::string, std::string>> model;
  std::vector<std::pair<std::string, std::string>> job;
  std::vector<MeasuredLine> lines;
  std::string dry_reason;       // why figures of the column are absent; empty: all are there
  std::string measured_reason;  // the same
};

// Refused: what is no JSON, or not of schema plimsoll.measure/1.
Result<MeasurementFile> read_measurement_file(const std::filesystem::path& path);

}  // namespace plimsoll::formats
