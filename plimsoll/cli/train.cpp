// plimsoll train MODEL: its options. What they start: training.hpp.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/machine.hpp"
#include "plimsoll/cli/training.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/comm/launch.hpp"
#include "plimsoll/comm/mpirun.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/recipe_checks.hpp"

namespace plimsoll::cli {
namespace {

constexpr double kHeldOut = 0.1;  // when an evaluation is asked for and no share is given

// Reads options one by one and keeps the first problem.
class Reader {
 public:
  Reader(const Given& given, Training& training) : given_(given), t_(training) {}

  Result<void> read() {
    t_.data = needed("--data", "a text file, or a .bin file of tokens");
    t_.steps = whole("--steps", 1, 1, std::int64_t{1} << 40);
    needed("--steps", "the number of steps");
    if (!needed("--lr", "the learning rate, such as 3e-4").empty()) t_.learning_rate = rate("--lr");
    t_.out = needed("--out", "a folder for the metrics");
    if (given_.has("--init")) t_.init = needed("--init", "weights");
    read_schedule();
    if (given_.has("--clip")) t_.clip = rate("--clip");
    t_.seed = static_cast<std::uint64_t>(whole("--seed", 0, 0, INT64_MAX));
    read_evaluation();
    read_token_bytes();
    read_saving();
    read_faults();
    t_.force = given_.has("--force");
    if (error_) return tl::unexpected<Error>(*error_);
    return {};
  }

  // What was not given, as jobs say it.
  const std::vector<std::string>& assumptions() const { return assumptions_; }

 private:
  void refuse(const std::string& option, std::string what, std::string hint = {}) {
    if (!error_) error_ = Error{option, std::move(what), std::move(hint)};
  }

  template <class T>
  T value_of(const Result<T>& result) {
    if (!result && !error_) error_ = result.error();
    return result.value_or(T{});
  }

  void assume(const std::string& what) { assumptions_.push_back(what + ": not given"); }

  std::string needed(const std::string& option, const std::string& what) {
    const std::string* text = given_.find(option);
    if (text != nullptr && !text->empty()) return *text;
    refuse(option, "is missing, expected " + what);
    return "";
  }

  double rate(const std::string& option) {
    return value_of(parse_rate(option, *given_.find(option)));
  }

  std::int64_t whole(const std::string& option, std::int64_t standard, std::int64_t least,
                     std::int64_t most) {
    const std::string* text = given_.find(option);
    return text == nullptr ? standard : value_of(parse_whole(option, *text, least, most));
  }

  void read_schedule() {
    t_.warm_up = whole("--warm-up", 0, 0, INT64_MAX);
    if (!error_ && t_.warm_up >= t_.steps) {
      refuse("--warm-up",
             fmt::format("steps={}, expected fewer than --steps {}", t_.warm_up, t_.steps));
    }
    const std::string* text = given_.find("--schedule");
    if (text == nullptr) return assume("schedule cosine");
    if (*text == "cosine") return;
    t_.schedule = *text == "linear" ? Schedule::kLinear : Schedule::kConstant;
    if (*text == "linear" || *text == "constant") return;
    refuse("--schedule", fmt::format("{}, expected cosine, linear or constant", in_quotes(*text)));
  }

  void read_evaluation() {
    t_.evaluate_every = whole("--eval-every", 0, 1, INT64_MAX);
    if (const std::string* share = given_.find("--held-out")) {
      t_.held_out = value_of(parse_probability("--held-out", *share));
      if (!error_ && t_.evaluate_every > 0 && t_.held_out == 0) {
        refuse("--eval-every", "nothing is held out, expected --held-out above 0");
      }
    } else if (t_.evaluate_every > 0) {
      t_.held_out = kHeldOut;
      assume(fmt::format("held-out {}", kHeldOut));
    }
  }

  // "100", "100steps": steps; "10m": minutes.
  void read_saving() {
    t_.keep = whole("--keep", t_.keep, 1, 1'000'000);
    t_.resume = given_.has("--resume");
    const std::string* text = given_.find("--every");
    if (text == nullptr) return;
    if (!given_.has("--keep")) assume(fmt::format("keep {}", t_.keep));
    std::string number = *text;
    const bool minutes = number.ends_with("m");
    if (minutes) number.pop_back();
    if (number.ends_with("steps")) number.resize(number.size() - 5);
    const auto count = parse_whole("--every", number, 1, std::int64_t{1} << 40);
    if (!count) {
      return refuse("--every", fmt::format("{}, expected steps such as 100 or minutes such as 10m",
                                           in_quotes(*text)));
    }
    (minutes ? t_.save_every_minutes : t_.save_every_steps) = *count;
  }

