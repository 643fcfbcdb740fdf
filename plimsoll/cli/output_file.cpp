#include "plimsoll/cli/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::cli {

namespace fs = std::filesystem;

namespace {

Result<void> check_target(const std::string& option, const fs::path& path,
                          const std::vector<std::string>& inputs) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::exists(status) && status.type() != fs::file_type::regular) {
    return fail(option, fmt::format("\"{}\" is {}, expected a file or a new name", path.string(),
                                    formats::kind_of_file(status.type())));
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, problem)) {
    return fail(option,
                fmt::format("\"{}\" is no folder, expected one that is there", folder.string()));
  }
  if (!path.has_filename()) {
    return fail(option, fmt::format("\"{}\" ends in no name of a file", path.string()));
  }
  for (const std::string& input : inputs) {
    if (!fs::equivalent(path, input, problem)) continue;
    return fail(option, fmt::format("\"{}\" is read by this command, expected another file",
                                    path.string()));
  }
  return {};
}

}  // namespace

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

OutputFile::OutputFile(std::string option, fs::path path)
    : option_(std::move(option)), path_(std::move(path)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : option_(std::move(other.option_)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::write(const std::string& option, const std::string& path,
                                     const std::vector<std::string>& inputs,
                                     std::string_view text) {
  if (auto ok = check_target(option, path, inputs); !ok) return tl::unexpected(ok.error());
  std::error_code problem;
  const fs::path target = fs::exists(path, problem) ? fs::canonical(path, problem) : fs::path(path);
  OutputFile file(option, target);
  if (auto ok = file.fill(text); !ok) return tl::unexpected(ok.error());
  return file;
}

Result<void> OutputFile::fill(std::string_view text) {
  const fs::path name =
      path_.parent_path() / fmt::format(".plimsoll.{}{}.part", ::getpid(), option_);
  ::unlink(name.c_str());  // of a process that was killed, and had our number
  const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(errno);
  temporary_ = name;
  int failed = write_all(descriptor, text) ? 0 : errno;
  if (::close(descriptor) != 0 && failed == 0) failed = errno;
  if (failed != 0) return cannot_write(failed);
  return {};
}

Result<void> OutputFile::commit() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot_write(errno);
  temporary_.clear();
  return {};
}

tl::unexpected<Error> OutputFile::cannot_write(int problem) const {
  return fail(option_,
              fmt::format("\"{}\" cannot be written: {}", path_.string(), std::strerror(problem)),
              "", ExitCode::kEnvironment);
}

}  // namespace plimsoll::cli
