// How fast the planner is: a walk in memory, a search over jobs, and `plimsoll plan` as a process.
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/plan/fit/need.hpp"
#include "plimsoll/plan/fold/folded_walk.hpp"
#include "plimsoll/plan/walk.hpp"

#include "bench/harness.hpp"

namespace {

using plimsoll::bench::at_most;
using plimsoll::bench::Clock;
using plimsoll::bench::repeat;
using plimsoll::bench::Report;
using plimsoll::bench::Summary;
namespace network = plimsoll::network;
namespace plan = plimsoll::plan;
namespace timeline = plimsoll::timeline;

constexpr const char* kModel = "llama-3.1-405b";

plan::Job job_on(plan::Backend backend) {
  plan::Job job;
  job.sequence = 8192;
  job.precision = plan::Precision::kMixed;
  job.backend = backend;
  return job;
}

// Walks and builds are one thread that waits for nothing: CPU time is their time on an idle machine.
void walks(Report& report, const network::NetworkSpec& spec, plan::Backend backend) {
  const plan::Job job = job_on(backend);
  const std::string facts = fmt::format("{} facts", name(backend));
  const network::Network net = network::build_network(spec, job.build_options());
  network::AutogradMemory memory;
  const plan::WalkOptions fresh{.steps = 1, .warm = true};
  plan::WalkOptions reused = fresh;
  reused.memory = &memory;

  std::int64_t whole_peak = 0;
  const auto light_walk = [&](const plan::WalkOptions& options) {
    timeline::PeakSink sink;
    plan::walk(net, job, options, sink);
    whole_peak = sink.peak(0).bytes;
  };
  // As a search does: equal layers are left out and their events written from those of a few.
  const auto folded_walk = [&] {
    timeline::PeakSink sink;
    const auto folded = plan::fold::FoldedNetwork::of(spec, job);
    if (!folded || !plan::fold::walk(*folded, job, reused, sink)) {
      throw std::logic_error("a walk that cannot be folded");
    }
    if (sink.peak(0).bytes != whole_peak) throw std::logic_error("another peak");
  };
  std::size_t events = 0;
  const auto recorded_walk = [&] { events = plan::walk_timeline(net, job, fresh).events.size(); };
  const Summary light = repeat(20, 300, Clock::kCpu, [&] { light_walk(reused); });
  const Summary peak = repeat(20, 300, Clock::kCpu, folded_walk);
  const Summary first = repeat(5, 100, Clock::kCpu, [&] { light_walk(fresh); });
  const Summary recorded = repeat(5, 100, Clock::kCpu, recorded_walk);
  const Summary build =
      repeat(5, 100, Clock::kCpu, [&] { network::build_network(spec, job.build_options()); });
  report.row(fmt::format("peak of a step, from the model, {}", facts), peak, 1e3, "ms", at_most(2));
  report.row("  every layer walked", light, 1e3, "ms");
  report.row("  the same in fresh memory", first, 1e3, "ms");
  report.row(fmt::format("  recorded, {} events", events), recorded, 1e3, "ms", at_most(10));
  report.row(fmt::format("  building the network, {} operations", net.operations.size()), build,
             1e3, "ms");
}

// Jobs of llama-3-8b that a search might ask for, no two alike.
plan::Job variant(int index) {
  plan::Job job = job_on(plan::Backend::kCuda);
  job.device = std::make_shared<const plimsoll::hardware::Device>(
      plimsoll::hardware::device_of_size(80LL << 30, "80GiB"));
  const auto next = [&index](int choices) {
    const int choice = index % choices;
    index /= choices;
    return choice;
  };
  job.stage = static_cast<plimsoll::shard::Stage>(next(4));
  job.checkpoint = static_cast<plan::Checkpoint>(next(3));
  job.ranks = 1 << next(4);
  job.sequence = 1024 << next(4);
  job.batch = 1 + index;
  return job;
}

// What a search pays for: 10,000 jobs, each from its network to its verdict.
void variants(Report& report) {
  constexpr int kVariants = 10'000;
  const auto spec = plimsoll::formats::load_model("llama-3-8b");
  if (!spec) throw std::runtime_error(format_error(spec.error()));
  plan::NeedSearch search(*spec);
  const Summary all = repeat(0, 1, Clock::kCpu, [&] {
    for (int i = 0; i < kVariants; ++i) {
      if (!search.quick(variant(i))) throw std::logic_error("a variant without a need");
    }
  });
  report.row(fmt::format("{} variants of llama-3-8b", kVariants), all, 1, "s", at_most(10));
}

// The config of a truth file, in a file of its own.
std::string config_file(const std::string& name) {
  std::ifstream stream("tests/truth/hf/models/" + name + ".json");
  if (!stream) throw std::runtime_error("run from the repository root: no config of " + name);
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("{}-{}.json", name, getpid());
  std::ofstream(path) << nlohmann::json::parse(stream).at("config");
  return path;
}

// The program beside this one, run to its end with its output thrown away.
void run_program(const std::string& name, std::vector<std::string> arguments) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  arguments.insert(arguments.begin(), path);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  // 1: the job does not fit its device.
  const bool ended = failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  if (!ended || WEXITSTATUS(status) > 1) {
    throw std::runtime_error(path + " failed");
  }
}

// Configs of published models on a card that is too small for most of them, so that changes are
// searched as well: the slowest process of each.
void configs_on_a_card(Report& report) {
  for (const char* name : {"gpt2", "llama-3-8b", "qwen3-8b", "gemma-3-1b", "phi-4", "olmo-2-7b",
                           "pythia-1.4b", "mistral-nemo-12b", "falcon-7b", "bloom-7b1"}) {
    const std::string config = config_file(name);
    for (const char* card : {"rtx-4090", "h100-80g"}) {
      const Summary time = repeat(1, 10, Clock::kWall, [&] {
        run_program("plimsoll", {"plan", config, "--device", card});
      });
      report.row(fmt::format("`plimsoll plan {} --device {}`", name, card), time, 1e3, "ms",
                 at_most(50));
    }
    std::filesystem::remove(config);
  }
}

void process_starts(Report& report) {
  const auto plan_process = [](const char* model) {
    return repeat(2, 40, Clock::kWall, [&] { run_program("plimsoll", {"plan", model}); });
  };
  const Summary small = plan_process("llama-3-8b");
  const Summary large = plan_process(kModel);
  report.row("`plimsoll plan llama-3-8b`, whole process", small, 1e3, "ms", at_most(30));
  report.row(fmt::format("`plimsoll plan {}`, whole process", kModel), large, 1e3, "ms");
}

void run() {
  const auto spec = plimsoll::formats::load_model(kModel);
  if (!spec) throw std::runtime_error(format_error(spec.error()));
  Report report(fmt::format(
      "Planner: {}, batch 1, sequence 8192, mixed precision, AdamW, one step (CPU time; processes: "
      "wall time)",
      kModel));
  walks(report, *spec, plan::Backend::kCpu);
  walks(report, *spec, plan::Backend::kCuda);
  variants(report);
  process_starts(report);
  configs_on_a_card(report);
  report.print();
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "planner_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
