#include "plimsoll/base/table.hpp"

#include <algorithm>

#include "plimsoll/base/error.hpp"

namespace plimsoll {
namespace {

constexpr std::size_t kGap = 2;

void strip_trailing_blanks(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string padded(std::string_view cell, std::size_t width, Align align) {
  const std::size_t used = text_width(cell);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::kRight ? blanks + std::string(cell) : std::string(cell) + blanks;
}

}  // namespace

Table::Table(std::vector<Column> columns, std::size_t indent)
    : columns_(std::move(columns)), indent_(indent) {}

void Table::row(std::vector<std::string> cells) {
  check(cells.size() <= columns_.size(), "more cells than columns");
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), false});
}

void Table::rule() { rows_.push_back({std::vector<std::string>(columns_.size()), true}); }

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = text_width(columns_[i].title);
    for (const TableRow& row : rows_) width = std::max(width, text_width(row.cells[i]));
    widths.push_back(width);
  }
  return widths;
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<std::size_t>& widths, std::size_t line_width) const {
  std::string line(indent_, ' ');
  std::size_t column = indent_;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) {
      line += std::string(kGap, ' ');
      column += kGap;
    }
    if (columns_[i].align == Align::kWrap) {
      line += wrapped(cells[i], column, column, line_width);
    } else {
      line += padded(cells[i], widths[i], columns_[i].align);
    }
    column += widths[i];
  }
  strip_trailing_blanks(line);
  return line;
}

std::string Table::rule_line(const std::vector<std::size_t>& widths) const {
  std::vector<std::string> dashes;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool number = columns_[i].align == Align::kRight;
    dashes.emplace_back(number ? widths[i] : 0, '-');
  }
  return line(dashes, widths, SIZE_MAX);
}

std::string Table::text(const TextStyle& style) const {
  const std::vector<std::size_t> column_widths = widths();
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string text;
  const bool titled =
      std::any_of(titles.begin(), titles.end(), [](const auto& t) { return !t.empty(); });
  if (titled) text += dim(line(titles, column_widths, SIZE_MAX), style) + '\n';
  for (const TableRow& row : rows_) {
    text += row.rule ? dim(rule_line(column_widths), style)
                     : line(row.cells, column_widths, style.width);
    text += '\n';
  }
  return text;
}

std::string wrapped(std::string_view text, std::size_t begin, std::size_t indent,
                    std::size_t width) {
  std::string result;
  std::size_t column = begin;
  bool line_is_empty = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t needed = text_width(word) + (line_is_empty ? 0 : 1);
    if (!line_is_empty && column + needed > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!line_is_empty) {
      result += ' ';
      ++column;
    }
    result += word;
    column += text_width(word);
    line_is_empty = false;
  }
  return result;
}

}  // namespace plimsoll
