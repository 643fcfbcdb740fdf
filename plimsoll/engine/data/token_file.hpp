// A file of tokens: text, of which every byte is a token, or a `.bin` of little-endian numbers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "plimsoll/base/error.hpp"

namespace plimsoll::engine {

class TokenFile {
 public:
  // `token_bytes`: 1 for text, 2 or 4 for unsigned numbers. Refused: what is not a regular file, an
  // empty one, and one that ends inside a token. `where` of these errors is the path.
  static Result<TokenFile> open(const std::string& path, int token_bytes);

  const std::string& path() const { return path_; }
  std::int64_t size() const { return tokens_; }  // in tokens
  int token_bytes() const { return token_bytes_; }

  // Reads the whole file: the first token that is not below `vocabulary` is an error that names it and
  // its place. Bytes need a vocabulary of at least 256, whatever the text holds.
  Result<void> check_vocabulary(std::int64_t vocabulary) const;

  // Tokens [first, first + tokens.size()). Throws std::runtime_error when the file has changed since
  // open() so that they are not there.
  void read(std::int64_t first, std::span<std::int64_t> tokens) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int token_bytes_ = 1;
  std::int64_t tokens_ = 0;
};

}  // namespace plimsoll::engine
