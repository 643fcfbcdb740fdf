// The troubles of trouble.hpp on R ranks:
//   engine_ranks trouble_ranks R [PART]
// Exit 0 when every case (whose name contains PART) is right or refused.
//   engine_ranks trouble_ranks R kill PLACE
// Rank 1 dies in forward, backward or step (kill_test.cpp).
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "plimsoll/engine/library/reference_kernels.hpp"

#include "tests/dist/engine_ranks.hpp"
#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

std::vector<Trouble> all_troubles() {
  std::vector<Trouble> all;
  for (const auto& list : {ownership_troubles(), unit_troubles(), control_flow_troubles(),
                           collective_troubles(), number_troubles(), memory_troubles()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

void check_trouble(const Trouble& trouble, Communicator& world) {
  try {
    trouble.run(world);
    world.barrier().wait();
  } catch (const comm::CommError&) {
    throw;  // another rank tells what it found
  } catch (const c10::Error& error) {
    throw std::runtime_error(trouble.name + "\n  " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw std::runtime_error(trouble.name + "\n  " + error.what());
  }
  if (world.rank() == 0) fmt::print("ok  {}\n", trouble.name);
}

int check_troubles(Communicator& world, const std::string& part) {
  at::set_num_threads(1);
  int count = 0;
  for (const Trouble& trouble : all_troubles()) {
    if (trouble.name.find(part) == std::string::npos) continue;
    check_trouble(trouble, world);
    ++count;
  }
  if (world.rank() == 0) fmt::print("{} cases at {} ranks\n", count, world.size());
  return count > 0 ? 0 : 1;
}

}  // namespace

int trouble_ranks(int argc, char** argv) {
  engine::use_reference_kernels();
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  const std::string part = argc > 3 ? argv[3] : "";
  if (part == "kill" && argc > 4) {
    return plimsoll::launch(argc, argv, ranks,
                            [&](Communicator& world) { return killed_step(world, argv[4]); });
  }
  return plimsoll::launch(argc, argv, ranks,
                          [&](Communicator& world) { return check_troubles(world, part); });
}

}  // namespace plimsoll::tests
