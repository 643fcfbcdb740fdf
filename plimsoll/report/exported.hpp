// What an export wrote.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/checkpoint/export.hpp"
#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

struct Export {
  checkpoint::Exported exported;
  std::string out;                           // folder
  std::vector<checkpoint::Skipped> skipped;  // newer checkpoints that are not whole
};

std::string export_text(const Export& done, const TextStyle& style);
Json export_json(const Export& done);  // schema plimsoll.export/1

}  // namespace plimsoll::report
