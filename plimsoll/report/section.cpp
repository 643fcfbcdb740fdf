#include "plimsoll/report/section.hpp"

namespace plimsoll::report {
namespace {

std::string sentence(const std::string& text, const TextStyle& style) {
  return text.empty() ? "" : "  " + wrapped(text, 2, 4, style.width) + "\n";
}

}  // namespace

std::string section_text(const Section& section, const TextStyle& style) {
  if (section.empty()) return "";
  std::string text = bold(section.title, style) + section.facts + "\n";
  text += sentence(section.lead, style);
  if (section.table) text += section.table->text(style);
  for (const std::string& item : section.items) {
    text += "  - " + wrapped(item, 4, 4, style.width) + "\n";
  }
  for (const std::string& note : section.notes) text += sentence(note, style);
  return text;
}

}  // namespace plimsoll::report
