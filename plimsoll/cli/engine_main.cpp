// The engine's program: the same command line, with libtorch.
#include "plimsoll/cli/program.hpp"

int main(int argc, char** argv) {
  return plimsoll::cli::run_program(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
