#include "plimsoll/checkpoint/verify.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/checkpoint/checksum.hpp"
#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/checkpoint/verify_contents.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestMarker = 4096;

// "name: what" of an Error, without the folder that everything lies in.
std::string without_folder(const Error& error, const std::string& file) {
  const std::size_t at = error.where.rfind(file);
  const std::string path = at == std::string::npos ? "" : error.where.substr(at + file.size());
  return path.size() > 1 ? path.substr(1) + " " + error.what : error.what;
}

class StructureCheck {
 public:
  explicit StructureCheck(const std::string& folder) : folder_(folder) { result_.folder = folder; }

  Verification run() {
    std::error_code problem;
    if (!fs::is_directory(folder_, problem)) {
      found("", "no such folder");
      return std::move(result_);
    }
    const auto marker = text_of(kMarkerFile, kLargestMarker, ": the save was not finished");
    if (!marker || !check_marker(*marker)) return std::move(result_);
    const auto manifest = text_of(kManifestFile, kLargestManifest, "");
    if (!manifest || !check_manifest_text(*manifest, *marker)) return std::move(result_);
    result_.bytes = static_cast<std::int64_t>(marker->size() + manifest->size());
    check_name();
    check_sizes();
    check_foreign();
    return std::move(result_);
  }

 private:
  void found(std::string_view file, std::string what) {
    result_.findings.push_back({std::string(file), "", std::move(what)});
  }

  std::string path_of(std::string_view file) const { return folder_ + "/" + std::string(file); }

  std::optional<std::string> text_of(std::string_view file, std::size_t most,
                                     std::string_view when_missing) {
    std::error_code problem;
    if (!fs::exists(path_of(file), problem)) {
      found(file, "is missing" + std::string(when_missing));
      return std::nullopt;
    }
    const auto text = formats::read_text_file(path_of(file), most);
    if (text) return *text;
    found(file, text.error().what);
    return std::nullopt;
  }

  // The last line is the checksum of those before it.
  bool check_marker(const std::string& marker) {
    const std::string_view text = marker;
    constexpr std::size_t kLast = 22;  // "xxh3 ", 16 digits, end of line
    const std::string_view body = text.substr(0, text.size() - std::min(text.size(), kLast));
    const std::string last = fmt::format("xxh3 {}\n", checksum_text(checksum_of(body)));
    const bool same_format = text.starts_with(std::string(kFormat) + "\n");
    if (body.empty() || text.substr(body.size()) != last) {
      found(kMarkerFile, "is damaged, or another version of plimsoll wrote it");
      return false;
    }
    if (same_format) return true;
    found(kMarkerFile,
          fmt::format("says {}, expected {}: another version of plimsoll wrote it",
                      body.substr(0, std::min(body.find('\n'), std::size_t{40})), kFormat));
    return false;
  }

  bool check_manifest_text(const std::string& text, const std::string& marker) {
    const std::size_t number = marker.find("\nstep ") + 6;
    std::int64_t step = -1;
    std::from_chars(marker.data() + number, marker.data() + marker.size(), step);
    if (marker != marker_text(step, text)) {
      found(kManifestFile, fmt::format("{} bytes with checksum {}: not those that {} names",
                                       text.size(), checksum_text(checksum_of(text)), kMarkerFile));
      return false;
    }
    auto manifest = parse_manifest(text, path_of(kManifestFile));
    if (!manifest) {
      found(kManifestFile, without_folder(manifest.error(), std::string(kManifestFile)));
      return false;
    }
    if (manifest->step != step) {
      found(kManifestFile, fmt::format("step {}, {} says {}", manifest->step, kMarkerFile, step));
    }
    result_.manifest = *std::move(manifest);
    return true;
  }

  // A checkpoint may be copied to a folder of any other kind of name.
  void check_name() {
    const std::string name = fs::path(folder_).filename().string();
    const std::string expected = step_name(result_.manifest->step);
    if (!name.starts_with("step-") || name == expected) return;
    found("", fmt::format("is called {}, expected {}: its step is {}", name, expected,
                          result_.manifest->step));
  }

  void check_sizes() {
    for (std::int32_t rank = 0; rank < result_.manifest->ranks; ++rank) {
      const std::string file = rank_file(rank);
      const std::int64_t expected = result_.manifest->file_bytes[static_cast<std::size_t>(rank)];
      std::error_code problem;
      if (!fs::exists(path_of(file), problem)) {
        found(file, "is missing");
        continue;
      }
      const auto opened = InputFile::open(path_of(file));
      if (!opened) {
        found(file, opened.error().what);
        continue;
      }
      result_.bytes += opened->size();
      if (opened->size() == expected) continue;
      found(file, fmt::format("has {} bytes, expected {}{}", opened->size(), expected,
                              opened->size() < expected ? ": it is cut off" : ""));
    }
  }

  void check_foreign() {
    std::set<std::string> known = {std::string(kMarkerFile), std::string(kManifestFile)};
    for (std::int32_t rank = 0; rank < result_.manifest->ranks; ++rank) {
      known.insert(rank_file(rank));
    }
    std::set<std::string> foreign;
    std::error_code problem;
    for (fs::directory_iterator it(folder_, problem); !problem && it != fs::directory_iterator();
         it.increment(problem)) {
      const std::string name = it->path().filename().string();
      if (!known.contains(name)) foreign.insert(name);
    }
    if (problem) found("", "cannot be read: " + problem.message());
    for (const std::string& name : foreign) found(name, "does not belong to this checkpoint");
  }

  const std::string folder_;
  Verification result_;
};

}  // namespace

std::string finding_text(const Finding& finding) {
  std::string text = finding.file;
  if (!finding.piece.empty()) text += (text.empty() ? "" : ": ") + finding.piece;
  return text.empty() ? finding.what : fmt::format("{}: {}", text, finding.what);
}

Verification verify(const std::string& checkpoint_folder, Depth depth) {
  std::string folder = checkpoint_folder;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  Verification result = StructureCheck(folder).run();
  if (depth == Depth::kContents && result.manifest) verify_contents(result);
  return result;
}

}  // namespace plimsoll::checkpoint
