// Tables of documents that a test makes: each stands behind a marker, and is replaced when
// UPDATE_GOLDEN is set.
//
//   <!-- table: traffic -->
//   | stage | ...
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace plimsoll::test {

// The document with the table behind a marker replaced.
inline std::string with_table(const std::string& document, const std::string& name,
                              const std::string& table) {
  const std::string marker = "<!-- table: " + name + " -->\n";
  const std::size_t begin = document.find(marker);
  if (begin == std::string::npos) throw std::runtime_error("no marker " + marker);
  const std::size_t start = begin + marker.size();
  std::size_t end = start;
  while (end < document.size() && document[end] == '|') end = document.find('\n', end) + 1;
  return document.substr(0, start) + table + document.substr(end);
}

inline std::string read_document(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("no document " + path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// With UPDATE_GOLDEN in the environment the document becomes `now`; true when it is `now`.
inline bool is_up_to_date(const std::string& path, const std::string& now) {
  const bool same = read_document(path) == now;
  if (std::getenv("UPDATE_GOLDEN") != nullptr && !same) std::ofstream(path) << now;
  return same || std::getenv("UPDATE_GOLDEN") != nullptr;
}

}  // namespace plimsoll::test
