// Checks of tables in documents, for doctest programs.
#pragma once

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "tests/document_table.hpp"

namespace plimsoll::test {

// Checks the tables of a document by name, or rewrites them.
inline void check_tables(const std::string& path,
                         const std::map<std::string, std::string>& tables) {
  std::string now = read_document(path);
  for (const auto& [name, table] : tables) now = with_table(now, name, table);
  CHECK_MESSAGE(is_up_to_date(path, now), path);
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
