// What `measure` runs: one job calculated, dry-run and measured, and four studies beside it. Results
// are the structs of report/measure_reports.hpp.
//
// Two libraries define these functions: plimsoll::study runs things with libtorch,
// plimsoll::study_no_engine is for builds without it, where each fails with exit code 3.
//
// Precondition of all: plan::validate(job, spec) holds. Failures of the machine (out of memory, a
// backend that is not there) are Errors with code kEnvironment, never exceptions. Each step of the
// work is told to `progress`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "plimsoll/base/error.hpp"
#include "plimsoll/base/progress.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/report/measure_reports.hpp"

namespace plimsoll::comm {
class Communicator;
}

namespace plimsoll::study {

struct Options {
  std::int32_t steps = 3;  // steps of each run; the last one is steady
  bool fit_batch = false;
  bool families = false;
  std::optional<report::SweepAxis> sweep;
  std::optional<std::int64_t> bisect_bytes;
  std::optional<std::int64_t> memory_available;  // bytes that are free here; none: not known
  // The ranks of a sharded job, of which this process is one; null for a job of one rank.
  comm::Communicator* world = nullptr;
};

// Starts `ranks` processes of this program with its own arguments, in each of which the call of
// on_ranks runs `body` with its world; returns the exit code for all of them (comm/launch.hpp). The
// process that is called first only waits.
Result<int> on_ranks(std::int32_t ranks, const std::function<int(comm::Communicator&)>& body);
bool is_first(const comm::Communicator& world);  // rank 0, which speaks for all

// Calculated, dry and measured figures of the job, line by line: of this rank, and whether the others
// agree. Collective when there are ranks. Always asked for. A run whose
// calculated peak is above memory_available is refused.
Result<report::Reconciliation> reconcile(const network::NetworkSpec& spec, const plan::Job& job,
                                         const Options& options, Progress& progress);

// The four studies; each is called only when its option was given.

// A over batches 1, 2, 4, 8.
Result<report::AffineFit> fit_batch(const network::NetworkSpec& spec, const plan::Job& job,
                                    const Options& options, Progress& progress);

// Every family that either the calculation or the run has. Without checkpointing only.
Result<report::FamiliesReport> families(const network::NetworkSpec& spec, const plan::Job& job,
                                        const Options& options, Progress& progress);

// A at a quarter, half, once and twice the job's sequence or the model's width. A sweep over the
// sequence stops at the positions that a model has learned; an inline model is built anew for each
// length, with that many positions.
Result<report::SweepReport> sweep(const network::NetworkSpec& spec, const plan::Job& job,
                                  const Options& options, Progress& progress);

// The largest batch whose run peaks within bisect_bytes: at most half of memory_available, since a
// try that does not fit allocates up to twice the limit.
Result<report::BisectReport> bisect(const network::NetworkSpec& spec, const plan::Job& job,
                                    const Options& options, Progress& progress);

}  // namespace plimsoll::study
