#include "plimsoll/report/measure_reports.hpp"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"

namespace plimsoll::report {
namespace {

std::int64_t fitted_value(const AffinePoint& point, bool of_measured) {
  return of_measured ? *point.measured : point.calculated;
}

struct Means {
  long double batch = 0;
  long double value = 0;
};

Means means(const std::vector<AffinePoint>& points, bool of_measured) {
  Means m;
  const auto n = static_cast<long double>(points.size());
  for (const AffinePoint& p : points) {
    m.batch += static_cast<long double>(p.batch) / n;
    m.value += static_cast<long double>(fitted_value(p, of_measured)) / n;
  }
  return m;
}

long double slope(const std::vector<AffinePoint>& points, bool of_measured, const Means& m) {
  long double above = 0;
  long double below = 0;
  for (const AffinePoint& p : points) {
    const long double x = static_cast<long double>(p.batch) - m.batch;
    above += x * (static_cast<long double>(fitted_value(p, of_measured)) - m.value);
    below += x * x;
  }
  check(below > 0, "a fit needs two different batches");
  return above / below;
}

}  // namespace

AffineFit fit_affine(std::vector<AffinePoint> points) {
  AffineFit fit;
  fit.of_measured = std::all_of(points.begin(), points.end(),
                                [](const AffinePoint& p) { return p.measured.has_value(); });
  const Means m = means(points, fit.of_measured);
  const long double k = slope(points, fit.of_measured, m);
  fit.k = std::llround(k);
  fit.A0 = std::llround(m.value - k * m.batch);
  for (AffinePoint& p : points) {
    const std::int64_t line = checked_add(fit.A0, checked_mul(fit.k, p.batch));
    p.residual = fitted_value(p, fit.of_measured) - line;
  }
  fit.points = std::move(points);
  return fit;
}

std::int64_t FamiliesReport::constant() const {
  std::int64_t sum = 0;
  for (const FamilyRow& row : rows) sum = checked_add(sum, row.grows() ? 0 : row.calculated);
  return sum;
}

std::int64_t FamiliesReport::growing() const {
  std::int64_t sum = 0;
  for (const FamilyRow& row : rows) sum = checked_add(sum, row.grows() ? row.calculated : 0);
  return sum;
}

std::string_view name(SweepAxis axis) { return axis == SweepAxis::kSequence ? "seq" : "width"; }

}  // namespace plimsoll::report
