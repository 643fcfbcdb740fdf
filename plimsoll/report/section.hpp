// A titled part of a report. The text of a command and a page of HTML are made from the same one, so
// that they cannot differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/table.hpp"
#include "plimsoll/base/terminal.hpp"

namespace plimsoll::report {

struct Section {
  std::string title;  // empty: there is nothing to say
  std::string facts;  // go on behind the title: " per rank, in bytes"
  std::string lead;   // a sentence above the table
  std::optional<Table> table = {};
  std::vector<std::string> items = {};  // a list below it
  std::vector<std::string> notes = {};  // sentences at the end

  bool empty() const { return title.empty(); }
};

// Lines that end with '\n'; nothing for an empty section.
std::string section_text(const Section& section, const TextStyle& style);

}  // namespace plimsoll::report
