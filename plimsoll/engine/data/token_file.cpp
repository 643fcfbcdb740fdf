#include "plimsoll/engine/data/token_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::engine {
namespace {

namespace fs = std::filesystem;

// The size of a regular file in bytes. Nothing else is opened: a pipe would hang.
Result<std::int64_t> regular_size(const std::string& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (status.type() == fs::file_type::not_found) return fail(path, "no such file");
  if (problem) return fail(path, "cannot be read: " + problem.message());
  if (status.type() != fs::file_type::regular) {
    return fail(
        path, fmt::format("is {}, expected a regular file", formats::kind_of_file(status.type())));
  }
  const auto bytes = fs::file_size(path, problem);
  if (problem) return fail(path, "cannot be read: " + problem.message());
  return static_cast<std::int64_t>(bytes);
}

std::int64_t decode(const unsigned char* bytes, int width) {
  std::int64_t token = 0;
  for (int i = width - 1; i >= 0; --i) token = token << 8 | bytes[i];
  return token;
}

}  // namespace

Result<TokenFile> TokenFile::open(const std::string& path, int token_bytes) {
  check(token_bytes == 1 || token_bytes == 2 || token_bytes == 4, "tokens of 1, 2 or 4 bytes");
  const auto bytes = regular_size(path);
  if (!bytes) return tl::unexpected(bytes.error());
  if (*bytes == 0) return fail(path, "is empty, expected tokens");
  if (*bytes % token_bytes != 0) {
    return fail(
        path,
        fmt::format("bytes={}, expected a multiple of {} bytes per token", *bytes, token_bytes),
        "--token-bytes says how wide the tokens of a .bin file are");
  }
  TokenFile file;
  file.path_ = path;
  file.file_.reset(std::fopen(path.c_str(), "rbe"));
  if (!file.file_) return fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  file.token_bytes_ = token_bytes;
  file.tokens_ = *bytes / token_bytes;
  return file;
}

Result<void> TokenFile::check_vocabulary(std::int64_t vocabulary) const {
  constexpr std::int64_t kBytes = 256;
  if (token_bytes_ == 1) {
    if (vocabulary >= kBytes) return {};
    return fail(path_,
                fmt::format("text is read as bytes, and the model has vocabulary={}, expected at "
                            "least {}",
                            vocabulary, kBytes),
                "a model with V=256, or a .bin file of tokens");
  }
  std::vector<std::int64_t> tokens(std::size_t{1} << 16);
  for (std::int64_t first = 0; first < tokens_; first += std::ssize(tokens)) {
    tokens.resize(
        static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(tokens), tokens_ - first)));
    read(first, tokens);
    const auto beyond =
        std::find_if(tokens.begin(), tokens.end(), [&](std::int64_t t) { return t >= vocabulary; });
    if (beyond == tokens.end()) continue;
    return fail(path_,
                fmt::format("token={} at position {}, expected below {} (the model's vocabulary)",
                            *beyond, first + (beyond - tokens.begin()), vocabulary),
                "the file was made with another tokenizer, or --token-bytes is wrong");
  }
  return {};
}

void TokenFile::read(std::int64_t first, std::span<std::int64_t> tokens) const {
  std::vector<unsigned char> bytes(tokens.size() * static_cast<std::size_t>(token_bytes_));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto offset = first * token_bytes_ + static_cast<std::int64_t>(done);
    const ssize_t n = pread(fileno(file_.get()), bytes.data() + done, bytes.size() - done, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw std::runtime_error(
          fmt::format("[{}] token {} cannot be read: {}", path_, first,
                      n == 0 ? "the file has become shorter" : std::strerror(errno)));
    }
    done += static_cast<std::size_t>(n);
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = decode(bytes.data() + i * static_cast<std::size_t>(token_bytes_), token_bytes_);
  }
}

}  // namespace plimsoll::engine
