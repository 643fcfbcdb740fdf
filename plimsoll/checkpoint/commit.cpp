// What rank 0 does around the ranks' writing.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/checkpoint/rank_list.hpp"
#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/checkpoint/writer.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;

// Folders under these names are leftovers, to be removed whenever they are seen.
constexpr std::string_view kReplaced = ".replaced";
constexpr std::string_view kRemoved = ".removed";

Result<void> remove_leftovers(const std::string& folder) {
  std::vector<std::string> leftovers;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem); !problem && it != fs::directory_iterator();
       it.increment(problem)) {
    const std::string name = it->path().filename().string();
    const bool ends =
        name.ends_with(kTemporary) || name.ends_with(kReplaced) || name.ends_with(kRemoved);
    if (name.starts_with("step-") && ends) leftovers.push_back(it->path().string());
  }
  if (problem) return tl::unexpected<Error>(file_error(folder, "read", problem.value()));
  for (const std::string& path : leftovers) {
    if (auto removed = remove_folder(path); !removed) return removed;
  }
  return {};
}

// --- the manifest

void add_list(const RankList& list, Manifest& manifest) {
  manifest.file_bytes.push_back(list.file_bytes);
  for (const ListedPiece& listed : list.pieces) {
    for (TensorState& state : manifest.tensors[listed.tensor].states) {
      if (state.kind == listed.kind) state.pieces.push_back(listed.piece);
    }
  }
  manifest.blobs.insert(manifest.blobs.end(), list.blobs.begin(), list.blobs.end());
}

void sort_pieces(Manifest& manifest) {
  const auto before = [](const Piece& a, const Piece& b) {
    return a.elements.begin < b.elements.begin;
  };
  for (Tensor& tensor : manifest.tensors) {
    for (TensorState& state : tensor.states) {
      std::sort(state.pieces.begin(), state.pieces.end(), before);
    }
  }
}

// Ranks whose list is not there.
std::vector<std::int32_t> missing_ranks(const SavePlan& plan) {
  std::vector<std::int32_t> missing;
  for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
    std::error_code problem;
    if (!fs::exists(temporary_folder(plan) + "/" + rank_list_file(rank), problem)) {
      missing.push_back(rank);
    }
  }
  return missing;
}

Result<Manifest> collect(const SavePlan& plan, const RunState& run) {
  if (const auto missing = missing_ranks(plan); !missing.empty()) {
    return fail(temporary_folder(plan),
                fmt::format("ranks {} of {} have not finished their files",
                            fmt::join(missing, ", "), plan.ranks),
                "", ExitCode::kEnvironment);
  }
  Manifest manifest{plan.step, plan.ranks, plan.stage, {}, plan.tensors, {}, run};
  for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
    const std::string path = temporary_folder(plan) + "/" + rank_list_file(rank);
    const auto text = formats::read_text_file(path, kLargestManifest);
    if (!text) return tl::unexpected<Error>(text.error());
    const auto list = parse_rank_list(*text, path, plan);
    if (!list) return tl::unexpected<Error>(list.error());
    add_list(*list, manifest);
  }
  sort_pieces(manifest);
  return check_manifest(manifest, temporary_folder(plan)).map([&] { return std::move(manifest); });
}

Result<void> write_manifest(const SavePlan& plan, const std::string& text, Disk& disk) {
  const std::string folder = temporary_folder(plan);
  auto file = OutputFile::create(folder + "/" + std::string(kManifestFile), disk);
  if (!file) return tl::unexpected<Error>(file.error());
  return file->write(bytes_of(text))
      .and_then([&] { return file->finish(); })
      .and_then([&]() -> Result<void> {
        for (std::int32_t rank = 0; rank < plan.ranks; ++rank) {
          const std::string list = folder + "/" + rank_list_file(rank);
          if (::unlink(list.c_str()) != 0) {
            return tl::unexpected<Error>(file_error(list, "removed", errno));
          }
        }
        return sync_folder(folder, disk);
      });
}

