// plimsoll train with libtorch: checks, plan, ranks.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/checkpoint/writer.hpp"
#include "plimsoll/cli/metrics_file.hpp"
#include "plimsoll/cli/training.hpp"
#include "plimsoll/cli/training_log.hpp"
#include "plimsoll/comm/last_words.hpp"
#include "plimsoll/comm/launch.hpp"
#include "plimsoll/comm/mpi/mpi.hpp"
#include "plimsoll/comm/mpirun.hpp"
#include "plimsoll/comm/shared/segment.hpp"
#include "plimsoll/comm/torchrun.hpp"
#include "plimsoll/engine/train/trainer.hpp"
#include "plimsoll/engine/zero/launch.hpp"
#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/plan_text.hpp"

namespace plimsoll::cli {
namespace {

engine::Decay decay_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::kConstant:
      return engine::Decay::kConstant;
    case Schedule::kLinear:
      return engine::Decay::kLinear;
    case Schedule::kCosine:
      return engine::Decay::kCosine;
  }
  throw InternalError("unknown schedule");
}

engine::TrainingOptions options_of(const Training& training) {
  engine::TrainingOptions options;
  options.model = training.model;
  options.learning_rate = {training.learning_rate, decay_of(training.schedule), training.warm_up,
                           training.steps};
  options.clip = training.clip;
  options.seed = training.seed;
  options.init = training.init;
  options.held_out = training.held_out;
  options.evaluate_every = training.evaluate_every;
  if (training.skip_not_finite) options.not_finite = engine::OnNotFinite::kSkip;
  options.save = {training.out, training.save_every_steps,
                  std::chrono::minutes(training.save_every_minutes), training.keep,
                  training.resume};
  return options;
}

std::int64_t highest(const plan::Plan& plan) {
  return std::max(plan.first.peak.bytes, plan.steady.peak.bytes);
}

// Why the job does not fit, or none. The device holds one rank, this machine `ranks_here` of them.
std::optional<std::string> misfit(const Training& training, const plan::Plan& plan,
                                  std::int64_t ranks_here) {
  const std::int64_t peak = highest(plan);
  if (training.job.device) {
    const auto budget = hardware::memory_budget(*training.job.device, training.job.reserve);
    if (peak > budget.available()) {
      return fmt::format("peak={} bytes per rank, expected at most {} on {}", grouped(peak),
                         grouped(budget.available()), training.job.device->name);
    }
  }
  const std::int64_t all = checked_mul(peak, ranks_here);
  if (training.memory_available && all > *training.memory_available) {
    return fmt::format("peak={} bytes on {} rank(s), expected at most {} (free on this machine)",
                       grouped(all), ranks_here, grouped(*training.memory_available));
  }
  return std::nullopt;
}

// What ranks left that no launcher of ours has seen die.
void tell_last_words(const Training& training) {
  const auto cause = comm::last_words(training.out);
  if (training.resume && cause) fmt::print(stderr, "before: {}\n", comm::format_cause(*cause));
  comm::remove_last_words(training.out);
}

// The folder of the run: one to go on from, or one that holds no other run.
Result<void> prepare_folder(const Training& training) {
  if (training.resume && !std::filesystem::is_directory(training.out)) {
    return fail("--resume",
                fmt::format("--out {} is not there, expected the folder of a run", training.out));
  }
  const bool replaces = training.force && !training.resume;
  auto ok = MetricsFile::prepare(training.out, training.force || training.resume);
  if (!ok) return ok;
  tell_last_words(training);
  if (training.resume) return ok;
  const auto entries = checkpoint::list_checkpoints(training.out);
  if (!entries) return tl::unexpected(entries.error());
  for (const checkpoint::Entry& entry : *entries) {
    if (!replaces) {
      return fail("--out",
                  fmt::format("{} exists, expected a folder without checkpoints", entry.folder),
                  "--resume to go on, another folder, or --force to remove them");
    }
    std::error_code problem;
    std::filesystem::remove_all(entry.folder, problem);
    if (problem) {
      return fail("--out", fmt::format("{}: {}", entry.folder, problem.message()), "",
                  ExitCode::kEnvironment);
    }
  }
  return {};
}

