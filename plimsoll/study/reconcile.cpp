// reconcile(): one job calculated, dry-run and measured, line by line.
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/comm/recording.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/engine/run/difference_cause.hpp"
#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/engine/run/saved_tensors.hpp"
#include "plimsoll/engine/zero/launch.hpp"
#include "plimsoll/plan/walk.hpp"
#include "plimsoll/study/runs.hpp"
#include "plimsoll/study/studies.hpp"
#include "plimsoll/timeline/comparison.hpp"

namespace plimsoll::study {
namespace {

using report::make_row;
using report::Unit;
using timeline::Phase;

// One of the three columns: its timeline and its ledger, each possibly absent.
struct Column {
  std::optional<std::vector<timeline::PhaseEvents>> phases;
  std::optional<plan::Ledger> ledger;
  std::optional<std::int64_t> peak;
  std::optional<std::int64_t> traffic;  // of all steps
};

Column calculated_column(const network::Network& net, const plan::Job& job, std::int32_t steps) {
  plan::WalkOptions options;
  options.steps = steps;
  options.keep_ledger = true;
  plan::WalkResult result;
  const timeline::Timeline timeline = plan::walk_timeline(net, job, options, &result);
  Column column;
  column.phases = timeline::comparable(timeline);
  column.peak = timeline::find_peak(timeline).bytes;
  column.ledger = plan::count_ledger(result.ledger);
  if (job.sharded()) column.traffic = checked_mul(result.traffic.bytes(), steps);
  return column;
}

Column run_column(const network::Network& net, const plan::Job& job, engine::RecordOptions options,
                  std::string_view what, Progress& progress) {
  Column column;
  std::optional<comm::Recording> recording;
  if (options.world != nullptr) options.world = &recording.emplace(*options.world);
  if (job.backend == plan::Backend::kCpu) {
    const timeline::Timeline timeline = told_run(net, job, options, what, progress);
    column.phases = timeline::comparable(timeline);
    column.peak = timeline::find_peak(timeline).bytes;
  }
  // These runs exchange no scalars, so what is small are small units.
  if (recording) {
    column.traffic = recording->traffic().bytes() + recording->traffic().small.bytes;
  }
  if (!job.recomputes() && !job.sharded()) {
    column.ledger = engine::saved_tensors(net, job, options.device).ledger;
  }
  return column;
}

// Why figures of a kind may differ, when it is known.
class Causes {
 public:
  explicit Causes(const plan::Job& job) : job_(job) {}

  // Transients are peaks and numbers of allocations; what is left at a phase's end is none.
  std::string of(bool transient) const {
    return engine::difference_cause(job_, engine::library_state(), transient);
  }

 private:
  const plan::Job& job_;
};

class Rows {
 public:
  Rows(const Column& calculated, const Column& dry, const Column& measured, const Causes& causes)
      : calculated_(calculated), dry_(dry), measured_(measured), causes_(causes) {}

  std::vector<report::ReconciliationRow> build(std::int32_t steps) {
    add_phases(0, "first");
    add_phases(steps - 1, "steady");
    add_row("peak of all steps", Unit::kBytes, [](const Column& c) { return c.peak; });
    add_row("traffic of all steps", Unit::kBytes, [](const Column& c) { return c.traffic; });
    add_ledger("A as saved", &plan::Ledger::as_saved);
    add_ledger("A without parameters", &plan::Ledger::without_parameters);
    add_ledger("A distinct", &plan::Ledger::distinct);
    return std::move(rows_);
  }

 private:
  template <class Pick>
  void add_row(std::string line, Unit unit, Pick pick) {
    const std::optional<std::int64_t> calculated = pick(calculated_);
    if (!calculated) return;
    const std::optional<std::int64_t> dry = pick(dry_);
    const std::optional<std::int64_t> measured = pick(measured_);
    report::ReconciliationRow row = make_row(std::move(line), *calculated, dry, measured, "", unit);
    // A dry run that differs is as much a difference as a measurement that does.
    if (dry && *dry != *calculated && row.difference == 0) row.difference = *dry - *calculated;
    const bool transient = row.line.ends_with("peak") || row.line.ends_with("allocations") ||
                           row.line.starts_with("peak");
    if (row.difference && *row.difference != 0) row.cause = causes_.of(transient);
    rows_.push_back(std::move(row));
  }

  void add_phases(std::int32_t step, const std::string& which) {
    for (std::size_t i = 0; i < calculated_.phases->size(); ++i) {
      const timeline::PhaseKey key = (*calculated_.phases)[i].figures.key;
      if (key.step != step) continue;
      const auto figures = [i](const Column& c) { return phase_at(c, i); };
      const std::string name = phase_name(key, which);
      if (key.phase != Phase::kModel) {
        add_row(name + ": peak", Unit::kBytes, [&](const Column& c) -> std::optional<std::int64_t> {
          const auto* phase = figures(c);
          return phase == nullptr ? std::nullopt : std::optional(phase->figures.peak);
        });
      }
      add_row(name + ": end", Unit::kBytes, [&](const Column& c) -> std::optional<std::int64_t> {
        const auto* phase = figures(c);
        return phase == nullptr ? std::nullopt : std::optional(phase->figures.end);
      });
      if (key.phase != Phase::kBackward) continue;
      add_row(name + ": allocations", Unit::kCount,
              [&](const Column& c) -> std::optional<std::int64_t> {
                const auto* phase = figures(c);
                if (phase == nullptr) return std::nullopt;
                return static_cast<std::int64_t>(phase->groups.size()) - 1;
              });
    }
  }

