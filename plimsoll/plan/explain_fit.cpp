#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/explain.hpp"

namespace plimsoll::plan {
namespace {

using Terms = std::vector<Term>;

constexpr const char* kPlanned = "jobs planned one by one, as this one";

void explain_budget(const Plan& plan, Terms& terms) {
  const hardware::Device& device = *plan.job.device;
  const hardware::MemoryBudget& budget = plan.fit->budget;
  const std::int64_t reserve = budget.reserve.value.value_or(0);
  const auto add = [&](const char* name, const char* formula, const std::string& numbers,
                       std::int64_t bytes, const std::string& source, Evidence evidence) {
    terms.push_back({std::string("fit.") + name, formula, numbers, bytes, "bytes", source, evidence,
                     std::string("/fit/") + name});
  };
  add("capacity", "as marketed, GB of memory being 2^30", device.title, budget.capacity,
      device.capacity.source, device.capacity.evidence);
  add("usable", "as the driver reports", device.title, budget.usable, device.usable.source,
      device.usable.evidence);
  add("reserve", "kept free for the driver's context and kernels", device.title, reserve,
      budget.reserve.source, budget.reserve.evidence);
  add("available", "usable - reserve",
      fmt::format("{} - {}", grouped(budget.usable), grouped(reserve)), plan.fit->need.available,
      budget.reserve.source, budget.reserve.evidence);
}

void explain_verdict(const Plan& plan, Terms& terms) {
  const Fit& fit = *plan.fit;
  const bool cuda = plan.job.backend == Backend::kCuda;
  terms.push_back({"fit.needed", std::string(decided_by(plan.job)), grouped(fit.need.bytes),
                   fit.need.bytes, "bytes",
                   cuda ? "memory.reserved of this plan" : "timeline.*.peak of this plan",
                   Evidence::kSource, "/fit/needed"});
  terms.push_back({"fit.free", "available - needed; negative: what is lacking",
                   fmt::format("{} - {}", grouped(fit.need.available), grouped(fit.need.bytes)),
                   fit.free(), "bytes", "the two terms", Evidence::kSource, ""});
  terms.push_back(
      {"fit.verdict",
       fmt::format("does not fit below 0 bytes free, tight below {:.0f} % of available, else fits",
                   100 * kTightShare),
       fmt::format("{} free of {}", grouped(fit.free()), grouped(fit.need.available)),
       std::string(name(fit.verdict)), "1", "the terms fit.free and fit.available",
       Evidence::kSource, "/fit/verdict"});
  if (!fit.largest_batch) return;
  terms.push_back({"fit.largest_batch", "the B that fits while B + 1 does not",
                   fmt::format("B = {}", grouped(*fit.largest_batch)), *fit.largest_batch, "rows",
                   kPlanned, Evidence::kSource, "/fit/largest_batch"});
}

std::string settings_text(const Change& change) {
  std::string text;
  for (const Setting& setting : change.settings) {
    text += (text.empty() ? "" : " ") + setting.option + " " + setting.value;
  }
  return text;
}

void explain_change(const Change& change, const Need& before, std::size_t index, Terms& terms) {
  const std::string base = fmt::format("fit.changes.{}", index + 1);
  const std::string path = fmt::format("/fit/changes/{}/", index);
  const std::string settings = settings_text(change);
  const auto add = [&](const char* name, const std::string& formula, const std::string& numbers,
                       std::variant<std::int64_t, double, std::string> value, const char* unit) {
    terms.push_back({base + "." + name, formula, numbers, std::move(value), unit, kPlanned,
                     Evidence::kSource, path + name});
  };
  add("needed", std::string(decided_by(change.job)), settings, change.need.bytes, "bytes");
  add("saved", "needed before - needed with the change",
      fmt::format("{} - {}", grouped(before.bytes), grouped(change.need.bytes)), change.saved,
      "bytes");
  add("flops_factor", "FLOPs of a step with the change / before",
      fmt::format("{:.6g} / {:.6g}", change.need.flops, before.flops), change.flops, "1");
  add("traffic", "bytes taken from other ranks in a step, padding included", settings,
      change.need.traffic, "bytes");
  add("traffic_added", "traffic with the change - before",
      fmt::format("{} - {}", grouped(change.need.traffic), grouped(before.traffic)), change.traffic,
      "bytes");
}

}  // namespace

void explain_traffic(const Plan& plan, Terms& terms) {
  for (std::size_t i = 0; i < plan.traffic.size(); ++i) {
    const TrafficLine& line = plan.traffic[i];
    const std::string base = fmt::format("traffic.{}", i + 1);
    const std::string path = fmt::format("/traffic/{}/", i);
    const std::string letters =
        fmt::format("Psi = {}, R = {}, e = {}", grouped(plan.parameters.all), plan.job.ranks,
                    network::size_of(plan.job.recipe().compute));
    const std::string source = "the schedule of the calculated run: " + line.what;
    terms.push_back({base + ".units", "collectives of one unit in a step: " + line.collective,
                     grouped(line.units), line.units, "collectives", source, Evidence::kSource,
                     path + "units"});
    terms.push_back({base + ".bytes",
                     "sum over these of what a rank takes from others, padding included",
                     fmt::format("{} + {} of padding", grouped(line.formula_bytes),
                                 grouped(line.bytes - line.formula_bytes)),
                     line.bytes, "bytes", source, Evidence::kSource, path + "bytes"});
    terms.push_back({base + ".formula_bytes", line.formula, letters, line.formula_bytes, "bytes",
                     "the textbook's formula, without padding", Evidence::kSource,
                     path + "formula_bytes"});
  }
}

void explain_fit(const Plan& plan, Terms& terms) {
  if (!plan.fit) return;
  explain_budget(plan, terms);
  explain_verdict(plan, terms);
  for (std::size_t i = 0; i < plan.fit->changes.found.size(); ++i) {
    explain_change(plan.fit->changes.found[i], plan.fit->need, i, terms);
  }
}

}  // namespace plimsoll::plan
