// The planner's program. Commands that need libtorch go on in the engine's.
#include "plimsoll/cli/engine_program.hpp"
#include "plimsoll/cli/program.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (plimsoll::cli::wants_engine(arguments)) plimsoll::cli::become_engine_program(argv);
  return plimsoll::cli::run_program(arguments);
}
