// Ranks that train a tiny model, of which the last one fails at a chosen place:
//   engine_ranks fault_ranks RANKS FAULT PLACE FOLDER
//   mpirun -n RANKS engine_ranks fault_ranks mpi FAULT PLACE FOLDER
//     FAULT   kill, exit, exit0, throw, stop, nan, wrongorder, wrongcount; nospace: files cannot grow;
//             none: resumes, and comes to its end
//     PLACE   forward, backward, reduce, step, save: which collective of which phase, in step 4
//     FOLDER  holds a file "text"; checkpoints of every 2 steps go there
// Each rank tells in a line "rank=..." on stdout what it saw, and after how long.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/comm/faulty.hpp"
#include "plimsoll/comm/last_words.hpp"
#include "plimsoll/comm/mpi/mpi.hpp"
#include "plimsoll/engine/train/trainer.hpp"
#include "plimsoll/engine/zero/launch.hpp"

#include "tests/dist/engine_ranks.hpp"

namespace plimsoll::tests {
namespace {

constexpr std::int64_t kFaultStep = 4;

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(99);
}

comm::FaultKind kind_of(const std::string& name) {
  constexpr std::array<std::pair<const char*, comm::FaultKind>, 8> kNames = {
      {{"kill", comm::FaultKind::kKill},
       {"exit", comm::FaultKind::kExit},
       {"exit0", comm::FaultKind::kExit},
       {"throw", comm::FaultKind::kThrow},
       {"stop", comm::FaultKind::kStop},
       {"nan", comm::FaultKind::kNotANumber},
       {"wrongorder", comm::FaultKind::kWrongOrder},
       {"wrongcount", comm::FaultKind::kWrongCount}}};
  for (const auto& [text, kind] : kNames) {
    if (name == text) return kind;
  }
  throw std::runtime_error("unknown fault " + name);
}

// At stage 3 a block is gathered once for forward and once for backward.
class FaultPlace {
 public:
  explicit FaultPlace(std::string name) : name_(std::move(name)) {}

  bool operator()(const comm::Call& call) {
    if (call.label.step != kFaultStep) return false;
    if (name_ == "forward" || name_ == "backward") {
      if (call.kind != comm::Kind::kAllGather || call.label.unit != "blocks.1") return false;
      return ++calls_ == (name_ == "forward" ? 1 : 2);
    }
    if (name_ == "reduce") return call.kind == comm::Kind::kReduceScatter && ++calls_ == 1;
    if (name_ == "step") return call.label.unit == "gradient norm" && ++calls_ == 1;
    // Before the first of these the folder is made, before the second all have written.
    return call.label.unit == "checkpoint" && ++calls_ == 2;
  }

