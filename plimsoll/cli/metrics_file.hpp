// DIR/metrics.jsonl: one JSON object a line, written as soon as it is known.
//
//   {"step": 1, "loss": 5.5, "grad_norm": 1.2, "lr": 0.001, "tokens_per_second": 900.0,
//    "peak_bytes": 123456}
//   {"step": 50, "evaluation": {"loss": 4.1, "rows": 64}}
//
// Steps count from 1. An evaluation stands behind the step after which it was made.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/error.hpp"

namespace plimsoll::cli {

class MetricsFile {
 public:
  static std::string path_in(const std::string& folder);
  // Creates the folder, or takes one that is there. Refused: metrics that are there, unless `replace`
  // (exit code 2); a folder that cannot be made or written to (3). Writes nothing.
  static Result<void> prepare(const std::string& folder, bool replace);

  // Begins an empty file. Throws std::runtime_error when that, or a later write, fails.
  explicit MetricsFile(const std::string& folder);
  void write(const nlohmann::ordered_json& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace plimsoll::cli