  void read_faults() {
    t_.restarts = whole("--restart", 0, 1, 1'000'000);
    const std::string* text = given_.find("--nan");
    if (text == nullptr || *text == "stop") return;
    t_.skip_not_finite = *text == "skip";
    if (t_.skip_not_finite) return;
    refuse("--nan", fmt::format("{}, expected stop or skip", in_quotes(*text)));
  }

  void read_token_bytes() {
    const bool binary = std::filesystem::path(t_.data).extension() == ".bin";
    const std::string* text = given_.find("--token-bytes");
    if (text == nullptr) {
      t_.token_bytes = binary ? 2 : 1;
      if (binary) assume("token-bytes 2");
    } else if (!binary) {
      refuse("--token-bytes", "--data is text, expected a .bin file");
    } else if (*text == "2" || *text == "4") {
      t_.token_bytes = *text == "2" ? 2 : 4;
    } else {
      refuse("--token-bytes", fmt::format("{}, expected 2 or 4", in_quotes(*text)));
    }
  }

  const Given& given_;
  Training& t_;
  std::vector<std::string> assumptions_;
  std::optional<Error> error_;
};

// Training runs on the CPU; a device says what it should fit into. Under mpirun the ranks are there already.
Given on_this_machine(Given given) {
  if (given.has("--device")) given.values.emplace("--backend", "cpu");
  const auto mpirun = comm::is_launched_rank() ? std::nullopt : comm::mpirun_rank();
  if (mpirun && mpirun->size) given.values.emplace("--ranks", fmt::format("{}", *mpirun->size));
  return given;
}

Result<Output> run_train(const Given& words, const TextStyle& style) {
  const Given given = on_this_machine(words);
  auto spec = formats::load_model(given.positional);
  if (!spec) return tl::unexpected(spec.error());
  Training training;
  training.call = given.call;
  training.memory_available = this_machine().memory_available;
  Reader reader(given, training);
  if (auto read = reader.read(); !read) return tl::unexpected(read.error());
  auto job = make_job(given, *spec);
  if (!job) return tl::unexpected(job.error());
  if (auto ok = plan::validate_runs(*job, "train"); !ok) return tl::unexpected(ok.error());
  if (job->backend == plan::Backend::kCuda) {
    return fail("--backend", "training on a CUDA device is not in this version, expected cpu");
  }
  auto described = formats::describe_model(given.positional);
  if (!described) return tl::unexpected(described.error());
  training.spec = *std::move(spec);
  training.model = *std::move(described);
  training.job = *std::move(job);
  const auto& assumed = reader.assumptions();
  training.job.assumptions.insert(training.job.assumptions.end(), assumed.begin(), assumed.end());
  return run_training(training, style);
}

}  // namespace

Command train_command() {
  Syntax syntax{"train", "trains on this machine, after the plan said that it fits", "MODEL", {}};
  const std::string train = "Training";
  syntax.options = {
      {"--data", "FILE", "text (bytes are tokens) or .bin (numbers are tokens)", train},
      {"--token-bytes", "N", "of a .bin file: 2 or 4 (2)", train},
      {"--steps", "N", "optimizer steps", train},
      {"--lr", "X", "highest learning rate", train},
      {"--out", "DIR", "folder for metrics.jsonl and checkpoints", train},
      {"--init", "PATH", "weights to begin with: .safetensors, a folder or an index (random)",
       train},
      {"--schedule", "NAME", "cosine, linear, constant: after warm-up (cosine)", train},
      {"--warm-up", "N", "steps in which the rate rises (0)", train},
      {"--clip", "X", "largest norm of the gradient (none)", train},
      {"--seed", "N", "of parameters, order of rows, dropout (0)", train},
      {"--held-out", "SHARE", "of the tokens, to evaluate on (0; 0.1 with --eval-every)", train},
      {"--eval-every", "N", "steps between evaluations (at the end alone)", train},
      {"--nan", "NAME", "a gradient that is not finite: stop, or skip the step (stop)", train},
      {"--every", "N or Mm", "a checkpoint every N steps or M minutes (at the end alone)", train},
      {"--keep", "N", "complete checkpoints that stay (2)", train},
      {"--resume", "", "go on from the newest valid checkpoint in DIR", train},
      {"--restart", "N", "after a fault start again, up to N times, and go on (0)", train},
      {"--force", "", "although it does not fit; over what another run left in DIR", train},
  };
  for (Option& option : job_options()) syntax.options.push_back(std::move(option));
  return {std::move(syntax), run_train};
}

}  // namespace plimsoll::cli
