// Checkpoints: saving against a raw write and fsync of the same bytes, loading against a raw read, and what
// a save in the background costs the training that goes on.
//   checkpoint_bench [FOLDER]     files go there (default: beside the program)
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/engine/checkpoint/sharded_state.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/engine/train/saver.hpp"
#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/network/families/families.hpp"

#include "bench/harness.hpp"

namespace {

namespace fs = std::filesystem;
using namespace plimsoll;
using bench::at_least;
using bench::at_most;
using bench::Clock;
using bench::Elapsed;
using bench::elapsed;
using bench::interleave;
using bench::Pairs;
using bench::Report;

constexpr std::size_t kPairs = 9;
constexpr std::size_t kBlock = 16 << 20;  // bytes of a raw write or read

// A GPT of 30 million parameters: 360 MB with masters and moments.
network::NetworkSpec spec() {
  network::NetworkSpec spec;
  spec.family = network::Family::kMiniGpt;
  spec.width = 512;
  spec.layers = 9;
  spec.heads = spec.kv_heads = 8;
  spec.head_dim = 64;
  spec.feed_forward = 2048;
  spec.vocabulary = 2048;
  spec.positions = 64;
  return spec;
}

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
}

void raw_write(const std::string& path, const std::vector<std::byte>& block, std::size_t bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail(path);
  for (std::size_t done = 0; done < bytes;) {
    const auto n = write(file, block.data(), std::min(block.size(), bytes - done));
    if (n < 0) fail(path);
    done += static_cast<std::size_t>(n);
  }
  if (fsync(file) != 0) fail(path);
  close(file);
  fs::remove(path);
}

// Into memory of its own, as loading does.
void raw_read(const std::string& path, std::vector<std::byte>& memory) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path);
  std::size_t done = 0;
  while (done < memory.size()) {
    const auto n = read(file, memory.data() + done, std::min(kBlock, memory.size() - done));
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  close(file);
}

class Bench {
 public:
  explicit Bench(std::string folder)
      : folder_(std::move(folder)),
        world_(comm::make_self()),
        job_(job()),
        network_(network::build_network(spec(), job_.build_options())) {
    fs::create_directories(folder_);
    engine::RunnerOptions options;
    options.world = world_.get();
    options.always_shards = true;
    runner_.emplace(network_, job_, options);
    runner_->step();
  }
  ~Bench() { fs::remove_all(folder_); }

  void run() {
    Report report(fmt::format("Checkpoints: {} parameters, fp32, AdamW, one rank",
                              network_.parameter_elements()));
    save_and_load(report);
    background(report);
    report.print();
  }

 private:
  static plan::Job job() {
    plan::Job job;
    job.batch = 8;
    job.sequence = 64;
    job.snapshot = true;
    return job;
  }

  engine::zero::Sharder& sharder() { return runner_->shards()->sharder(); }

  engine::SaveOptions options() const {
    engine::SaveOptions options;
    options.folder = folder_;
    options.keep = 1;
    return options;
  }

  void save_and_load(Report& report) {
    engine::Saver saver(options(), sharder(), {});
    saver.save(++step_, {});
    const std::string folder = (fs::path(folder_) / checkpoint::step_name(step_)).string();
    const std::string file = (fs::path(folder) / checkpoint::rank_file(0)).string();
    const auto bytes = static_cast<std::size_t>(fs::file_size(file));
    report.exact("bytes saved, per parameter",
                 static_cast<double>(bytes) / static_cast<double>(network_.parameter_elements()),
                 "bytes");
    const std::vector<std::byte> block(kBlock, std::byte{1});
    const Pairs saves = interleave(
        kPairs, [&] { return elapsed([&] { raw_write(folder_ + "/raw", block, bytes); }); },
        [&] { return elapsed([&] { saver.save(++step_, {}); }); });
    report.row("save", saves.second(Clock::kWall), 1e3, "ms");
    report.row("speed against raw write + fsync", saves.ratio(Clock::kWall), 1, "ratio",
               at_least(0.9));
    const std::string last = (fs::path(folder_) / checkpoint::step_name(step_)).string();
    std::vector<std::byte> memory(bytes);
    const Pairs loads = interleave(
        kPairs,
        [&] { return elapsed([&] { raw_read(last + "/" + checkpoint::rank_file(0), memory); }); },
        [&] {
          return elapsed([&] {
            auto reader = or_throw(checkpoint::Reader::open(last));
            or_throw(engine::read_state(reader, sharder()));
          });
        });
    report.row("load", loads.second(Clock::kWall), 1e3, "ms");
    report.row("speed against raw read", loads.ratio(Clock::kWall), 1, "ratio", at_least(0.9));
  }

  // The stall is what the step loop waits for: the copy, and later the commit.
  void background(Report& report) {
    engine::Saver saver(options(), sharder(), runner_->snapshot());
    std::vector<double> stalls;
    std::vector<double> steps;
    for (std::size_t i = 0; i < kPairs; ++i) {
      steps.push_back(elapsed([&] { runner_->step(); }).wall);
      double stall = elapsed([&] { saver.save(++step_, {}); }).wall;
      while (!saver.written()) runner_->step();
      stall += elapsed([&] { saver.finish(); }).wall;
      stalls.push_back(stall / steps.back());
    }
    report.row("a step", bench::summarise(steps), 1e3, "ms");
    report.row("stall of a save in the background", bench::summarise(stalls), 1, "steps",
               at_most(1));
  }

  const std::string folder_;
  const std::unique_ptr<comm::Communicator> world_;
  const plan::Job job_;
  const network::Network network_;
  std::optional<engine::Runner> runner_;
  std::int64_t step_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  try {
    const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path();
    Bench(argc > 1 ? argv[1] : (beside / "checkpoint_bench.files").string()).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoint_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
