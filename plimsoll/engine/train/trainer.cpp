#include "plimsoll/engine/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/engine/checkpoint/pretrained_weights.hpp"
#include "plimsoll/engine/run/random_state.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/engine/train/resume.hpp"
#include "plimsoll/engine/train/stop_request.hpp"
#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/network/families/families.hpp"
#include "plimsoll/plan/network_units.hpp"

namespace plimsoll::engine {
namespace {

// The highest bytes since the last reset. A rank's run allocates in one thread after the other.
class StepPeak final : public timeline::Sink {
 public:
  void begin_phase(timeline::PhaseKey) override {}
  void end_phase() override {}
  void allocate(timeline::BlockId, std::int64_t bytes, timeline::Tag,
                timeline::OperationId) override {
    current_ += bytes;
    peak_ = std::max(peak_, current_);
  }
  void release(timeline::BlockId, std::int64_t bytes, timeline::Tag,
               timeline::OperationId) override {
    current_ -= bytes;
  }
  void retag(timeline::BlockId, std::int64_t, timeline::Tag, timeline::Tag) override {}

  void reset() { peak_ = current_; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t current_ = 0;
  std::int64_t peak_ = 0;
};

RunnerOptions runner_options(const TrainingOptions& options, comm::Communicator& world,
                             Meter& meter) {
  RunnerOptions result;
  result.seed = options.seed;
  result.optimizer.learning_rate = options.learning_rate.peak;
  result.meter = &meter;
  result.world = &world;
  result.always_shards = true;
  return result;
}

// What a rank tells the others with every step's loss.
enum Flag : std::uint8_t {
  kStop = 1,     // a signal came
  kDue = 2,      // the interval in time is over
  kWritten = 4,  // nothing is left to be written in the background
};

class Loop {
 public:
  Loop(const network::NetworkSpec& spec, const plan::Job& job, const TrainingOptions& options,
       const TokenFile& file, comm::Communicator& world)
      : spec_(spec),
        job_(job),
        options_(options),
        file_(file),
        world_(world),
        split_(split_tokens(file.size(), options.held_out)),
        order_{split_.training.rows(job.sequence), options.seed, job.ranks, job.accumulate,
               job.batch},
        meter_(peak_),
        network_(network::build_network(spec, job.build_options())),
        runner_(network_, job_, runner_options(options, world, meter_)),
        saver_(options.save, runner_.shards()->sharder(), runner_.snapshot()),
        row_(static_cast<std::size_t>(job.sequence) + 1) {
    runner_.set_clip(options.clip);
    runner_.skip_not_finite();
  }

  // Returns how many steps were made before.
  std::int64_t begin(TrainingObserver& observer) {
    Resumed resumed;
    if (saves() && options_.save.resume) {
      resumed = engine::resume(state(), options_, *runner_.shards());
    }
    const bool ended = resumed.step >= options_.learning_rate.steps;
    if (saves() && world_.rank() == 0 && !ended) {
      or_throw(checkpoint::clear_ended(options_.save.folder));
    }
    cursor_ = resumed.cursor;
    for (const std::string& line : resumed.told) observer.told(line);
    if (resumed.step == 0 && !options_.init.empty()) initialise(observer);
    observer.resumed(resumed.step);
    return resumed.step;
  }

  StepMetrics step(std::int64_t s) {
    const auto begin = std::chrono::steady_clock::now();
    StepMetrics metrics;
    metrics.step = s + 1;
    metrics.learning_rate = options_.learning_rate.at(s);
    runner_.shards()->sharder().set_step(s + 1);
    runner_.shards()->optimizer().set_learning_rate(metrics.learning_rate);
    random_ = random_state();
    peak_.reset();
    const double sum = runner_.step([&](int m) { fill_training(m); });
    metrics.gradient_norm = runner_.clipped_norm();
    metrics.skipped = !runner_.updated();
    agreed_ = exchange(sum / job_.accumulate, metrics);
    expect_finite(metrics);
    cursor_ += order_.rows_per_step();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    metrics.tokens_per_second =
        static_cast<double>(order_.rows_per_step() * job_.sequence) / seconds.count();
    return metrics;
  }

  // Whether the ranks agreed with the last step's losses to end here.
  bool stopping() const { return agreed_.any(kStop); }

