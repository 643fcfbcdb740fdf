#include "plimsoll/checkpoint/file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace plimsoll::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCollected = std::size_t{4} << 20U;  // bytes
// So much is handed to the disk at a time, while more is being written.
constexpr std::int64_t kFlushed = 32LL << 20;

// The kernel's limit of one call is 2 GiB.
constexpr std::size_t kLargestCall = std::size_t{1} << 30U;

std::string hint_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or keep fewer checkpoints; the previous ones are as they were";
    case EFBIG:
      return "the limit on the size of files (ulimit -f) is too low";
    case EACCES:
    case EPERM:
    case EROFS:
      return "a folder that this user may write to";
    default:
      return "";
  }
}

tl::unexpected<Error> failed(const std::string& path, std::string_view action) {
  return tl::unexpected<Error>(file_error(path, action, errno));
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

ssize_t Disk::write(int descriptor, const void* data, std::size_t bytes) {
  return ::write(descriptor, data, bytes);
}
int Disk::fsync(int descriptor) { return ::fsync(descriptor); }
int Disk::rename(const char* from, const char* to) { return ::rename(from, to); }

Disk& real_disk() {
  static Disk disk;
  return disk;
}

Error file_error(const std::string& path, std::string_view action, int error_number) {
  return {path, fmt::format("cannot be {}: {}", action, std::strerror(error_number)),
          hint_for(error_number), ExitCode::kEnvironment};
}

// --- output

OutputFile::OutputFile(std::string path, int descriptor, Disk& disk)
    : path_(std::move(path)), descriptor_(descriptor), disk_(&disk) {
  collected_.reserve(kCollected);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      disk_(other.disk_),
      size_(other.size_),
      written_(other.written_),
      collected_(std::move(other.collected_)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<OutputFile> OutputFile::create(const std::string& path, Disk& disk) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return failed(path, "made");
  return OutputFile(path, descriptor, disk);
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  size_ += static_cast<std::int64_t>(bytes.size());
  if (collected_.size() + bytes.size() <= kCollected) {
    collected_.insert(collected_.end(), bytes.begin(), bytes.end());
    return {};
  }
  return drain().and_then([&]() -> Result<void> {
    if (bytes.size() > kCollected / 2) return write_through(bytes);
    collected_.assign(bytes.begin(), bytes.end());
    return {};
  });
}

Result<void> OutputFile::align(std::int64_t alignment) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  const std::int64_t rest = size_ % alignment;
  if (rest == 0) return {};
  return write(std::span(kZeros).first(static_cast<std::size_t>(alignment - rest)));
}

Result<void> OutputFile::drain() {
  auto done = write_through(collected_);
  collected_.clear();
  return done;
}

Result<void> OutputFile::write_through(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t most = std::min(bytes.size(), kLargestCall);
    const ssize_t count = disk_->write(descriptor_, bytes.data(), most);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(path_, "written");
    if (count == 0) return tl::unexpected<Error>(file_error(path_, "written", ENOSPC));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    const std::int64_t before = written_ / kFlushed * kFlushed;
    written_ += count;
    // A wish, not a promise: finish() flushes.
    const std::int64_t full = written_ / kFlushed * kFlushed;
    if (full > before) {
      ::sync_file_range(descriptor_, before, full - before, SYNC_FILE_RANGE_WRITE);
    }
  }
  return {};
}

Result<void> OutputFile::finish() {
  if (auto done = drain(); !done) return done;
  if (disk_->fsync(descriptor_) != 0) return failed(path_, "flushed to the disk");
  if (::close(std::exchange(descriptor_, -1)) != 0) return failed(path_, "closed");
  return {};
}

// --- input

InputFile::InputFile(std::string path, int descriptor, std::int64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<InputFile> InputFile::open(const std::string& path) {
  // A pipe in place of the file must not wait for its other end.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failed(path, "read");
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  InputFile file(path, descriptor, known ? status.st_size : 0);
  if (!known) return failed(path, "read");
  if (!S_ISREG(status.st_mode)) return fail(path, "is not a regular file");
  return file;
}

Result<void> InputFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t most = std::min(out.size(), kLargestCall);
    const ssize_t count = ::pread(descriptor_, out.data(), most, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(path_, "read");
    if (count == 0) return fail(path_, fmt::format("ends at byte {}, expected more", offset));
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

// --- folders and small files

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<void> write_whole_file(const std::string& path, std::string_view text, Disk& disk) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());
  auto file = OutputFile::create(temporary, disk);
  if (!file) return tl::unexpected<Error>(file.error());
  auto done = file->write(bytes_of(text)).and_then([&] { return file->finish(); }).and_then([&] {
    return rename_path(temporary, path, disk);
  });
  if (!done) ::unlink(temporary.c_str());
  return done.and_then([&] { return sync_folder(folder_of(path), disk); });
}

Result<void> sync_folder(const std::string& folder, Disk& disk) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failed(folder, "opened");
  const int status = disk.fsync(descriptor);
  const int reason = errno;
  ::close(descriptor);
  // Some file systems have no such call for folders.
  if (status == 0 || reason == EINVAL) return {};
  return tl::unexpected<Error>(file_error(folder, "flushed to the disk", reason));
}

Result<void> make_folder(const std::string& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (!problem && !fs::is_directory(path, problem)) {
    problem = std::make_error_code(std::errc::not_a_directory);
  }
  if (!problem) return {};
  return tl::unexpected<Error>(file_error(path, "made", problem.value()));
}

Result<void> rename_path(const std::string& from, const std::string& to, Disk& disk) {
  if (disk.rename(from.c_str(), to.c_str()) == 0) return {};
  return failed(to, "renamed to");
}

Result<void> remove_folder(const std::string& path) {
  std::error_code problem;
  fs::remove_all(path, problem);
  if (!problem) return {};
  return tl::unexpected<Error>(file_error(path, "removed", problem.value()));
}

}  // namespace plimsoll::checkpoint
