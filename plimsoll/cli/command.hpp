// A command of the program: what it accepts, and a function from what was given to its output.
//
// Commands print nothing and end nothing: main writes their text to stdout, or their Error to stderr.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/base/terminal.hpp"

namespace plimsoll::cli {

struct Option {
  std::string name;   // "--batch"
  std::string value;  // what stands for its value in the help; empty: a flag
  std::string help;
  std::string group = "Options";
};

struct Syntax {
  std::string name;
  std::string summary;     // one line
  std::string positional;  // "MODEL", "[NAME]": may be left out, or empty: none
  std::vector<Option> options;
  // Further words: "TERM", "[TERM]", and last "[SIZE...]": any number.
  std::vector<std::string> further = {};
};

// The arguments of one call.
class Given {
 public:
  std::string positional;                     // "" when it may be left out and was
  std::vector<std::string> further;           // words after it
  std::map<std::string, std::string> values;  // by option name; flags have ""
  std::vector<std::string> call;              // all words of the call, the command first

  bool has(const std::string& option) const { return values.contains(option); }
  // The value of an option, or null when it was not given.
  const std::string* find(const std::string& option) const;
};

struct Output {
  std::string text;  // all of stdout
  ExitCode code = ExitCode::kOk;
};

struct Command {
  Syntax syntax;
  Result<Output> (*run)(const Given&, const TextStyle&);
};

// One per file.
Command params_command();
Command plan_command();
Command fit_command();
Command diff_command();
Command math_command();
Command infer_command();
Command explain_command();
Command measure_command();
Command report_command();
Command train_command();
Command checkpoint_command();
Command export_command();
Command models_command();
Command devices_command();
Command doctor_command();

// All of them, in the order of the help.
const std::vector<Command>& commands();

}  // namespace plimsoll::cli
