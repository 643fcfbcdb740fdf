// Tables of documents that a test makes: each stands behind a marker, and is replaced when
// UPDATE_GOLDEN is set.
//
//   <!-- table: traffic -->
//   | stage | ...
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <doctest/doctest.h>

namespace plimsoll::test {

// The document with the table behind a marker replaced.
inline std::string with_table(const std::string& document, const std::string& name,
                              const std::string& table) {
  const std::string marker = "<!-- table: " + name + " -->\n";
  const std::size_t begin = document.find(marker);
  REQUIRE_MESSAGE(begin != std::string::npos, marker);
  const std::size_t start = begin + marker.size();
  std::size_t end = start;
  while (end < document.size() && document[end] == '|') end = document.find('\n', end) + 1;
  return document.substr(0, start) + table + document.substr(end);
}

// Checks the tables of a document by name, or rewrites them.
inline void check_tables(const std::string& path,
                         const std::map<std::string, std::string>& tables) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  const std::string document((std::istreambuf_iterator<char>(file)), {});
  std::string now = document;
  for (const auto& [name, table] : tables) now = with_table(now, name, table);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  CHECK(now == document);
}

// Figures that a text prints beside ours, row by row; each must be equal.
class Comparison {
 public:
  explicit Comparison(const std::string& source)
      : text_("| figure | " + source + " | plimsoll |\n|---|---:|---:|\n") {}

  void add(const std::string& figure, const std::string& printed, const std::string& ours) {
    CAPTURE(figure);
    CHECK(printed == ours);
    text_ += "| " + figure + " | " + printed + " | " + ours + " |\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace plimsoll::test
