#include "plimsoll/report/page/markup.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/utf8.hpp"

namespace plimsoll::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string valid_utf8(std::string_view text) {
  std::string result;
  while (const auto bad = formats::first_invalid_utf8(text)) {
    result += text.substr(0, *bad);
    result += kReplacement;
    text.remove_prefix(*bad + 1);
  }
  return result += text;
}

std::string_view class_of(Align align) { return align == Align::kRight ? "number" : "text"; }

std::string head_html(const Table& table) {
  std::string cells;
  bool titled = false;
  for (const Column& column : table.columns()) {
    titled = titled || !column.title.empty();
    cells += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", class_of(column.align),
                         escaped(column.title));
  }
  return titled ? "<thead><tr>" + cells + "</tr></thead>\n" : "";
}

std::string cell_html(const std::string& text, const Column& column, bool heads_row) {
  const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t last = text.find_last_not_of(' ') + 1;
  const std::string inner = first < last ? text.substr(first, last - first) : "";
  const std::string title =
      column.title.empty() ? "" : fmt::format(" data-title=\"{}\"", escaped(column.title));
  return fmt::format("<{0} class=\"{1}{2}\"{3}>{4}</{5}>", heads_row ? "th scope=\"row\"" : "td",
                     class_of(column.align), first > 0 && heads_row ? " part" : "", title,
                     escaped(inner), heads_row ? "th" : "td");
}

std::string row_html(const TableRow& row, const std::vector<Column>& columns, bool sum) {
  std::string html = sum ? "<tr class=\"sum\">" : "<tr>";
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const bool heads = i == 0 && columns[0].align == Align::kLeft;
    html += cell_html(row.cells[i], columns[i], heads);
  }
  return html + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : visible(valid_utf8(text))) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string table_html(const Table& table) {
  std::string html = "<table>\n" + head_html(table) + "<tbody>\n";
  bool sum = false;
  for (const TableRow& row : table.rows()) {
    if (!row.rule) html += row_html(row, table.columns(), sum);
    sum = row.rule;
  }
  return html + "</tbody>\n</table>\n";
}

std::string section_html(const Section& section, std::string_view id) {
  if (section.empty()) return "";
  std::string html = fmt::format("<section id=\"{}\">\n<h2>{}<span>{}</span></h2>\n", id,
                                 escaped(section.title), escaped(section.facts));
  const auto paragraph = [&](const std::string& text) {
    if (!text.empty()) html += "<p>" + escaped(text) + "</p>\n";
  };
  paragraph(section.lead);
  if (section.table) html += table_html(*section.table);
  if (!section.items.empty()) {
    html += "<ul>\n";
    for (const std::string& item : section.items) html += "<li>" + escaped(item) + "</li>\n";
    html += "</ul>\n";
  }
  for (const std::string& note : section.notes) paragraph(note);
  return html + "</section>\n";
}

std::string script_json(const Json& json, std::string_view id) {
  const std::string text =
      json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, safe);
}

}  // namespace plimsoll::report
