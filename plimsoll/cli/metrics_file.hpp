// DIR/metrics.jsonl: one JSON object a line, written as soon as it is known.
//
//   {"step": 1, "loss": 5.5, "grad_norm": 1.2, "lr": 0.001, "tokens_per_second": 900.0,
//    "peak_bytes": 123456}
//   {"step": 50, "evaluation": {"loss": 4.1, "rows": 64}}
//
// Steps count from 1. An evaluation stands behind the step after which it was made. A step that was
// skipped has "skipped": true, and null for what is no finite number.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::cli {

class MetricsFile {
 public:
  static std::string path_in(const std::string& folder);
  // Creates the folder, or takes one that is there. Refused: metrics that are there, unless `may_exist`
  // (exit code 2); a folder that cannot be made or written to (3). Writes nothing.
  static Result<void> prepare(const std::string& folder, bool may_exist);

  // Keeps the lines of a file that is there up to this step, the rest is written anew: lines behind it,
  // and what a killed process left half-written. Throws std::runtime_error when that, or a later write,
  // fails.
  MetricsFile(const std::string& folder, std::int64_t after_step);
  void write(const nlohmann::ordered_json& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace plimsoll::cli
