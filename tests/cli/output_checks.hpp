// What many tests ask of the program's output.
#pragma once

#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/terminal.hpp"

#include "tests/cli/schema_check.hpp"

namespace plimsoll::test {

// The model of the tour.
inline const std::string kMiniGpt = "minigpt:d=128,L=4,V=1000,s=64,heads=4";

// `value` keeps to docs/schema/NAME.json.
inline void check_schema(const std::string& name, const nlohmann::json& value) {
  for (const std::string& violation : schema_violations(read_schema(name), value)) {
    FAIL_CHECK(name, violation);
  }
}

// No line has more than 100 columns.
inline void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(text_width(line) <= 100);
  }
}

}  // namespace plimsoll::test
