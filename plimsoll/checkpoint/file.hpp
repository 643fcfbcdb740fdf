// Files as checkpoints need them: written from start to end and flushed, or read at places.
//
// Every failure is an Error of exit code 3 that names the file and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/disk.hpp"

namespace plimsoll::checkpoint {

// "[path] cannot be <action>: <reason of errno>", with a hint where one helps.
Error file_error(const std::string& path, std::string_view action, int error_number);

// A new file. Small writes are collected, large ones go straight through.
class OutputFile {
 public:
  // The file must not exist.
  static Result<OutputFile> create(const std::string& path, Disk& disk);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // closes; what was not flushed is lost

  Result<void> write(std::span<const std::byte> bytes);
  // Zeros up to a multiple of `alignment`.
  Result<void> align(std::int64_t alignment);
  // Everything to the disk, and closed.
  Result<void> finish();

  std::int64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, int descriptor, Disk& disk);
  Result<void> write_through(std::span<const std::byte> bytes);
  Result<void> drain();

  std::string path_;
  int descriptor_;
  Disk* disk_;
  std::int64_t size_ = 0;     // with what is collected
  std::int64_t written_ = 0;  // without
  std::vector<std::byte> collected_;
};

// A regular file, for reading.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  std::int64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Fills `out` from `offset` on; an Error when the file ends before.
  Result<void> read(std::int64_t offset, std::span<std::byte> out) const;

 private:
  InputFile(std::string path, int descriptor, std::int64_t size);
  std::string path_;
  int descriptor_;
  std::int64_t size_;
};

// Writes NAME.tmp, flushes it, renames it to `path` and flushes the folder: there is either the whole
// file or what was there before.
Result<void> write_whole_file(const std::string& path, std::string_view text, Disk& disk);

// Makes renamed and new files in a folder last.
Result<void> sync_folder(const std::string& folder, Disk& disk);
Result<void> make_folder(const std::string& path);  // and those above it; may exist
Result<void> rename_path(const std::string& from, const std::string& to, Disk& disk);
// With all that is in it; a missing one is fine.
Result<void> remove_folder(const std::string& path);

std::span<const std::byte> bytes_of(std::string_view text);

}  // namespace plimsoll::checkpoint