// --- the folder

// A folder's contents are gone at once for whoever looks for checkpoints, then from the disk.
Result<void> retire(const std::string& folder, std::string_view as, Disk& disk) {
  const std::string retired = folder + std::string(as);
  return remove_folder(retired)
      .and_then([&] { return rename_path(folder, retired, disk); })
      .and_then([&] { return remove_folder(retired); });
}

// Puts the temporary folder where the checkpoint belongs and marks it. What was there comes back when
// that fails.
Result<void> publish(const SavePlan& plan, const std::string& marker, Disk& disk) {
  const std::string folder = final_folder(plan);
  const std::string aside = folder + std::string(kReplaced);
  std::error_code problem;
  const bool replaces = fs::exists(folder, problem);
  if (replaces) {
    auto moved = remove_folder(aside).and_then([&] { return rename_path(folder, aside, disk); });
    if (!moved) return moved;
  }
  auto renamed = rename_path(temporary_folder(plan), folder, disk);
  auto done = renamed.and_then([&] { return sync_folder(plan.folder, disk); }).and_then([&] {
    return write_whole_file(folder + "/" + std::string(kMarkerFile), marker, disk);
  });
  if (!done) {
    if (renamed) static_cast<void>(remove_folder(folder));
    if (replaces) fs::rename(aside, folder, problem);
    return done;
  }
  return replaces ? remove_folder(aside) : Result<void>();
}

bool complete(const std::string& folder) {
  return verify(folder, Depth::kStructure).findings.empty();
}

std::string ended_file(const std::string& folder) { return folder + "/" + std::string(kEndedFile); }

}  // namespace

Result<void> prepare(const SavePlan& plan, Disk& disk) {
  return make_folder(plan.folder)
      .and_then([&] { return remove_leftovers(plan.folder); })
      .and_then([&] { return make_folder(temporary_folder(plan)); })
      .and_then([&] { return sync_folder(plan.folder, disk); });
}

Result<void> commit(const SavePlan& plan, const RunState& run, Disk& disk) {
  const auto manifest = collect(plan, run);
  Result<void> done;
  if (manifest) {
    const std::string text = manifest_text(*manifest);
    done = write_manifest(plan, text, disk).and_then([&] {
      return publish(plan, marker_text(plan.step, text), disk);
    });
  } else {
    done = tl::unexpected<Error>(manifest.error());
  }
  if (!done) abandon(plan);
  return done;
}

void abandon(const SavePlan& plan) noexcept {
  // What cannot be removed now is a leftover that the next save removes.
  try {
    static_cast<void>(remove_folder(temporary_folder(plan)));
  } catch (...) {
    return;
  }
}

Result<void> prune(const std::string& folder, std::int64_t step, std::int64_t keep) {
  check(keep >= 1, "a checkpoint that was just written would be removed");
  auto entries = list_checkpoints(folder);
  if (!entries) return tl::unexpected<Error>(entries.error());
  std::reverse(entries->begin(), entries->end());
  std::int64_t kept = 0;
  for (const Entry& entry : *entries) {
    if (entry.temporary || entry.step > step) continue;
    if (kept >= keep) {
      if (auto gone = retire(entry.folder, kRemoved, real_disk()); !gone) return gone;
    } else if (complete(entry.folder)) {
      ++kept;
    }
  }
  return {};
}

Result<void> mark_ended(const std::string& folder, std::int64_t step, Disk& disk) {
  return make_folder(folder).and_then(
      [&] { return write_whole_file(ended_file(folder), fmt::format("step {}\n", step), disk); });
}

Result<void> clear_ended(const std::string& folder) {
  std::error_code problem;
  fs::remove(ended_file(folder), problem);
  if (!problem) return {};
  return tl::unexpected<Error>(file_error(ended_file(folder), "removed", problem.value()));
}

}  // namespace plimsoll::checkpoint