 private:
  const std::string name_;
  int calls_ = 0;
};

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void limit_files(rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Says when the fault comes, after the others have had time to come to the collective that waits for it.
void announce() {
  std::this_thread::sleep_for(comm::Milliseconds(100));
  say(fmt::format("fails_at={:.3f}", seconds_since_epoch()));
}

// From the first call of the save on files of this rank end after 100 bytes: the system's error of a disk
// that is full.
std::function<bool(const comm::Call&)> ends_files() {
  return [done = false](const comm::Call& call) mutable {
    if (done || call.label.step != kFaultStep || call.label.unit != "checkpoint") return false;
    done = true;
    announce();
    std::signal(SIGXFSZ, SIG_IGN);
    limit_files(100);
    return false;
  };
}

comm::Fault fault_of(const std::string& fault, const std::string& place, bool mine) {
  comm::Fault result;
  result.call = -1;
  if (fault == "none") return result;
  if (fault == "nospace") {
    if (mine) result.when = ends_files();
    return result;
  }
  result.kind = kind_of(fault);
  result.exit_code = fault == "exit0" ? 0 : 9;
  if (!mine) return result;
  if (result.kind == comm::FaultKind::kNotANumber && place == "forward") {
    // Weights that are NaN stay NaN: also when the pass is run again to find out.
    result.when = [](const comm::Call& call) {
      const bool hit = call.label.step == kFaultStep && call.kind == comm::Kind::kAllGather &&
                       call.label.unit == "blocks.1";
      if (hit) announce();
      return hit;
    };
  } else {
    result.when = [is_there = FaultPlace(place)](const comm::Call& call) mutable {
      const bool hit = is_there(call);
      if (hit) announce();
      return hit;
    };
  }
  return result;
}

class TellingObserver final : public engine::TrainingObserver {
 public:
  void stepped(const engine::StepMetrics&) override {}
  void evaluated(const engine::Evaluation&) override {}
  void resumed(std::int64_t) override {}
  void told(const std::string& line) override { say("told: " + line); }
};

void train_with_saves(comm::Communicator& world, const std::string& folder, bool resume) {
  network::NetworkSpec spec;
  spec.family = network::Family::kMiniGpt;
  spec.width = 8;
  spec.layers = 3;
  spec.heads = spec.kv_heads = 2;
  spec.head_dim = 4;
  spec.feed_forward = 32;
  spec.vocabulary = 256;
  spec.positions = 8;
  plan::Job job;
  job.sequence = 8;
  job.ranks = world.size();
  job.stage = shard::Stage::kParameters;
  job.prefetch = 0;
  engine::TrainingOptions options;
  options.learning_rate = {1e-2, engine::Decay::kConstant, 0, 6};
  options.save.folder = folder;
  options.save.every_steps = 2;
  options.save.resume = resume;
  const auto file = or_throw(engine::TokenFile::open(folder + "/text", 1));
  TellingObserver observer;
  engine::train(spec, job, options, file, world, observer);
}

std::string_view type_of(const comm::CommError& error) {
  if (dynamic_cast<const comm::Timeout*>(&error) != nullptr) return "Timeout";
  return dynamic_cast<const comm::Mismatch*>(&error) != nullptr ? "Mismatch" : "PeerLost";
}

void tell(int rank, std::string_view type, const comm::Cause& cause,
          comm::Clock::time_point begin) {
  const std::chrono::duration<double> seconds = comm::Clock::now() - begin;
  say(fmt::format("rank={} pid={} type={} culprit={} step={} seconds={:.2f}", rank, getpid(), type,
                  cause.rank, cause.step, seconds.count()));
}

// When the faulty rank begins its faulty call nobody else knows; time counts from the last call that
// this rank has made before it hears of the fault.
class Timed final : public comm::Decorator {
 public:
  using Decorator::Decorator;
  comm::Clock::time_point last_call() const { return last_call_; }

 protected:
  comm::Work begin_call(const comm::Call& call) override {
    last_call_ = comm::Clock::now();
    return Decorator::begin_call(call);
  }
  std::unique_ptr<Decorator> around(Communicator& inner) override {
    return std::make_unique<Timed>(inner);
  }

 private:
  comm::Clock::time_point last_call_ = comm::Clock::now();
};

int run_with_fault(comm::Communicator& world, const comm::Fault& fault, const std::string& folder,
                   bool resume) {
  say(fmt::format("rank={} pid={} begins", world.rank(), getpid()));
  Timed timed(world);
  comm::Faulty faulty(timed, fault);
  try {
    train_with_saves(faulty, folder, resume);
  } catch (const comm::CommError& error) {
    tell(world.rank(), type_of(error), error.cause(), timed.last_call());
    throw;
  } catch (const engine::TrainingFailed& error) {
    limit_files(RLIM_INFINITY);
    tell(world.rank(), "TrainingFailed", error.cause(), timed.last_call());
    engine::end_world(world, error.cause());
    return static_cast<int>(error.code());
  }
  say(fmt::format("rank={} finished", world.rank()));
  return 0;
}

}  // namespace

int fault_ranks(int argc, char** argv) {
  if (argc < 6) return 2;
  const std::string fault = argv[3];
  const std::string place = argv[4];
  const std::string folder = argv[5];
  comm::LaunchOptions options;
  options.timeout = comm::Milliseconds(1'500);
  options.grace = comm::Milliseconds(500);
  const auto body = [&](comm::Communicator& world) {
    return run_with_fault(world, fault_of(fault, place, world.rank() == world.size() - 1), folder,
                          fault == "none");
  };
  if (std::strcmp(argv[2], "mpi") == 0) {
    const auto mpi_body = [&](comm::Communicator& world) {
      comm::LastWords words(world, folder);
      return body(words);
    };
    return comm::launch_mpi(argc, argv, engine::zero::as_rank(mpi_body),
                            {options.timeout, options.grace});
  }
  return engine::zero::launch(argc, argv, std::atoi(argv[2]), body, options);
}

}  // namespace plimsoll::tests