  static const timeline::PhaseEvents* phase_at(const Column& column, std::size_t i) {
    if (!column.phases || i >= column.phases->size()) return nullptr;
    return &(*column.phases)[i];
  }

  static std::string phase_name(timeline::PhaseKey key, const std::string& which) {
    if (key.phase == Phase::kModel) return "model";
    std::string text = fmt::format("{} {}", which, timeline::name(key.phase));
    if (key.micro_batch > 0) text += fmt::format(" {}", key.micro_batch + 1);
    return text;
  }

  void add_ledger(const std::string& name, plan::LedgerLine plan::Ledger::*line) {
    const auto pick = [line](const Column& c, std::int64_t plan::LedgerLine::*field) {
      return c.ledger ? std::optional((*c.ledger).*line.*field) : std::nullopt;
    };
    if (!dry_.ledger && !measured_.ledger) return;
    add_row(name + ": bytes", Unit::kBytes,
            [&](const Column& c) { return pick(c, &plan::LedgerLine::bytes); });
    add_row(name + ": count", Unit::kCount,
            [&](const Column& c) { return pick(c, &plan::LedgerLine::count); });
  }

  const Column& calculated_;
  const Column& dry_;
  const Column& measured_;
  const Causes& causes_;
  std::vector<report::ReconciliationRow> rows_;
};

// One row for each other rank: by how many bytes its figures differ, all lines together.
void add_ranks(std::vector<report::ReconciliationRow>& rows, comm::Communicator& world) {
  std::int64_t own = 0;
  for (const report::ReconciliationRow& row : rows) own += std::abs(row.difference.value_or(0));
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()));
  const comm::ConstView input{&own, 1, comm::DType::kInt64};
  world.all_gather(input, comm::view(std::span(all)), {"differences"}).wait();
  for (int r = 0; r < world.size(); ++r) {
    if (r == world.rank()) continue;
    const std::int64_t there = all[static_cast<std::size_t>(r)];
    rows.push_back(make_row(fmt::format("rank {}: sum of differences", r), 0, std::nullopt, there,
                            "", Unit::kBytes));
  }
}

report::Reconciliation reconcile_network(const network::Network& net, const plan::Job& job,
                                         const Options& options, const Causes& causes,
                                         Progress& progress) {
  report::Reconciliation result;
  progress.update("calculating");
  const Column calculated = calculated_column(net, job, options.steps);
  engine::RecordOptions record;
  record.steps = options.steps;
  record.device = at::kMeta;
  std::unique_ptr<comm::Communicator> alone;
  if (job.sharded()) {
    alone = comm::make_fake(options.world == nullptr ? 0 : options.world->rank(), job.ranks);
    record.world = alone.get();
  }
  const Column dry = run_column(net, job, record, "dry run on the meta device", progress);
  if (!dry.phases) {
    result.dry_reason = "phases of a CUDA run: the scratch of its kernels is not known";
  }
  Column measured;
  const std::unique_ptr<comm::Communicator> self = comm::make_self();
  if (const auto reason = no_measurement(job)) {
    result.measured_reason = *reason;
  } else {
    record.device = at::kCPU;
    if (job.sharded()) record.world = options.world == nullptr ? self.get() : options.world;
    measured = run_column(net, job, record, "measuring", progress);
  }
  result.rows = Rows(calculated, dry, measured, causes).build(options.steps);
  if (options.world != nullptr) add_ranks(result.rows, *options.world);
  return result;
}

// A run that cannot fit is not begun: the plan is known, and a killed process says nothing.
Result<void> fits(const network::NetworkSpec& spec, const plan::Job& job,
                  std::optional<std::int64_t> available) {
  if (no_measurement(job) || !available) return {};
  const auto peak =
      guarded<std::int64_t>([&] { return calculated_peak(network_of(spec, job), job); });
  if (!peak) return tl::unexpected(peak.error());
  const std::int64_t all_ranks = checked_mul(*peak, job.ranks);
  if (all_ranks <= *available) return {};
  return fail("measure",
              fmt::format("the step's calculated peak is {} B on {} rank(s), expected at most the "
                          "{} B that are free here",
                          all_ranks, job.ranks, *available),
              "`plimsoll plan` needs no memory; a smaller --batch or --seq needs less",
              ExitCode::kEnvironment);
}

}  // namespace

Result<report::Reconciliation> reconcile(const network::NetworkSpec& spec, const plan::Job& job,
                                         const Options& options, Progress& progress) {
  progress.update("calculating the peak");
  if (auto ok = fits(spec, job, options.memory_available); !ok) return tl::unexpected(ok.error());
  return guarded<report::Reconciliation>([&] {
    prepare_library(job);
    const Causes causes(job);
    const network::Network net = network_of(spec, job);
    return reconcile_network(net, job, options, causes, progress);
  });
}

Result<int> on_ranks(std::int32_t ranks, const std::function<int(comm::Communicator&)>& body) {
  return engine::zero::launch(ranks, body);
}

bool is_first(const comm::Communicator& world) { return world.rank() == 0; }

}  // namespace plimsoll::study
