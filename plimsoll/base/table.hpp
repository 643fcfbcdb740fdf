// Aligned text for people: tables and paragraphs that fit a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/terminal.hpp"

namespace plimsoll {

enum class Align : std::uint8_t {
  kLeft,
  kRight,  // numbers
  kWrap,   // left, and broken at blanks into what the line leaves; only for the last column
};

struct Column {
  std::string title;
  Align align = Align::kRight;
};

// A row of a table; `rule`: a line of dashes under the numbers above.
struct TableRow {
  std::vector<std::string> cells;
  bool rule = false;
};

// Rows of cells under titles. Columns are as wide as their widest cell, two blanks apart.
class Table {
 public:
  explicit Table(std::vector<Column> columns, std::size_t indent = 2);

  // At most as many cells as columns; missing ones are empty.
  void row(std::vector<std::string> cells);
  // A line of dashes under the numbers above: a sum follows.
  void rule();

  // Lines that end with '\n', without trailing blanks. Titles that are all empty take no line.
  std::string text(const TextStyle& style) const;

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<TableRow>& rows() const { return rows_; }  // each with a cell per column

 private:
  std::vector<std::size_t> widths() const;
  std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                   std::size_t line_width) const;
  std::string rule_line(const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<TableRow> rows_;
  std::size_t indent_;
};

// `text` broken at blanks into lines of at most `width` columns, joined by '\n' and `indent` blanks;
// the first line begins where the caller is, at column `begin`. Words are never cut.
std::string wrapped(std::string_view text, std::size_t begin, std::size_t indent,
                    std::size_t width);

}  // namespace plimsoll
