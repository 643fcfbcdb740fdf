#include "plimsoll/cli/metrics_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll::cli {

namespace fs = std::filesystem;

std::string MetricsFile::path_in(const std::string& folder) {
  return (fs::path(folder) / "metrics.jsonl").string();
}

Result<void> MetricsFile::prepare(const std::string& folder, bool may_exist) {
  std::error_code problem;
  if (fs::exists(folder, problem) && !fs::is_directory(folder, problem)) {
    return fail("--out", fmt::format("{} is a file, expected a folder or a new name", folder));
  }
  if (!may_exist && fs::exists(path_in(folder), problem)) {
    return fail("--out",
                fmt::format("{} exists, expected a folder without metrics", path_in(folder)),
                "--resume to go on, another folder, or --force to overwrite them");
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

namespace {

// The lines of steps up to `last`.
std::string kept_lines(const std::string& path, std::int64_t last) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; last > 0 && std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.value("step", last + 1) > last) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& folder, std::int64_t after_step)
    : path_(path_in(folder)) {
  const std::string kept = kept_lines(path_, after_step);
  const std::string fresh = path_ + ".new";
  file_.reset(std::fopen(fresh.c_str(), "we"));
  const bool written =
      file_ && std::fwrite(kept.data(), 1, kept.size(), file_.get()) == kept.size() &&
      std::fflush(file_.get()) == 0 && std::rename(fresh.c_str(), path_.c_str()) == 0;
  if (!written) file_.reset();
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
