#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/report/job.hpp"
#include "plimsoll/report/math_model.hpp"
#include "plimsoll/report/roofline_text.hpp"

namespace plimsoll::report {
namespace {

std::string title_line(const ModelMath& math, const TextStyle& style) {
  std::string text =
      fmt::format("{}: {} parameters ({})", bold(visible(math.shape.title), style),
                  grouped(math.shape.parameters), human_count(math.shape.parameters));
  if (math.shape.inactive > 0) {
    text += fmt::format(", {} of them active ({})", grouped(math.shape.active()),
                        human_count(math.shape.active()));
  }
  return text + "\n";
}

std::string flops_text(const plan::CostRow& row) {
  return row.flops.full == 0 ? "-" : human(Flops{row.flops.causal_exact});
}

// "backward weight" -> "back weight": eight columns share a line.
std::string short_pass(const std::string& pass) {
  constexpr std::string_view kLong = "backward ";
  return pass.starts_with(kLong) ? "back " + pass.substr(kLong.size()) : pass;
}

std::string rows_section(const ModelMath& math, const TextStyle& style) {
  const auto arithmetic = plan::arithmetic_of(math.job.recipe().compute);
  Table table({{"operation", Align::kLeft},
               {"pass", Align::kLeft},
               {"FLOPs"},
               {"read"},
               {"written"},
               {"FLOP/B"},
               {math.bound ? "at least" : ""},
               {"", Align::kLeft}});
  for (const plan::CostRow& row : math.rows) {
    std::optional<plan::RooflinePoint> point;
    if (math.bound) {
      point =
          plan::roofline(*math.job.device, arithmetic, static_cast<double>(row.flops.causal_exact),
                         static_cast<double>(row.bytes()));
    }
    table.row({row.operation, short_pass(row.pass), flops_text(row), human(Bytes{row.bytes_read}),
               human(Bytes{row.bytes_written}), fmt::format("{:.1f}", row.intensity()),
               point ? with_prefix(point->seconds, "s") : "", point ? bound_by(*point) : ""});
  }
  std::string text = bold("One micro-batch and the optimizer's pass", style) +
                     ", all layers together, attention causal exact\n" + table.text(style);
  if (math.bound) {
    text += fmt::format("  at least {} in all, most of it bound by {}\n",
                        with_prefix(math.bound->seconds, "s"), math.bound->by());
  }
  return text + device_roof(math.job.device.get(), arithmetic, style);
}

std::string conventions_section(const ModelMath& math, const TextStyle& style) {
  Table table({{"", Align::kLeft}, {"per token"}, {"", Align::kWrap}});
  for (const plan::TokenConvention& c : math.conventions) {
    table.row({c.name, with_prefix(c.flops_per_token, "FLOP"), c.formula});
  }
  return "\n" + bold("Conventions", style) + ", FLOPs of training per token\n" + table.text(style);
}

std::string crossover_line(const ModelMath& math, const TextStyle& style) {
  const auto round = [](double tokens) { return grouped(static_cast<std::int64_t>(tokens)); };
  const std::string text = fmt::format(
      "The square of attention costs more than all other products of the layers from T = {} on "
      "(whole square; {} when half is computed). The rule T > 8 D, for F = 4 D, gated and D = N H, "
      "says {}.",
      round(math.crossover), round(2 * math.crossover), grouped(checked_mul(8, math.shape.width)));
  return "  " + wrapped(text, 2, 2, style.width) + "\n";
}

std::string experts_section(const ModelMath& math, const TextStyle& style) {
  if (!math.experts) return "";
  const plan::ExpertFacts& e = *math.experts;
  const std::string text = fmt::format(
      "{} experts, {} per token, in {} layers: sparsity E/k = {:.4g}. A layer exchanges tokens "
      "twice a pass (to the experts and back), {} bytes each over all ranks (B T k D e), {} times "
      "in a training step.",
      grouped(e.experts), grouped(e.per_token), grouped(e.layers), e.sparsity,
      grouped(e.all_to_all_bytes), grouped(e.exchanges));
  return "\n" + bold("Experts", style) + "\n  " + wrapped(text, 2, 2, style.width) + "\n";
}

std::string utilisation_section(const ModelMath& math, const TextStyle& style) {
  if (math.tokens_per_second == 0) return "";
  std::string text = "\n" + bold("Utilisation", style) +
                     fmt::format(" at {} tokens/s per device\n", math.tokens_per_second);
  if (math.utilisation.empty()) return text + "  unknown: it needs a device with a known peak\n";
  Table table({{"", Align::kLeft}, {""}});
  for (const Utilisation& u : math.utilisation) {
    table.row({u.convention, fmt::format("{:.2f} %", 100 * u.fraction)});
  }
  return text + table.text(style);
}

std::string states_section(const ModelMath& math, const TextStyle& style) {
  Table table({{"recipe", Align::kLeft},
               {"stage 0"},
               {"stage 1"},
               {"stage 2"},
               {"stage 3"},
               {"", Align::kWrap}});
  for (const StatesLine& line : math.states) {
    std::vector<std::string> cells = {line.recipe};
    for (const double total : line.totals) cells.push_back(with_prefix(total, "B"));
    cells.push_back(line.meaning);
    table.row(std::move(cells));
  }
  return "\n" + bold("Model states by formula", style) +
         fmt::format(", P + G + O per rank of {} ranks with AdamW, in powers of 1000\n",
                     math.states_ranks) +
         table.text(style);
}

std::string copies_section(const LayerCopies& copies, const ModelMath& math,
                           const TextStyle& style) {
  const double unit = static_cast<double>(math.job.batch) * static_cast<double>(math.job.sequence) *
                      static_cast<double>(math.shape.width) *
                      static_cast<double>(network::size_of(math.job.recipe().compute));
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kLeft}}, 4);
  for (const plan::LayerTensor& tensor : copies.tensors) {
    table.row({tensor.saved_by, fmt::format("{:.3f}", static_cast<double>(tensor.bytes) / unit),
               std::string(network::name(tensor.dtype)), network::to_text(tensor.shape)});
  }
  return fmt::format("  checkpoint {}: {:.2f} copies in {} tensors\n", copies.policy, copies.copies,
                     copies.tensors.size()) +
         table.text(style);
}

std::string activations_section(const ModelMath& math, const TextStyle& style) {
  if (math.activations.empty()) return "";
  std::string text =
      "\n" + bold("What one layer keeps for backward", style) + ", in copies of B T D e\n";
  for (const LayerCopies& copies : math.activations) text += copies_section(copies, math, style);
  return text;
}

}  // namespace

std::string model_math_text(const ModelMath& math, const TextStyle& style) {
  return title_line(math, style) +
         fmt::format("batch {} x {} tokens, {}\n\n", grouped(math.job.batch),
                     grouped(math.job.sequence), plan::name(math.job.precision)) +
         rows_section(math, style) + conventions_section(math, style) +
         crossover_line(math, style) + utilisation_section(math, style) +
         experts_section(math, style) + states_section(math, style) +
         activations_section(math, style);
}

}  // namespace plimsoll::report
