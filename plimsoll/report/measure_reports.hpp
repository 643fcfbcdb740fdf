// What `measure` reports: the reconciliation of one job, and the four studies that can be asked for
// beside it. Whoever runs them fills these structs; text and JSON are made from them.
//
// A is the activations of the first micro-batch, counted as_saved [Note: counting conventions].
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/reconciliation.hpp"

namespace plimsoll::report {

// --- --fit-batch: A = A0 + k B, never proportional

struct AffinePoint {
  std::int64_t batch = 0;
  std::int64_t calculated = 0;           // A in bytes
  std::optional<std::int64_t> measured;  // A in bytes
  std::int64_t residual = 0;             // of the fitted column: A - (A0 + k B)
};

struct AffineFit {
  std::vector<AffinePoint> points;
  bool of_measured = false;  // which column was fitted
  std::int64_t A0 = 0;       // bytes that do not grow
  std::int64_t k = 0;        // bytes per sample
};

// Least squares through the measured column when every point has it, else through the calculated
// one; A0 and k are rounded to whole bytes, residuals are exact. Needs two different batches.
AffineFit fit_affine(std::vector<AffinePoint> points);

// --- --families: saved tensors by shape, constant and growing ones told apart by doubling the batch

struct FamilyRow {
  std::string shape;  // at the smaller batch: "(7, 50, 384)"
  std::string dtype;
  std::string saved_by;                 // operations that saved them; "" in the real run alone
  std::int64_t calculated = 0;          // bytes at the smaller batch
  std::int64_t calculated_doubled = 0;  // bytes at twice the batch
  std::optional<std::int64_t> measured;
  std::optional<std::int64_t> measured_doubled;

  bool grows() const { return calculated_doubled != calculated; }
};

struct FamiliesReport {
  std::int64_t batch = 0;
  std::vector<FamilyRow> rows;          // largest first
  std::int64_t parameter_bytes = 0;     // saved parameters and views of them: part of constant()
  std::vector<std::string> collisions;  // dimensions of equal size that no shape can tell apart
  std::string measured_reason;          // why there is no measured column, or empty

  std::int64_t constant() const;
  std::int64_t growing() const;
};

// --- --sweep: A over the sequence length or the width

enum class SweepAxis : std::uint8_t { kSequence, kWidth };
std::string_view name(SweepAxis axis);  // "seq", "width"

struct SweepPoint {
  std::int64_t value = 0;                // T or D
  std::int64_t calculated = 0;           // A in bytes
  std::optional<std::int64_t> measured;  // A in bytes
  std::optional<std::int64_t> A0;        // of A = A0 + k B at this point
  std::optional<std::int64_t> k;
};

struct SweepReport {
  SweepAxis axis = SweepAxis::kSequence;
  std::int64_t batch = 0;
  std::vector<SweepPoint> points;  // in the order of value
  std::string measured_reason;
  std::vector<std::string> notes;  // which values are left out, and what else changes
};

// --- --bisect SIZE: the largest batch whose real run stays within SIZE

struct BisectTry {
  std::int64_t batch = 0;
  std::int64_t peak = 0;  // measured bytes
  bool fits = false;
};

struct BisectReport {
  std::int64_t limit = 0;                          // bytes
  std::vector<BisectTry> tries;                    // in the order in which they were made
  std::optional<std::int64_t> largest;             // none: not even one sample fits
  std::optional<std::int64_t> calculated_largest;  // what the calculated timeline says
};

// --- all together

struct Measurement {
  network::NetworkSpec spec;
  plan::Job job;
  network::ParameterCount parameters;
  Reconciliation reconciliation;
  std::optional<AffineFit> fit_batch;
  std::optional<FamiliesReport> families;
  std::optional<SweepReport> sweep;
  std::optional<BisectReport> bisect;
};

std::string fit_text(const AffineFit& fit, const TextStyle& style);
std::string families_text(const FamiliesReport& families, const TextStyle& style);
std::string sweep_text(const SweepReport& sweep, const TextStyle& style);
std::string bisect_text(const BisectReport& bisect, const TextStyle& style);
std::string measurement_text(const Measurement& measurement, const TextStyle& style);

Json measurement_json(const Measurement& measurement);  // schema plimsoll.measure/1

}  // namespace plimsoll::report
