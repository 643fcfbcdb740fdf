#include "tests/dist/engine_ranks.hpp"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace {

struct Entry {
  std::string_view name;
  int (*main)(int argc, char** argv);
};

constexpr std::array<Entry, 8> kEntries = {
    {{"module_ranks", plimsoll::tests::module_ranks},
     {"job_ranks", plimsoll::tests::job_ranks},
     {"states_ranks", plimsoll::tests::states_ranks},
     {"trouble_ranks", plimsoll::tests::trouble_ranks},
     {"joined_batch_ranks", plimsoll::tests::joined_batch_ranks},
     {"fault_ranks", plimsoll::tests::fault_ranks},
     {"init_ranks", plimsoll::tests::init_ranks},
     {"checkpoint_ranks", plimsoll::tests::checkpoint_ranks}}};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  std::string names;
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.main(argc, argv);
    names += fmt::format(" {}", entry.name);
  }
  fmt::print(stderr, "[engine_ranks] NAME=\"{}\", expected one of{}\n", name, names);
  return 2;
}