  // After `step` steps: what is due of checkpoints.
  void save(std::int64_t step, TrainingObserver& observer) {
    if (!saves()) return;
    const bool last = stopping() || step == options_.learning_rate.steps;
    if (agreed_.all(kWritten)) saver_.finish();
    if (last || saver_.due(step) || agreed_.any(kDue)) saver_.save(step, state());
    if (!last) return;
    saver_.finish();
    if (world_.rank() == 0) or_throw(checkpoint::mark_ended(options_.save.folder, step));
    observer.told(fmt::format("checkpoint of step {} written", step));
  }

  Evaluation evaluate(std::int64_t after_step) {
    Evaluation result{after_step, 0, evaluated_rows(split_, job_)};
    const std::int64_t batches = result.rows / (job_.ranks * job_.batch);
    double own = 0;
    for (std::int64_t i = 0; i < batches; ++i) {
      own += runner_.evaluate([&] { fill_evaluation(i); });
    }
    StepMetrics mean;
    mean.step = after_step;
    exchange(own / static_cast<double>(batches), mean);
    result.loss = mean.loss;
    if (options_.not_finite == OnNotFinite::kSkip || std::isfinite(mean.loss)) return result;
    comm::Cause cause;
    cause.rank = cause.reporter = 0;
    cause.step = after_step;
    cause.operation = "evaluation";
    cause.text = fmt::format("held-out loss={}, expected a finite number", mean.loss);
    throw TrainingFailed(cause, ExitCode::kCheckFailed);
  }

 private:
  // What the ranks told each other with the losses of a step.
  struct Agreed {
    std::vector<double> losses;  // by rank
    int of_any = 0;              // flags
    int of_all = ~0;
    bool any(Flag flag) const { return (of_any & flag) != 0; }
    bool all(Flag flag) const { return (of_all & flag) != 0; }
  };

  bool saves() const { return !options_.save.folder.empty(); }

  void initialise(TrainingObserver& observer) {
    zero::Sharder& sharder = runner_.shards()->sharder();
    auto weights = or_throw(checkpoint::PretrainedWeights::open(
        options_.init, spec_, checkpoint::shapes_of(sharder.parameters())));
    or_throw(read_weights(weights, sharder));
    observer.told(fmt::format("weights of {}: {} bytes read by rank {}", options_.init,
                              grouped(weights.bytes_read()), world_.rank()));
  }

  checkpoint::RunState state() {
    return run_state(job_, options_, file_, cursor_, runner_.shards()->optimizer().steps());
  }

  void fill_training(int micro_batch) {
    for (std::int64_t b = 0; b < job_.batch; ++b) {
      fill_row(b, split_.training, order_.row(cursor_, micro_batch, world_.rank(), b));
    }
  }

  void fill_evaluation(std::int64_t batch) {
    const std::int64_t first = (batch * job_.ranks + world_.rank()) * job_.batch;
    for (std::int64_t b = 0; b < job_.batch; ++b) fill_row(b, split_.held_out, first + b);
  }

  void fill_row(std::int64_t b, const Part& part, std::int64_t row) {
    const std::int64_t length = job_.sequence;
    file_.read(part.first + row * length, row_);
    const at::Tensor tokens = runner_.input(network::InputKind::kTokens);
    const at::Tensor targets = runner_.input(network::InputKind::kTargets);
    std::copy_n(row_.begin(), length, tokens.data_ptr<std::int64_t>() + b * length);
    std::copy_n(row_.begin() + 1, length, targets.data_ptr<std::int64_t>() + b * length);
  }

  int own_flags() const {
    int flags = saver_.written() ? kWritten : 0;
    if (stop_.made()) flags |= kStop;
    if (world_.rank() == 0 && saver_.due_by_time()) flags |= kDue;
    return flags;
  }

  // The mean of the ranks' losses, added in rank order, goes into the metrics with their highest peak.
  Agreed exchange(double loss, StepMetrics& metrics) {
    const std::array<double, 3> mine{loss, static_cast<double>(peak_.peak()),
                                     static_cast<double>(own_flags())};
    std::vector<double> all(mine.size() * static_cast<std::size_t>(world_.size()));
    world_
        .all_gather(comm::view(std::span<const double>(mine)), comm::view(std::span<double>(all)),
                    {"loss", metrics.step})
        .wait();
    Agreed agreed;
    for (std::size_t i = 0; i < all.size(); i += mine.size()) {
      agreed.losses.push_back(all[i]);
      metrics.loss += all[i];
      metrics.peak_bytes = std::max(metrics.peak_bytes, static_cast<std::int64_t>(all[i + 1]));
      agreed.of_any |= static_cast<int>(all[i + 2]);
      agreed.of_all &= static_cast<int>(all[i + 2]);
    }
    metrics.loss /= world_.size();
    return agreed;
  }

