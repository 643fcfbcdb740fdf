#include "plimsoll/checkpoint/verify_contents.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/checkpoint/checksum.hpp"
#include "plimsoll/checkpoint/file.hpp"

namespace plimsoll::checkpoint {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20U;  // bytes read at a time

// A piece or blob of one file.
struct Stretch {
  Place place;
  std::string name;
};

std::vector<std::vector<Stretch>> stretches_by_rank(const Manifest& manifest) {
  std::vector<std::vector<Stretch>> by_rank(static_cast<std::size_t>(manifest.ranks));
  const auto add = [&](const Place& place, std::string name) {
    by_rank[static_cast<std::size_t>(place.rank)].push_back({place, std::move(name)});
  };
  for (const Tensor& tensor : manifest.tensors) {
    for (const TensorState& state : tensor.states) {
      for (const Piece& piece : state.pieces) {
        add(piece.place, piece_name(tensor, state.kind, piece.elements));
      }
    }
  }
  for (const Blob& blob : manifest.blobs) {
    add(blob.place, fmt::format("blob {} of rank {}", blob.name, blob.place.rank));
  }
  for (auto& stretches : by_rank) {
    std::sort(stretches.begin(), stretches.end(),
              [](const Stretch& a, const Stretch& b) { return a.place.offset < b.place.offset; });
  }
  return by_rank;
}

// Reads one file from start to end.
class FileCheck {
 public:
  FileCheck(const InputFile& file, std::string name, std::vector<Finding>& findings)
      : file_(file), name_(std::move(name)), findings_(findings), block_(kBlock) {}

  void run(const std::vector<Stretch>& stretches, std::int64_t expected_bytes) {
    std::int64_t end = 0;
    for (const Stretch& stretch : stretches) {
      check_zeros(end, stretch.place.offset);
      check_piece(stretch);
      end = stretch.place.offset + stretch.place.bytes;
    }
    check_zeros(end, expected_bytes);
  }

 private:
  void found(std::string piece, std::string what) {
    findings_.push_back({name_, std::move(piece), std::move(what)});
  }

  // Calls function(bytes) block by block; false: the file could not be read.
  template <class Function>
  bool read(std::int64_t begin, std::int64_t end, const std::string& piece, Function&& function) {
    while (begin < end) {
      const auto size = static_cast<std::size_t>(
          std::min<std::int64_t>(end - begin, static_cast<std::int64_t>(kBlock)));
      const std::span<std::byte> bytes(block_.data(), size);
      if (auto done = file_.read(begin, bytes); !done) {
        found(piece, done.error().what);
        return false;
      }
      function(std::span<const std::byte>(bytes));
      begin += static_cast<std::int64_t>(size);
    }
    return true;
  }

  void check_piece(const Stretch& stretch) {
    const Place& place = stretch.place;
    const std::int64_t end = place.offset + place.bytes;
    if (end > file_.size()) {
      return found(stretch.name, fmt::format("lies at bytes {} to {}, the file has {}",
                                             place.offset, end, file_.size()));
    }
    Checksum sum;
    const auto update = [&](std::span<const std::byte> bytes) { sum.update(bytes); };
    if (!read(place.offset, end, stretch.name, update) || sum.value() == place.checksum) return;
    found(stretch.name, fmt::format("checksum {}, expected {}", checksum_text(sum.value()),
                                    checksum_text(place.checksum)));
  }

  void check_zeros(std::int64_t begin, std::int64_t end) {
    end = std::min(end, file_.size());
    bool zeros = true;
    read(begin, end, "between pieces", [&](std::span<const std::byte> bytes) {
      zeros = zeros && std::all_of(bytes.begin(), bytes.end(),
                                   [](std::byte b) { return b == std::byte{0}; });
    });
    if (!zeros) {
      found("between pieces", fmt::format("bytes {} to {} are not zero", begin, end));
    }
  }

  const InputFile& file_;
  const std::string name_;
  std::vector<Finding>& findings_;
  std::vector<std::byte> block_;
};

}  // namespace

void verify_contents(Verification& verification) {
  const Manifest& manifest = *verification.manifest;
  const auto by_rank = stretches_by_rank(manifest);
  for (std::int32_t rank = 0; rank < manifest.ranks; ++rank) {
    const auto file = InputFile::open(verification.folder + "/" + rank_file(rank));
    if (!file) continue;
    const auto r = static_cast<std::size_t>(rank);
    FileCheck(*file, rank_file(rank), verification.findings)
        .run(by_rank[r], manifest.file_bytes[r]);
  }
}

}  // namespace plimsoll::checkpoint
