#include "plimsoll/engine/zero/shard_optimizer.hpp"

#include <cmath>

#include "plimsoll/engine/zero/squares.hpp"

namespace plimsoll::engine::zero {

ShardOptimizer::ShardOptimizer(Sharder& sharder, plan::Optimizer kind,
                               const OptimizerSettings& settings)
    : sharder_(sharder), kind_(kind), settings_(settings) {}

StepReport ShardOptimizer::step(const StepOptions& options) {
  sharder_.expect_reduced();
  StepReport report;
  const double parts = static_cast<double>(sharder_.world().size()) * options.micro_batches;
  double scale = 1 / parts;
  if (options.clip > 0 || options.norm || options.skip_not_finite) {
    report.gradient_norm = static_cast<float>(std::sqrt(sharder_.squared_norm_of_sums()) / parts);
    report.updated = !options.skip_not_finite || std::isfinite(report.gradient_norm);
    scale *= clip_factor(report.gradient_norm, options.clip);
  }
  if (!report.updated) return report;
  ++steps_;
  for (shard::UnitIndex u = 0; u < sharder_.unit_count(); ++u) {
    for (const OwnedPiece& piece : sharder_.owned(u)) update(piece, scale);
    sharder_.updated(u);
  }
  return report;
}

void ShardOptimizer::update(const OwnedPiece& piece, double gradient_scale) const {
  if (!piece.gradient.defined() || piece.weights.is_meta()) return;
  const OptimizerRange range{piece.weights, piece.gradient, piece.first, piece.second, piece.copy};
  switch (kind_) {
    case plan::Optimizer::kAdamW:
      return adamw_step(range, settings_, steps_, gradient_scale);
    case plan::Optimizer::kSgd:
    case plan::Optimizer::kSgdMomentum:
      return sgd_step(range, settings_, gradient_scale);
    case plan::Optimizer::kLion:
      return lion_step(range, settings_, gradient_scale);
    case plan::Optimizer::kAdafactor:
    case plan::Optimizer::kAdamW8bit:
      throw InternalError("another library's optimizer");
  }
}

}  // namespace plimsoll::engine::zero
