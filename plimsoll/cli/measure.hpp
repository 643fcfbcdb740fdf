// The seam between the command `measure` and the engine. engine_measure.cpp runs things with
// libtorch; no_engine.cpp defines the same functions for builds without it, and each fails with
// exit code 3.
//
// Precondition of all: plan::validate(job, spec) holds. Failures of the machine (out of memory, a
// backend that is not there) are Errors with code kEnvironment, never exceptions.
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/base/error.hpp"
#include "plimsoll/base/progress.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/report/measure_reports.hpp"

namespace plimsoll::cli {

struct MeasureOptions {
  std::int32_t steps = 3;  // steps of each run; the last one is steady
  bool fit_batch = false;
  bool families = false;
  std::optional<report::SweepAxis> sweep;
  std::optional<std::int64_t> bisect_bytes;
};

// Calculated, dry and measured figures of the job, line by line. Always asked for.
Result<report::Reconciliation> reconcile(const network::NetworkSpec& spec, const plan::Job& job,
                                         const MeasureOptions& options, Progress& progress);

// The four studies; each is called only when its option was given.
Result<report::AffineFit> measure_fit_batch(const network::NetworkSpec& spec, const plan::Job& job,
                                            const MeasureOptions& options, Progress& progress);
Result<report::FamiliesReport> measure_families(const network::NetworkSpec& spec,
                                                const plan::Job& job, const MeasureOptions& options,
                                                Progress& progress);
Result<report::SweepReport> measure_sweep(const network::NetworkSpec& spec, const plan::Job& job,
                                          const MeasureOptions& options, Progress& progress);
Result<report::BisectReport> measure_bisect(const network::NetworkSpec& spec, const plan::Job& job,
                                            const MeasureOptions& options, Progress& progress);

}  // namespace plimsoll::cli
