// The program whose ranks the tests of `shm` (and of `mpi`, under mpirun) start:
//
//   comm_ranks RANKS SCENARIO [KIND]
//   mpirun -n RANKS comm_ranks mpi SCENARIO [KIND]
//
// Ranks tell what they saw in lines "key=value ..." on stdout, one write each.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/comm/checked.hpp"
#include "plimsoll/comm/faulty.hpp"
#include "plimsoll/comm/launch.hpp"
#include "plimsoll/comm/mpi/mpi.hpp"
#include "plimsoll/comm/shared/control.hpp"

#include "tests/dist/conformance.hpp"

namespace {

using namespace plimsoll;
using comm::Communicator;

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(99);
}

std::string_view type_of(const comm::CommError& error) {
  if (dynamic_cast<const comm::Timeout*>(&error) != nullptr) return "Timeout";
  return dynamic_cast<const comm::Mismatch*>(&error) != nullptr ? "Mismatch" : "PeerLost";
}

comm::FaultKind kind_of(const std::string& name) {
  constexpr std::array<const char*, 7> kNames = {"throw", "stall",      "exit",      "kill",
                                                 "stop",  "wrongorder", "wrongcount"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<comm::FaultKind>(i);
  }
  throw std::runtime_error("unknown fault " + name);
}

// Ten steps of three collectives.
void train(Communicator& world) {
  std::vector<float> gradients(3000 * static_cast<std::size_t>(world.size()), 1.F);
  std::vector<float> shard(3000);
  for (int step = 0; step < 10; ++step) {
    world
        .all_gather(comm::view(std::span<const float>(shard)), comm::view(std::span(gradients)),
                    {"layers.0", step})
        .wait();
    comm::Work reduced = world.reduce_scatter(comm::view(std::span<const float>(gradients)),
                                              comm::view(std::span(shard)), {"layers.1", step});
    reduced.wait();
    world.barrier({"step", step}).wait();
  }
}

// The last rank fails at its 8th collective (step 2, layers.1); the others tell what they get.
int fault(Communicator& world, const std::string& kind, bool checked) {
  comm::Fault plan{kind_of(kind == "exit0" ? "exit" : kind), 7, comm::Milliseconds(30'000),
                   kind == "exit0" ? 0 : 9};
  if (world.rank() != world.size() - 1) plan.call = -1;
  comm::Faulty faulty(world, plan);
  comm::Checked with_check(world);
  comm::Faulty faulty_checked(with_check, plan);
  Communicator& group = checked ? static_cast<Communicator&>(faulty_checked) : faulty;
  const auto begin = comm::Clock::now();
  try {
    train(group);
  } catch (const comm::CommError& error) {
    const std::chrono::duration<double> after = comm::Clock::now() - begin;
    say(fmt::format("rank={} type={} culprit={} step={} unit={} operation={} seconds={:.2f}",
                    world.rank(), type_of(error), error.rank(), error.cause().step,
                    error.cause().unit, error.cause().operation, after.count()));
    throw;
  }
  say(fmt::format("rank={} finished", world.rank()));
  return 0;
}

// How many bytes of memory the segment of this rank has.
std::int64_t segment_bytes() {
  DIR* folder = opendir("/proc/self/fd");
  std::int64_t bytes = -1;
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    std::array<char, 64> target{};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(path.c_str(), target.data(), target.size() - 1) < 0) continue;
    if (std::strncmp(target.data(), "/memfd:plimsoll", 15) != 0) continue;
    struct stat state {};
    if (stat(path.c_str(), &state) == 0) bytes = state.st_blocks * 512;
  }
  if (folder != nullptr) closedir(folder);
  return bytes;
}

// Private tensors of 8 MB pass through; the segment stays as small as its manual says.
int memory(Communicator& world) {
  std::vector<float> input(2 << 20, 1.F);
  std::vector<float> output(input.size());
  for (int i = 0; i < 3; ++i) {
    world.all_reduce(comm::view(std::span<const float>(input)), comm::view(std::span(output)))
        .wait();
  }
  const std::int64_t bound = 64 * 1024 + comm::block_bytes(world.size());
  say(fmt::format("rank={} bytes={} bound={}", world.rank(), segment_bytes(), bound));
  return segment_bytes() > 0 && segment_bytes() <= bound ? 0 : 1;
}

std::atomic<int> received{0};

// Works until a signal comes, then all "save" together and leave.
int until_signal(Communicator& world) {
  for (const int number : {SIGTERM, SIGINT}) {
    std::signal(number, [](int) { received.fetch_add(1); });
  }
  say(fmt::format("rank={} pid={} ready", world.rank(), getpid()));
  while (true) {
    std::int64_t stop = received.load();
    std::int64_t all = 0;
    world
        .all_reduce(comm::view(std::span<const std::int64_t>(&stop, 1)),
                    comm::view(std::span(&all, 1)), {"stop?"})
        .wait();
    if (all > 0) break;
    std::this_thread::sleep_for(comm::Milliseconds(5));
  }
  // Time for a second delivery, which must not come.
  std::this_thread::sleep_for(comm::Milliseconds(200));
  world.barrier().wait();
  say(fmt::format("rank={} signals={} saved", world.rank(), received.load()));
  return 0;
}

int sleep_for_ever(Communicator& world) {
  say(fmt::format("rank={} pid={} ready", world.rank(), getpid()));
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int run(Communicator& world, const std::string& scenario, const std::string& kind) {
  if (scenario == "conformance") {
    test::run_conformance(world);
    comm::Checked checked(world);
    test::ConformanceOptions small;
    small.large_bytes = 1 << 20;
    small.random_pauses = true;
    if (kind == "checked") test::run_conformance(checked, small);
    return 0;
  }
  if (scenario == "fault") return fault(world, kind, false);
  if (scenario == "checked-fault") return fault(world, kind, true);
  if (scenario == "memory") return memory(world);
  if (scenario == "signal") return until_signal(world);
  if (scenario == "sleep") return sleep_for_ever(world);
  if (scenario == "code") return world.rank() == 1 ? std::atoi(kind.c_str()) : 0;
  if (scenario == "stdin") {
    char letter = 0;
    const auto length = read(STDIN_FILENO, &letter, 1);
    say(fmt::format("rank={} read={}", world.rank(), length));
    return 0;
  }
  throw std::runtime_error("unknown scenario " + scenario);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string scenario = argv[2];
  const std::string kind = argc > 3 ? argv[3] : "";
  comm::LaunchOptions options;
  options.timeout = comm::Milliseconds(scenario.ends_with("fault") ? 2'000 : 60'000);
  options.grace = comm::Milliseconds(1'000);
  if (std::strcmp(argv[1], "mpi") == 0) {
    return comm::launch_mpi(argc, argv,
                            [&](Communicator& world) { return run(world, scenario, kind); },
                            {options.timeout});
  }
  return comm::launch(
      argc, argv, std::atoi(argv[1]),
      [&](Communicator& world) { return run(world, scenario, kind); }, options);
}
