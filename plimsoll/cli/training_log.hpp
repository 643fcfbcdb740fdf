// What a training run tells while it lasts, and what is left of it. Used by rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/cli/metrics_file.hpp"
#include "plimsoll/cli/training.hpp"
#include "plimsoll/engine/train/trainer.hpp"

namespace plimsoll::cli {

// Every step becomes a line of the metrics. On a terminal stderr shows the step that is done; elsewhere
// the first and last step and about twenty between them.
class TrainingLog final : public engine::TrainingObserver {
 public:
  // `flops_per_token`: of forward and backward, without what is computed again. `calculated_peak`: of
  // a step, bytes per rank.
  TrainingLog(const Training& training, double flops_per_token, std::int64_t calculated_peak);

  void stepped(const engine::StepMetrics& metrics) override;
  void evaluated(const engine::Evaluation& evaluation) override;
  void resumed(std::int64_t after_step) override;
  void told(const std::string& line) override;

  // The result: losses, speed, memory beside what was calculated, where the metrics are.
  std::string summary(const engine::TrainingEnd& end, const TextStyle& style) const;

 private:
  std::string line(const engine::StepMetrics& metrics) const;
  void show(const std::string& text);
  bool shown(std::int64_t step) const;
  std::string peak_difference() const;
  double seconds() const;
  // Share of the device's peak that the model's FLOPs reach; none without a device or its figure.
  std::optional<double> utilisation(double tokens_per_second) const;

  const Training& training_;
  const double flops_per_token_;
  const std::int64_t calculated_peak_;
  const bool terminal_;
  std::optional<MetricsFile> file_;
  LinePrinter progress_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::int64_t made_before_ = 0;  // steps, by the run that this one goes on from
  std::int64_t skipped_ = 0;
  std::optional<engine::StepMetrics> first_;
  engine::StepMetrics last_;
  std::int64_t highest_peak_ = 0;
  std::optional<engine::Evaluation> evaluation_;
};

}  // namespace plimsoll::cli
