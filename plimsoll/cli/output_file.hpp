// A file that is written whole or not at all: under a temporary name in the same folder, then renamed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"

namespace plimsoll::cli {

// False when not all could be written; errno says why.
bool write_all(int descriptor, std::string_view text);

class OutputFile {
 public:
  // Refused with exit code 2: what is there and no regular file, a folder that is not there, a file that
  // the command reads (`inputs`); with 3: what the machine cannot write. `option`: where the path comes
  // from, for messages. Replaces a regular file that is there once it is committed; a link to one is
  // followed.
  static Result<OutputFile> write(const std::string& option, const std::string& path,
                                  const std::vector<std::string>& inputs, std::string_view text);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes what was not committed

  const std::filesystem::path& path() const { return path_; }  // without links

  // Gives the file its name.
  Result<void> commit();

 private:
  OutputFile(std::string option, std::filesystem::path path);
  Result<void> fill(std::string_view text);
  tl::unexpected<Error> cannot_write(int problem) const;

  std::string option_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: there is none
};

}  // namespace plimsoll::cli
