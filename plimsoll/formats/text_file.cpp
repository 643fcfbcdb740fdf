#include "plimsoll/formats/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace plimsoll::formats {
namespace {

namespace fs = std::filesystem;

Result<void> check_regular(const fs::path& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (status.type() == fs::file_type::not_found) {
    return fail(path.string(), "no such file");
  }
  if (problem) return fail(path.string(), fmt::format("cannot be read: {}", problem.message()));
  if (status.type() == fs::file_type::regular) return {};
  return fail(path.string(),
              fmt::format("is {}, expected a regular file", kind_of_file(status.type())));
}

}  // namespace

std::string kind_of_file(fs::file_type type) {
  switch (type) {
    case fs::file_type::regular:
      return "a regular file";
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "of an unknown kind";
  }
}

Result<std::string> read_text_file(const fs::path& path, std::size_t most_bytes) {
  if (auto regular = check_regular(path); !regular) {
    return tl::unexpected<Error>(regular.error());
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(path.string(), fmt::format("cannot be read: {}", std::strerror(errno)));
  // Sizes of special file systems read 0, so the limit is checked while reading.
  std::string text;
  std::string chunk(64 * 1024, '\0');
  while (text.size() <= most_bytes) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    text.append(chunk, 0, static_cast<std::size_t>(file.gcount()));
    if (!file) break;
  }
  if (text.size() > most_bytes) {
    return fail(path.string(), fmt::format("has more than {} bytes", most_bytes));
  }
  if (file.bad()) return fail(path.string(), "cannot be read: input error");
  return text;
}

}  // namespace plimsoll::formats
