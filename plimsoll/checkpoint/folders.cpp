// Which checkpoints a folder holds.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestEnded = 64;  // bytes

// A whole number and nothing else.
std::optional<std::int64_t> number_in(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) {
    return std::nullopt;
  }
  return number;
}

// What step_name() made, perhaps with kTemporary.
std::optional<Entry> entry_of(const fs::path& path) {
  std::string name = path.filename().string();
  Entry entry;
  entry.folder = path.string();
  entry.temporary = name.ends_with(kTemporary);
  if (entry.temporary) name.resize(name.size() - kTemporary.size());
  if (!name.starts_with("step-")) return std::nullopt;
  const auto step = number_in(std::string_view(name).substr(5));
  if (!step || step_name(*step) != name) return std::nullopt;
  entry.step = *step;
  return entry;
}

}  // namespace

Result<std::vector<Entry>> list_checkpoints(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem); !problem && it != fs::directory_iterator();
       it.increment(problem)) {
    if (auto entry = entry_of(it->path())) entries.push_back(*std::move(entry));
  }
  if (problem && problem != std::errc::no_such_file_or_directory) {
    return tl::unexpected<Error>(file_error(folder, "read", problem.value()));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.step, a.temporary) < std::tie(b.step, b.temporary);
  });
  return entries;
}

Result<Newest> newest_valid(const std::string& folder, Depth depth) {
  auto entries = list_checkpoints(folder);
  if (!entries) return tl::unexpected<Error>(entries.error());
  std::reverse(entries->begin(), entries->end());
  Newest newest;
  for (const Entry& entry : *entries) {
    if (entry.temporary) {
      newest.skipped.push_back({entry.folder, "the save was interrupted", true});
      continue;
    }
    const Verification found = verify(entry.folder, depth);
    if (found.findings.empty()) {
      newest.found = entry;
      return newest;
    }
    std::error_code none;
    const bool unmarked = !fs::exists(fs::path(entry.folder) / std::string(kMarkerFile), none);
    newest.skipped.push_back(
        {entry.folder, finding_text(found.findings.front()), unmarked && !none});
  }
  return newest;
}

std::optional<std::int64_t> ended_at(const std::string& folder) {
  const auto text =
      formats::read_text_file(fs::path(folder) / std::string(kEndedFile), kLargestEnded);
  if (!text || !text->starts_with("step ") || !text->ends_with('\n')) return std::nullopt;
  return number_in(std::string_view(*text).substr(5, text->size() - 6));
}

}  // namespace plimsoll::checkpoint
