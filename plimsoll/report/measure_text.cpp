#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/job.hpp"
#include "plimsoll/report/measure_reports.hpp"

namespace plimsoll::report {
namespace {

std::string figure(const std::optional<std::int64_t>& value) {
  return value ? grouped(*value) : "-";
}

std::string reason_line(const std::string& reason, const TextStyle& style) {
  if (reason.empty()) return "";
  return "  " + wrapped("no measured column: " + reason, 2, 4, style.width) + "\n";
}

}  // namespace

std::string fit_text(const AffineFit& fit, const TextStyle& style) {
  Table table({{"B"}, {"A calculated"}, {"A measured"}, {"residual"}, {"A / B"}, {"A0 of A"}});
  for (const AffinePoint& p : fit.points) {
    const std::int64_t a = fit.of_measured ? *p.measured : p.calculated;
    table.row(
        {grouped(p.batch), grouped(p.calculated), figure(p.measured), grouped(p.residual),
         grouped(a / p.batch),
         fmt::format("{:.1f} %", 100.0 * static_cast<double>(fit.A0) / static_cast<double>(a))});
  }
  return bold("A = A0 + k B", style) +
         fmt::format(", fitted to the {} column: A0 = {} bytes, k = {} bytes per sample\n",
                     fit.of_measured ? "measured" : "calculated", grouped(fit.A0), grouped(fit.k)) +
         table.text(style) +
         "  A / B falls while A0 is a large part of A: it is no cost per sample at small B\n";
}

std::string families_text(const FamiliesReport& families, const TextStyle& style) {
  Table table({{"shape", Align::kLeft},
               {"dtype", Align::kLeft},
               {fmt::format("at B = {}", families.batch)},
               {fmt::format("at B = {}", 2 * families.batch)},
               {"measured"},
               {"", Align::kLeft},
               {"saved by", Align::kWrap}});
  for (const FamilyRow& row : families.rows) {
    table.row({row.shape, row.dtype, grouped(row.calculated), grouped(row.calculated_doubled),
               figure(row.measured), row.grows() ? "grows" : "constant", row.saved_by});
  }
  std::string text = bold("Families", style) + " of saved tensors, in bytes\n" + table.text(style);
  text += fmt::format("  constant {} (parameters {}), growing {}\n", grouped(families.constant()),
                      grouped(families.parameter_bytes), grouped(families.growing()));
  for (const std::string& collision : families.collisions) {
    text += "  " + wrapped("not told apart: " + collision, 2, 4, style.width) + "\n";
  }
  return text + reason_line(families.measured_reason, style);
}

std::string sweep_text(const SweepReport& sweep, const TextStyle& style) {
  Table table({{std::string(name(sweep.axis))},
               {"A calculated"},
               {"A measured"},
               {"A0"},
               {"k"},
               {"times the one before"}});
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& p = sweep.points[i];
    std::string ratio;
    if (i > 0) {
      ratio = fmt::format("{:.3f}", static_cast<double>(p.calculated) /
                                        static_cast<double>(sweep.points[i - 1].calculated));
    }
    table.row({grouped(p.value), grouped(p.calculated), figure(p.measured), figure(p.A0),
               figure(p.k), ratio});
  }
  std::string text =
      bold("Sweep", style) +
      fmt::format(" over {} at batch {}, in bytes\n", name(sweep.axis), sweep.batch) +
      table.text(style);
  for (const std::string& note : sweep.notes) {
    text += "  " + wrapped(note, 2, 4, style.width) + "\n";
  }
  return text + reason_line(sweep.measured_reason, style);
}

std::string bisect_text(const BisectReport& bisect, const TextStyle& style) {
  Table table({{"batch"}, {"measured peak"}, {""}, {"", Align::kLeft}});
  for (const BisectTry& t : bisect.tries) {
    table.row({grouped(t.batch), grouped(t.peak), human(Bytes{t.peak}),
               t.fits ? "fits" : "does not fit"});
  }
  const std::string largest = bisect.largest
                                  ? fmt::format("largest batch {}", grouped(*bisect.largest))
                                  : std::string("not even one sample fits");
  std::string text = bold("Bisection", style) +
                     fmt::format(" under {} bytes ({}): {}\n", grouped(bisect.limit),
                                 human(Bytes{bisect.limit}), largest) +
                     table.text(style);
  if (bisect.calculated_largest) {
    text += fmt::format("  the calculated timeline says {}\n", grouped(*bisect.calculated_largest));
  }
  return text;
}

std::string measurement_text(const Measurement& m, const TextStyle& style) {
  std::string text = model_line(m.spec, m.parameters, style) + job_lines(m.spec, m.job, style) +
                     "\n" + section_text(reconciliation_section(m.reconciliation), style);
  if (m.fit_batch) text += "\n" + fit_text(*m.fit_batch, style);
  if (m.families) text += "\n" + families_text(*m.families, style);
  if (m.sweep) text += "\n" + sweep_text(*m.sweep, style);
  if (m.bisect) text += "\n" + bisect_text(*m.bisect, style);
  const std::string assumptions = section_text(assumptions_section(m.spec, m.job), style);
  return assumptions.empty() ? text : text + "\n" + assumptions;
}

}  // namespace plimsoll::report