  void expect_finite(const StepMetrics& metrics) {
    if (options_.not_finite == OnNotFinite::kSkip) return;
    if (!metrics.skipped && std::isfinite(metrics.loss)) return;
    set_random_state(random_);
    const comm::Cause cause = first_not_finite(
        runner_, job_, world_, {metrics.step, agreed_.losses, metrics.gradient_norm},
        [&](int m) { fill_training(m); });
    throw TrainingFailed(cause, ExitCode::kCheckFailed);
  }

  const network::NetworkSpec& spec_;
  const plan::Job& job_;
  const TrainingOptions& options_;
  const TokenFile& file_;
  comm::Communicator& world_;
  const StopRequest stop_;
  const Split split_;
  const RowOrder order_;
  StepPeak peak_;
  Meter meter_;
  const network::Network network_;
  Runner runner_;
  Saver saver_;
  std::vector<std::int64_t> row_;
  std::int64_t cursor_ = 0;        // rows taken
  std::vector<std::byte> random_;  // at the beginning of the step
  Agreed agreed_;                  // of the last step
};

Result<void> check_model(const network::NetworkSpec& spec, const plan::Job& job) {
  using network::Family;
  if (spec.family == Family::kCnn || spec.family == Family::kEncoder) {
    return fail("MODEL",
                fmt::format("{} models cannot be trained in this version, expected a causal "
                            "language model",
                            network::name(spec.family)));
  }
  if (job.semantics != network::Semantics::kPlimsoll) {
    return fail("--semantics", "\"hf\" is planned but not trained, expected plimsoll");
  }
  if (job.shared_targets) {
    return fail(
        "--targets",
        "\"shared\": a model that predicts its own input learns nothing, expected separate");
  }
  if (job.optimizer_impl != plan::OptimizerImpl::kPlimsoll) {
    return fail("--optimizer-impl", fmt::format("\"{}\" is planned and measured but not trained "
                                                "with, expected plimsoll",
                                                plan::name(job.optimizer_impl)));
  }
  return {};
}

}  // namespace

std::int64_t evaluated_rows(const Split& split, const plan::Job& job) {
  const std::int64_t together = job.ranks * job.batch;
  return split.held_out.rows(job.sequence) / together * together;
}

Result<void> check_training(const network::NetworkSpec& spec, const plan::Job& job,
                            const TrainingOptions& options, const TokenFile& file) {
  if (auto model = check_model(spec, job); !model) return model;
  const Split split = split_tokens(file.size(), options.held_out);
  if (split.training.rows(job.sequence) < 1) {
    return fail(file.path(),
                fmt::format("tokens={} for training, expected at least {} (one row of --seq {} and "
                            "the token after it)",
                            split.training.tokens, job.sequence + 1, job.sequence),
                "a smaller --seq");
  }
  if (options.held_out > 0 && evaluated_rows(split, job) < 1) {
    return fail("--held-out",
                fmt::format("rows={}, expected at least {} (ranks x batch)",
                            split.held_out.rows(job.sequence), job.ranks * job.batch),
                "a larger share, or a smaller --seq");
  }
  return {};
}

Result<void> check_init(const network::NetworkSpec& spec, const plan::Job& job,
                        const TrainingOptions& options) {
  const network::Network network = network::build_network(spec, job.build_options());
  const auto shapes = checkpoint::shapes_of(plan::units_of(network, job.ranks).parameters);
  const auto weights = checkpoint::PretrainedWeights::open(options.init, spec, shapes);
  if (!weights) return tl::unexpected(weights.error());
  return {};
}

TrainingEnd train(const network::NetworkSpec& spec, const plan::Job& job,
                  const TrainingOptions& options, const TokenFile& file, comm::Communicator& world,
                  TrainingObserver& observer) {
  at::set_num_threads(job.threads);
  Loop loop(spec, job, options, file, world);
  const std::int64_t steps = options.learning_rate.steps;
  TrainingEnd end{loop.begin(observer), false};
  while (end.step < steps && !end.stopped) {
    observer.stepped(loop.step(end.step));
    ++end.step;
    end.stopped = loop.stopping() && end.step < steps;
    const bool due = options.evaluate_every > 0 && end.step % options.evaluate_every == 0;
    if (options.held_out > 0 && (due || end.step == steps)) {
      observer.evaluated(loop.evaluate(end.step));
    }
    loop.save(end.step, observer);
  }
  return end;
}

}  // namespace plimsoll::engine
