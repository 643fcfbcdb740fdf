// Reads whole files that somebody named on the command line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "plimsoll/base/error.hpp"

namespace plimsoll::formats {

// The contents of a regular file of at most `most_bytes`. Devices, pipes, folders, missing and
// unreadable files are refused without being opened or read to the end, so this never hangs.
Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t most_bytes);

// What a path is, for messages: "a folder", "a pipe", "a device" ...
std::string kind_of_file(std::filesystem::file_type type);

}  // namespace plimsoll::formats
