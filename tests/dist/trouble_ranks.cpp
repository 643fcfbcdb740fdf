// The troubles of trouble.hpp on R ranks:
//   trouble_ranks R [PART]       exit 0 when every case (whose name contains PART) is right or refused
//   trouble_ranks R kill PLACE   rank 1 dies in forward, backward or step (kill_test.cpp)
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "plimsoll/engine/library/reference_kernels.hpp"

#include "tests/dist/trouble.hpp"

namespace {

using namespace plimsoll;

std::vector<tests::Trouble> all_troubles() {
  std::vector<tests::Trouble> all;
  for (const auto& list :
       {tests::ownership_troubles(), tests::unit_troubles(), tests::control_flow_troubles(),
        tests::collective_troubles(), tests::number_troubles(), tests::memory_troubles()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

void run_one(const tests::Trouble& trouble, Communicator& world) {
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

int run_all(Communicator& world, const std::string& part) {
  at::set_num_threads(1);
  int count = 0;
  for (const tests::Trouble& trouble : all_troubles()) {
    if (trouble.name.find(part) == std::string::npos) continue;
    run_one(trouble, world);
    ++count;
  }
  if (world.rank() == 0) fmt::print("{} cases at {} ranks\n", count, world.size());
  return count > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  engine::use_reference_kernels();
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string part = argc > 2 ? argv[2] : "";
  if (part == "kill" && argc > 3) {
    return plimsoll::launch(
        argc, argv, ranks, [&](Communicator& world) { return tests::killed_step(world, argv[3]); });
  }
  return plimsoll::launch(argc, argv, ranks,
                          [&](Communicator& world) { return run_all(world, part); });
}
