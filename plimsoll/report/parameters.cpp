#include "plimsoll/report/parameters.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/network/families/families.hpp"

namespace plimsoll::report {
namespace {

const char* const kUnknownTies = "a weights file does not say which tensors are tied";
const char* const kUnknownBuffers = "a weights file does not say which tensors are buffers";

std::string share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string terms_section(const Parameters& p, const TextStyle& style) {
  Table table({{"term", Align::kLeft},
               {"formula", Align::kLeft},
               {"substituted", Align::kLeft},
               {"parameters"},
               {"share"}});
  for (const network::ParameterTerm& term : p.terms) {
    table.row({term.name, term.formula, term.substituted, grouped(term.count),
               share(term.count, p.count)});
  }
  table.rule();
  table.row({"sum", "", "", grouped(p.count), ""});
  return table.text(style);
}

std::string dtypes_section(const Parameters& p, const TextStyle& style) {
  Table table({{"dtype", Align::kLeft}, {"tensors"}, {"elements"}, {"bytes"}, {"", Align::kWrap}});
  for (const formats::DtypeCount& d : p.dtypes) {
    table.row({d.dtype, grouped(d.tensors), grouped(d.elements), grouped(d.bytes),
               d.parameters ? "" : "packed or integer: not counted as parameters"});
  }
  return table.text(style);
}

std::string signed_count(std::int64_t count) {
  return fmt::format("{}{}", count > 0 ? "+" : "", grouped(count));
}

std::string against_section(const PublishedCount& against, const TextStyle& style) {
  const std::string title = fmt::format(" {}{}: difference {}\n", grouped(against.published),
                                        against.file.empty() ? "" : " in " + visible(against.file),
                                        signed_count(against.difference));
  Table table({{"", Align::kRight}, {"", Align::kLeft}, {"", Align::kWrap}});
  for (const DifferencePart& part : against.parts) {
    table.row({signed_count(part.count), part.formula, visible(part.name)});
  }
  if (against.unexplained != 0) {
    table.row({signed_count(against.unexplained), "unexplained"});
  }
  return bold("Against", style) + title + table.text(style);
}

std::string totals_line(const Parameters& p) {
  if (!p.ties_counted) return "";
  return fmt::format("  counting ties twice {}, persistent buffers {}\n", grouped(*p.ties_counted),
                     grouped(p.persistent_buffers.value_or(0)));
}

std::string assumption_section(const Parameters& p, const TextStyle& style) {
  if (p.assumptions.empty()) return "";
  std::string text = "\n" + bold("Assumptions", style) + "\n";
  for (const std::string& line : p.assumptions) {
    text += "  - " + wrapped(visible(line), 4, 4, style.width) + "\n";
  }
  return text;
}

Json against_json(const PublishedCount& against) {
  Json parts = Json::array();
  for (const DifferencePart& part : against.parts) {
    parts.push_back({{"name", part.name}, {"formula", part.formula}, {"count", part.count}});
  }
  return {{"file", against.file.empty() ? Json(nullptr) : Json(against.file)},
          {"published", against.published},
          {"difference", against.difference},
          {"parts", std::move(parts)},
          {"unexplained", against.unexplained}};
}

void add_counts(Json& json, const Parameters& p) {
  Json reason = Json::object();
  json["parameters"] = p.count;
  json["parameter_tensors"] = p.tensors;
  json["parameters_ties_counted"] = p.ties_counted ? Json(*p.ties_counted) : Json(nullptr);
  json["buffers_persistent"] = p.persistent_buffers ? Json(*p.persistent_buffers) : Json(nullptr);
  if (!p.ties_counted) reason["parameters_ties_counted"] = kUnknownTies;
  if (!p.persistent_buffers) reason["buffers_persistent"] = kUnknownBuffers;
  if (!reason.empty()) json["reason"] = std::move(reason);
}

}  // namespace

Parameters parameters_of(const network::NetworkSpec& spec) {
  network::BuildOptions options;
  options.sequence = 1;  // sizes of a run do not matter here
  const network::Network network = network::build_network(spec, options);
  Parameters p;
  p.title = spec.title;
  p.terms = parameter_terms(spec);
  for (const network::ParameterTerm& term : p.terms) p.count = checked_add(p.count, term.count);
  check(p.count == network.parameter_elements(), "the terms do not sum to the parameters");
  p.tensors = static_cast<std::int64_t>(network.parameters.size());
  p.ties_counted = checked_add(p.count, network::tied_elements(spec));
  std::int64_t buffers = 0;
  for (const network::Buffer& b : network.buffers) {
    buffers = checked_add(buffers, network::element_count(b.shape));
  }
  p.persistent_buffers = buffers;
  p.assumptions = spec.assumptions;
  return p;
}

Parameters parameters_of(std::string title, const std::vector<formats::TensorEntry>& tensors) {
  Parameters p;
  p.title = std::move(title);
  p.dtypes = formats::count_by_dtype(tensors);
  for (const formats::DtypeCount& d : p.dtypes) {
    if (!d.parameters) continue;
    p.count = checked_add(p.count, d.elements);
    p.tensors += d.tensors;
  }
  return p;
}

std::string parameters_text(const Parameters& p, const TextStyle& style) {
  std::string text =
      fmt::format("{}: {} parameters ({}) in {} tensors\n", bold(visible(p.title), style),
                  grouped(p.count), human_count(p.count), grouped(p.tensors));
  text += totals_line(p) + "\n";
  text += p.terms.empty() ? dtypes_section(p, style) : terms_section(p, style);
  if (p.against) text += "\n" + against_section(*p.against, style);
  return text + assumption_section(p, style);
}

Json parameters_json(const Parameters& p) {
  Json json;
  json["schema"] = "plimsoll.params/1";
  json["model"] = p.title;
  add_counts(json, p);
  json["terms"] = Json::array();
  for (const network::ParameterTerm& term : p.terms) {
    json["terms"].push_back({{"name", term.name},
                             {"formula", term.formula},
                             {"substituted", term.substituted},
                             {"count", term.count}});
  }
  json["dtypes"] = Json::array();
  for (const formats::DtypeCount& d : p.dtypes) {
    json["dtypes"].push_back({{"dtype", d.dtype},
                              {"tensors", d.tensors},
                              {"elements", d.elements},
                              {"bytes", d.bytes},
                              {"parameters", d.parameters}});
  }
  json["against"] = p.against ? against_json(*p.against) : Json(nullptr);
  json["assumptions"] = p.assumptions;
  return json;
}

}  // namespace plimsoll::report