// A run that was restarted after a fault has both: what it resumes counts, if there is anything.
Result<void> check_init(const Training& training) {
  if (training.init.empty()) return {};
  if (training.resume) {
    return fail("--init", "together with --resume, expected one of them",
                "--resume goes on with the weights of the checkpoint");
  }
  return engine::check_init(training.spec, training.job, options_of(training));
}

// What is checked and told once: before ranks exist, or by rank 0 of those that mpirun has started.
Result<void> begin(const Training& training, const engine::TokenFile& file, const plan::Plan& plan,
                   std::int64_t ranks_here) {
  const auto ok = engine::check_training(training.spec, training.job, options_of(training), file);
  if (!ok) return ok;
  if (auto known = file.check_vocabulary(training.spec.vocabulary); !known) return known;
  if (auto init = check_init(training); !init) return init;
  fmt::print(stderr, "{}\n",
             report::plan_text(plan, report::ShownStep::kSteady, style_of(STDERR_FILENO)));
  if (const auto why = misfit(training, plan, ranks_here); why && !training.force) {
    return fail("train", "does not fit: " + *why,
                "--ranks with --zero, --checkpoint block, a smaller --batch; or --force",
                ExitCode::kCheckFailed);
  }
  return prepare_folder(training);
}

double flops_per_token(const plan::Plan& plan) {
  const auto of = [](const network::FlopCount& flops) {
    return static_cast<double>(flops.matmul) + static_cast<double>(flops.attention_exact);
  };
  const auto tokens = static_cast<double>(plan.job.batch * plan.job.sequence);
  return (of(plan.flops.forward) + of(plan.flops.backward)) / tokens;
}

class Silent final : public engine::TrainingObserver {
 public:
  void stepped(const engine::StepMetrics&) override {}
  void evaluated(const engine::Evaluation&) override {}
  void resumed(std::int64_t) override {}
  void told(const std::string&) override {}
};

// What this process, launcher or rank, has to show.
class Run {
 public:
  Run(Training training, const engine::TokenFile& file, const plan::Plan& plan,
      const TextStyle& style)
      : training_(std::move(training)), file_(file), plan_(plan), style_(style) {}

  const Training& training() const { return training_; }
  void resume() { training_.resume = true; }

  int rank(comm::Communicator& world) {
    try {
      train(world);
      return 0;
    } catch (const engine::TrainingFailed& error) {
      if (world.size() > 1) {
        engine::end_world(world, error.cause());
      } else {
        const std::string& text = error.cause().text;
        fmt::print(stderr, "{}\n", text.starts_with('[') ? text : error.what());
      }
      return static_cast<int>(error.code());
    }
  }

  const std::string& text() const { return text_; }

 private:
  void train(comm::Communicator& world) {
    const engine::TrainingOptions options = options_of(training_);
    if (world.rank() != 0) {
      Silent silent;
      engine::train(training_.spec, training_.job, options, file_, world, silent);
      return;
    }
    TrainingLog log(training_, flops_per_token(plan_), highest(plan_));
    const auto end = engine::train(training_.spec, training_.job, options, file_, world, log);
    text_ = log.summary(end, style_);
  }

  Training training_;
  const engine::TokenFile& file_;
  const plan::Plan& plan_;
  const TextStyle& style_;
  std::string text_;
};

// Starts the ranks with the words of this call.
int launch_once(Run& run) {
  const Training& training = run.training();
  std::vector<std::string> words = training.call;
  words.insert(words.begin(), "plimsoll");
  const bool says_resume = std::find(words.begin(), words.end(), "--resume") != words.end();
  if (training.resume && !says_resume) words.insert(words.begin() + 2, "--resume");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  return engine::zero::launch(argc, argv.data(), training.job.ranks,
                              [&](comm::Communicator& world) { return run.rank(world); });
}

// What a save left that did not come to its end; the next one would remove it, too.
void remove_unfinished(const std::string& folder) {
  const auto entries = checkpoint::list_checkpoints(folder);
  if (!entries) return;
  for (const checkpoint::Entry& entry : *entries) {
    if (!entry.temporary) continue;
    checkpoint::SavePlan plan;
    plan.folder = folder;
    plan.step = entry.step;
    checkpoint::abandon(plan);
  }
}

// Verdicts, bad input, bugs and the user's own signals would come again.
bool is_fault(int code) {
  const auto is = [&](ExitCode other) { return code == static_cast<int>(other); };
  if (is(ExitCode::kOk) || is(ExitCode::kCheckFailed) || is(ExitCode::kBadInput)) return false;
  return !is(ExitCode::kInternal) && code != 128 + SIGINT && code != 128 + SIGTERM;
}

