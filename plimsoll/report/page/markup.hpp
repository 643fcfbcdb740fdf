// Pieces of HTML. Whatever comes from outside (names of models, paths, causes) passes through escaped()
// or script_json().
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/table.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/section.hpp"

namespace plimsoll::report {

// Text for content and for attributes in double quotes. Bytes that are not UTF-8 become U+FFFD, control
// characters '?'.
std::string escaped(std::string_view text);

// A table whose cells know their column's title, so that rows can be stacked on a narrow screen.
std::string table_html(const Table& table);

// A section with the id `id`; nothing for an empty one.
std::string section_html(const Section& section, std::string_view id);

// JSON inside a script element that is data: nothing in it can end the element.
std::string script_json(const Json& json, std::string_view id);

}  // namespace plimsoll::report
