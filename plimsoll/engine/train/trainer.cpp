#include "plimsoll/engine/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/network/families/families.hpp"

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

class Loop {
 public:
  Loop(const network::NetworkSpec& spec, const plan::Job& job, const TrainingOptions& options,
       const TokenFile& file, comm::Communicator& world)
      : job_(job),
        options_(options),
        file_(file),
        world_(world),
        split_(split_tokens(file.size(), options.held_out)),
        order_{split_.training.rows(job.sequence), options.seed, job.ranks, job.accumulate,
               job.batch},
        meter_(peak_),
        network_(network::build_network(spec, job.build_options())),
        runner_(network_, job_, runner_options(options, world, meter_)),
        row_(static_cast<std::size_t>(job.sequence) + 1) {
    runner_.set_clip(options.clip);
  }

  StepMetrics step(std::int64_t s) {
    const auto begin = std::chrono::steady_clock::now();
    StepMetrics metrics;
    metrics.step = s + 1;
    metrics.learning_rate = options_.learning_rate.at(s);
    runner_.shards()->sharder().set_step(s + 1);
    runner_.shards()->optimizer().set_learning_rate(metrics.learning_rate);
    peak_.reset();
    const double sum = runner_.step([&](int m) { fill_training(s, m); });
    gather(sum / job_.accumulate, metrics);
    metrics.gradient_norm = runner_.clipped_norm();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    metrics.tokens_per_second =
        static_cast<double>(order_.rows_per_step() * job_.sequence) / seconds.count();
    return metrics;
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
    gather(own / static_cast<double>(batches), mean);
    result.loss = mean.loss;
    return result;
  }

 private:
  void fill_training(std::int64_t step, int micro_batch) {
    for (std::int64_t b = 0; b < job_.batch; ++b) {
      fill_row(b, split_.training, order_.row(step, micro_batch, world_.rank(), b));
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

  // The ranks' losses, added in rank order, and their highest peak.
  void gather(double loss, StepMetrics& metrics) {
    const std::array<double, 2> mine{loss, static_cast<double>(peak_.peak())};
    std::vector<double> all(2 * static_cast<std::size_t>(world_.size()));
    world_
        .all_gather(comm::view(std::span<const double>(mine)), comm::view(std::span<double>(all)),
                    {"loss", metrics.step})
        .wait();
    for (int r = 0; r < world_.size(); ++r) {
      const double of_rank = all[2 * static_cast<std::size_t>(r)];
      if (!std::isfinite(of_rank)) throw LossNotFinite(metrics.step, r, of_rank);
      metrics.loss += of_rank;
      metrics.peak_bytes = std::max(
          metrics.peak_bytes, static_cast<std::int64_t>(all[2 * static_cast<std::size_t>(r) + 1]));
    }
    metrics.loss /= world_.size();
  }

  const plan::Job& job_;
  const TrainingOptions& options_;
  const TokenFile& file_;
  comm::Communicator& world_;
  const Split split_;
  const RowOrder order_;
  StepPeak peak_;
  Meter meter_;
  const network::Network network_;
  Runner runner_;
  std::vector<std::int64_t> row_;
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

LossNotFinite::LossNotFinite(std::int64_t step, int rank, double loss)
    : std::runtime_error(
          fmt::format("[train] step {}, rank {}: loss={}, expected a finite number. "
                      "Hint: a smaller --lr, --clip 1, --warm-up, or --precision fp32",
                      step, rank, loss)),
      step_(step),
      rank_(rank) {}

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

void train(const network::NetworkSpec& spec, const plan::Job& job, const TrainingOptions& options,
           const TokenFile& file, comm::Communicator& world, TrainingObserver& observer) {
  at::set_num_threads(job.threads);
  Loop loop(spec, job, options, file, world);
  const std::int64_t steps = options.learning_rate.steps;
  for (std::int64_t s = 0; s < steps; ++s) {
    observer.stepped(loop.step(s));
    const bool due = options.evaluate_every > 0 && (s + 1) % options.evaluate_every == 0;
    if (options.held_out > 0 && (due || s + 1 == steps)) observer.evaluated(loop.evaluate(s + 1));
  }
}

}  // namespace plimsoll::engine