int launch(Run& run) {
  int code = launch_once(run);
  if (comm::is_launched_rank()) return code;
  const std::int64_t restarts = run.training().restarts;
  for (std::int64_t i = 1; i <= restarts && is_fault(code); ++i) {
    fmt::print(stderr, "restart {} of {}\n", i, restarts);
    run.resume();
    code = launch_once(run);
  }
  if (code != 0) remove_unfinished(run.training().out);
  return code;
}

Result<void> check_ranks(const Training& training) {
  if (training.job.ranks <= comm::kMaxRanks) return {};
  return fail("--ranks", fmt::format("ranks={}, expected 1 .. {} on one machine",
                                     training.job.ranks, comm::kMaxRanks));
}

// What only ranks under mpirun can do wrong.
Result<void> check_mpi(const Training& training, int size) {
  if (training.job.ranks != size) {
    return fail("--ranks",
                fmt::format("ranks={}, expected {} as started by mpirun", training.job.ranks, size),
                fmt::format("--ranks {}", size));
  }
  if (training.restarts == 0) return {};
  return fail("--restart", "mpirun ends with its ranks, expected none",
              "call mpirun again with --resume");
}

// One of the ranks that mpirun has started. A refusal is rank 0's to tell.
class MpiRank {
 public:
  MpiRank(Run& run, const engine::TokenFile& file, const plan::Plan& plan, int ranks_here)
      : run_(run), file_(file), plan_(plan), ranks_here_(ranks_here) {}

  int operator()(comm::Communicator& world) {
    std::int64_t code = world.rank() == 0 ? begin_for_all(world) : 0;
    world.broadcast(comm::view(std::span<std::int64_t>(&code, 1)), 0, {"begin"}).wait();
    if (code != 0) return static_cast<int>(code);
    comm::LastWords words(world, run_.training().out);
    return run_.rank(words);
  }

  const std::optional<Error>& refusal() const { return refusal_; }

 private:
  std::int64_t begin_for_all(const comm::Communicator& world) {
    const auto ok = check_mpi(run_.training(), world.size()).and_then([&] {
      return begin(run_.training(), file_, plan_, ranks_here_);
    });
    if (ok) return 0;
    refusal_ = ok.error();
    return static_cast<std::int64_t>(ok.error().code);
  }

  Run& run_;
  const engine::TokenFile& file_;
  const plan::Plan& plan_;
  const int ranks_here_;
  std::optional<Error> refusal_;
};

Result<Output> train_under_mpi(Run& run, const engine::TokenFile& file, const plan::Plan& plan,
                               const comm::MpirunRank& mpirun) {
  const int here = mpirun.host_size.value_or(static_cast<int>(run.training().job.ranks));
  MpiRank rank(run, file, plan, here);
  const int code = comm::launch_mpi(0, nullptr, engine::zero::as_rank(std::ref(rank), here));
  if (rank.refusal()) return tl::unexpected<Error>(*rank.refusal());
  return Output{run.text(), static_cast<ExitCode>(code)};
}

}  // namespace

Result<Output> run_training(const Training& training, const TextStyle& style) {
  const bool launched = comm::is_launched_rank();
  const auto mpirun = launched ? std::nullopt : comm::mpirun_rank();
  if (comm::started_by_torchrun() && !mpirun) {
    return Output{"", static_cast<ExitCode>(comm::refuse_torchrun(
                          "run plimsoll itself with --ranks R, or with mpirun -n R"))};
  }
  const auto file = engine::TokenFile::open(training.data, training.token_bytes);
  if (!file) return tl::unexpected(file.error());
  const auto plan = plan::make_plan(training.spec, training.job);
  if (!plan) return tl::unexpected(plan.error());
  Run run(training, *file, *plan, style);
  if (mpirun) return train_under_mpi(run, *file, *plan, *mpirun);
  if (!launched) {
    const auto ok = check_ranks(training).and_then(
        [&] { return begin(training, *file, *plan, training.job.ranks); });
    if (!ok) return tl::unexpected(ok.error());
  }
  const int code = launch(run);
  return Output{run.text(), static_cast<ExitCode>(code)};
}

}  // namespace plimsoll::cli
