#include "plimsoll/cli/metrics_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll::cli {

namespace fs = std::filesystem;

std::string MetricsFile::path_in(const std::string& folder) {
  return (fs::path(folder) / "metrics.jsonl").string();
}

Result<void> MetricsFile::prepare(const std::string& folder, bool replace) {
  std::error_code problem;
  if (fs::exists(folder, problem) && !fs::is_directory(folder, problem)) {
    return fail("--out", fmt::format("{} is a file, expected a folder or a new name", folder));
  }
  if (!replace && fs::exists(path_in(folder), problem)) {
    return fail("--out",
                fmt::format("{} exists, expected a folder without metrics", path_in(folder)),
                "another folder, or --force to overwrite them");
  }
  fs::create_directories(folder, problem);
  if (problem || access(folder.c_str(), W_OK | X_OK) != 0) {
    return fail("--out",
                fmt::format("{} cannot be written: {}", folder,
                            problem ? problem.message() : std::strerror(errno)),
                "", ExitCode::kEnvironment);
  }
  return {};
}

MetricsFile::MetricsFile(const std::string& folder)
    : path_(path_in(folder)), file_(std::fopen(path_.c_str(), "we")) {
  if (!file_) {
    throw std::runtime_error(
        fmt::format("[--out] {} cannot be written: {}", path_, std::strerror(errno)));
  }
}

void MetricsFile::write(const nlohmann::ordered_json& line) {
  const std::string text = line.dump() + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (written && std::fflush(file_.get()) == 0) return;
  throw std::runtime_error(
      fmt::format("[--out] {} cannot be written: {}", path_, std::strerror(errno)));
}

}  // namespace plimsoll::cli
