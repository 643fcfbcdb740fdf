#include "plimsoll/cli/engine_program.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace plimsoll::cli {

bool wants_engine(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return false;
  return arguments[0] == "measure" || arguments[0] == "train" || arguments[0] == "doctor";
}

void become_engine_program(char** argv) {
  std::error_code failed;
  // MKL ends the process while it loads, in words of its own, where the working directory is gone.
  // `doctor` reads no files, so it may run elsewhere; `measure` refuses by itself.
  if (std::filesystem::current_path(failed).empty()) {
    if (std::string_view(argv[1]) != "doctor" || chdir("/") != 0) return;
  }
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return;
  const std::filesystem::path engine = self.parent_path() / "plimsoll-engine";
  if (access(engine.c_str(), X_OK) == 0) execv(engine.c_str(), argv);
}

}  // namespace plimsoll::cli
