// Reads any range of any state of a checkpoint, at any number of ranks.
//
// Every rank opens the folder that rank 0 chose with newest_valid(), and reads what its layout says
// that it owns; nothing of the writers' layout has to be known:
//
//   auto reader = checkpoint::Reader::open(found.folder);
//   for (const OwnedPiece& p : owned) {
//     reader->read(name_of(p.parameter), StateKind::kWeight, p.in_parameter, bytes_of(p.weights));
//   }
//   if (auto same = reader->compare_checksums(); !same) ...
//
// Only the bytes asked for are read. A piece that is read whole is compared with its checksum, on a thread of
// the reader's own while more is read; the parts of pieces that a different layout reads are not, so the
// folder's contents should have been checked before (Depth::kContents). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/manifest.hpp"

namespace plimsoll::checkpoint {

class Reader {
 public:
  // Checks the marker, the manifest and the sizes of the files; reads no weight.
  static Result<Reader> open(const std::string& checkpoint_folder);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  const Manifest& manifest() const;

  // `out` gets elements [begin, end) in the dtype of the manifest: size_of(dtype) bytes each. It has to live, and
  // its values to be left as they are, until compare_checksums(), or until an error here. Errors: no such
  // tensor or state, a range beyond it, a file that cannot be read.
  Result<void> read(std::string_view tensor, StateKind kind, const shard::Range& elements,
                    std::span<std::byte> out);
  // Of the pieces that were read whole since the last call. Error: a wrong checksum; then none of those
  // values may be used.
  [[nodiscard]] Result<void> compare_checksums();
  // The blob that `rank` of the writers left. Errors: there is none, or it is damaged.
  Result<std::vector<std::byte>> read_blob(std::int32_t rank, std::string_view name);

  std::int64_t bytes_read() const;  // of tensors and blobs, so far

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::checkpoint
