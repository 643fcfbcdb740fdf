#include "plimsoll/cli/training_log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/engine/run/difference_cause.hpp"
#include "plimsoll/plan/cost.hpp"

namespace plimsoll::cli {
namespace {

// "2:05:09", "5:09".
std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::int64_t tokens_per_step(const plan::Job& job) {
  return job.ranks * job.accumulate * job.batch * job.sequence;
}

}  // namespace

TrainingLog::TrainingLog(const Training& training, double flops_per_token,
                         std::int64_t calculated_peak)
    : training_(training),
      flops_per_token_(flops_per_token),
      calculated_peak_(calculated_peak),
      terminal_(isatty(STDERR_FILENO) != 0),
      progress_(STDERR_FILENO) {}

void TrainingLog::resumed(std::int64_t after_step) {
  made_before_ = after_step;
  file_.emplace(training_.out, after_step);
}

void TrainingLog::told(const std::string& line) { show(line); }

void TrainingLog::show(const std::string& text) {
  if (terminal_) {
    progress_.update(text);
  } else {
    fmt::print(stderr, "{}\n", text);
  }
}

void TrainingLog::stepped(const engine::StepMetrics& metrics) {
  nlohmann::ordered_json values = {{"step", metrics.step},
                                   {"loss", metrics.loss},
                                   {"grad_norm", metrics.gradient_norm},
                                   {"lr", metrics.learning_rate},
                                   {"tokens_per_second", metrics.tokens_per_second},
                                   {"peak_bytes", metrics.peak_bytes}};
  if (metrics.skipped) values["skipped"] = true;
  file_->write(values);
  if (metrics.skipped) {
    ++skipped_;
    show(fmt::format("step {}: skipped, gradient norm {}", metrics.step, metrics.gradient_norm));
  }
  if (!first_) first_ = metrics;
  last_ = metrics;
  highest_peak_ = std::max(highest_peak_, metrics.peak_bytes);
  if (terminal_ || shown(metrics.step)) show(line(metrics));
}

void TrainingLog::evaluated(const engine::Evaluation& evaluation) {
  file_->write({{"step", evaluation.step},
                {"evaluation", {{"loss", evaluation.loss}, {"rows", evaluation.rows}}}});
  evaluation_ = evaluation;
  show(fmt::format("step {}/{}  held-out loss {:.4f} over {} rows", evaluation.step,
                   training_.steps, evaluation.loss, evaluation.rows));
}

bool TrainingLog::shown(std::int64_t step) const {
  constexpr std::int64_t kLines = 20;
  const std::int64_t every = std::max<std::int64_t>(1, training_.steps / kLines);
  return step == made_before_ + 1 || step == training_.steps || step % every == 0;
}

double TrainingLog::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

std::optional<double> TrainingLog::utilisation(double tokens_per_second) const {
  if (!training_.job.device) return std::nullopt;
  const auto arithmetic = plan::arithmetic_of(training_.job.recipe().compute);
  const auto peak = training_.job.device->peak(arithmetic).matmul();
  if (!peak) return std::nullopt;
  return tokens_per_second * flops_per_token_ / (*peak * training_.job.ranks);
}

std::string TrainingLog::line(const engine::StepMetrics& metrics) const {
  const double left = seconds() / static_cast<double>(metrics.step - made_before_) *
                      static_cast<double>(training_.steps - metrics.step);
  const auto mfu = utilisation(metrics.tokens_per_second);
  return fmt::format("step {}/{}  loss {:.4f}  {} tokens/s{}  {} a rank  {} left", metrics.step,
                     training_.steps, metrics.loss,
                     grouped(std::llround(metrics.tokens_per_second)),
                     mfu ? fmt::format("  MFU {:.3g} %", *mfu * 100) : "",
                     human(Bytes{metrics.peak_bytes}), duration(left));
}

// The fast kernels of 16-bit products stay on: training is not slowed down for equal figures.
std::string TrainingLog::peak_difference() const {
  const std::string cause =
      engine::difference_cause(training_.job, engine::library_state(), /*transient=*/true);
  return fmt::format("{:+} bytes: {}", highest_peak_ - calculated_peak_,
                     cause.empty() ? "a difference that plimsoll cannot explain" : cause);
}

std::string TrainingLog::summary(const engine::TrainingEnd& end, const TextStyle& style) const {
  const plan::Job& job = training_.job;
  if (!first_) {
    return fmt::format("{}: all {} steps were made before\n", training_.spec.title, end.step);
  }
  const double total = static_cast<double>((end.step - made_before_) * tokens_per_step(job));
  const double speed = total / seconds();
  Table table({{"", Align::kLeft}, {"", Align::kWrap}});
  table.row({"loss", fmt::format("{:.4f} at step {}, {:.4f} at step {}", first_->loss, first_->step,
                                 last_.loss, last_.step)});
  if (end.stopped) {
    table.row({"stopped", fmt::format("by a signal after step {}; --resume goes on", end.step)});
  }
  if (skipped_ > 0) table.row({"skipped", fmt::format("{} steps, not finite", skipped_)});
  if (evaluation_) {
    table.row({"held-out loss",
               fmt::format("{:.4f} over {} rows", evaluation_->loss, evaluation_->rows)});
  }
  table.row({"speed", fmt::format("{} tokens/s, start and evaluations included",
                                  grouped(std::llround(speed)))});
  if (const auto mfu = utilisation(speed)) {
    table.row({"MFU", fmt::format("{:.3g} % of {}", *mfu * 100, job.device->name)});
  }
  table.row({"peak of a rank", fmt::format("{} bytes measured, {} calculated",
                                           grouped(highest_peak_), grouped(calculated_peak_))});
  if (highest_peak_ != calculated_peak_) table.row({"", peak_difference()});
  table.row({"metrics", MetricsFile::path_in(training_.out)});
  return fmt::format("{}: {} steps of {} tokens, ranks {}, stage {}\n", training_.spec.title,
                     end.step, grouped(tokens_per_step(job)), job.ranks,
                     static_cast<int>(job.stage)) +
         table.text(style);
}

}  // namespace plimsoll::cli
