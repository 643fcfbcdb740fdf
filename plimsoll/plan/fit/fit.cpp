#include "plimsoll/plan/fit/fit.hpp"

namespace plimsoll::plan {
namespace {

Verdict verdict_of(const Need& need) {
  if (!need.fits) return Verdict::kDoesNotFit;
  const auto free = static_cast<double>(need.available - need.bytes);
  return free < kTightShare * static_cast<double>(need.available) ? Verdict::kTight
                                                                  : Verdict::kFits;
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kTight:
      return "tight";
    case Verdict::kDoesNotFit:
      return "does not fit";
  }
  return "?";
}

Fit make_fit(NeedSearch& search, const Job& job) {
  const std::optional<Need> need = search.of(job);
  if (!need) throw OverflowError("a size of the job leaves 64 bits");
  Fit fit;
  fit.budget = hardware::memory_budget(*job.device, job.reserve);
  fit.need = *need;
  fit.verdict = verdict_of(*need);
  fit.largest_batch = largest_batch(search, job);
  if (!need->fits) fit.changes = cheapest_changes(search, job, *need);
  return fit;
}

}  // namespace plimsoll::plan
