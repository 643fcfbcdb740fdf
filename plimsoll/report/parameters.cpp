#include "plimsoll/report/parameters.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/network/families/families.hpp"

namespace plimsoll::report {
namespace {

const char* const kUnknownTies = "a weights file does not say which tensors are tied";
const char* const kUnknownActive = "a weights file does not say which experts a token uses";
const char* const kUnknownOthers = "a weights file holds no buffers that are not saved";
const char* const kUnknownBuffers = "a weights file does not say which tensors are buffers";

// Roles have shapes in place of a formula, and those may be many.
std::string roles_section(const Parameters& p, const TextStyle& style) {
  Table table({{"term", Align::kLeft}, {"parameters"}, {"share"}, {"tensors", Align::kWrap}});
  for (const network::ParameterTerm& term : p.terms) {
    table.row({term.name, grouped(term.count), share_text(term.count, p.count), term.substituted});
  }
  table.rule();
  table.row({"sum", grouped(p.count), "", ""});
  return table.text(style);
}

std::string terms_section(const Parameters& p, const TextStyle& style) {
  if (p.by_role) return roles_section(p, style);
  Table table({{"term", Align::kLeft},
               {"formula", Align::kLeft},
               {"substituted", Align::kLeft},
               {"parameters"},
               {"share"}});
  for (const network::ParameterTerm& term : p.terms) {
    table.row({term.name, term.formula, term.substituted, grouped(term.count),
               share_text(term.count, p.count)});
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

std::string totals_line(const Parameters& p, const TextStyle& style) {
  if (!p.ties_counted) return "";
  std::string text =
      fmt::format("  counting ties twice {}, persistent buffers {}\n", grouped(*p.ties_counted),
                  grouped(p.persistent_buffers.value_or(0)));
  if (p.active && *p.active != p.count) {
    text += fmt::format("  a token uses {} of them ({})\n", grouped(*p.active),
                        share_text(*p.active, p.count));
  }
  for (const auto& names : p.tied) {
    const std::string line = visible(fmt::format("tied: {}", fmt::join(names, " = ")));
    text += "  " + wrapped(line, 2, 4, style.width) + "\n";
  }
  return text;
}

std::string learning_section(const Parameters& p, const TextStyle& style) {
  if (!p.learning) return "";
  const network::ParameterCount& count = *p.learning;
  Table table({{"", Align::kLeft}, {"parameters"}, {"share"}, {"tensors"}});
  const auto add = [&](const char* what, std::int64_t elements, std::int64_t tensors) {
    table.row({what, grouped(elements), share_text(elements, count.all), grouped(tensors)});
  };
  add("trainable", count.trainable, count.trainable_tensors);
  add("frozen", count.frozen(), count.tensors - count.trainable_tensors);
  table.rule();
  add("sum", count.all, count.tensors);
  const std::string added =
      count.all > p.count ? fmt::format(": adapters add {}", grouped(count.all - p.count)) : "";
  return "\n" + bold("What learns", style) + added + "\n" + table.text(style);
}

Json learning_json(const Parameters& p) {
  if (!p.learning) return nullptr;
  return {{"trainable", p.learning->trainable},
          {"frozen", p.learning->frozen()},
          {"adapters", p.learning->all - p.count},
          {"trainable_tensors", p.learning->trainable_tensors},
          {"tensors", p.learning->tensors}};
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
  json["parameters_ties_counted"] = number_or_null(p.ties_counted);
  json["buffers_persistent"] = number_or_null(p.persistent_buffers);
  json["parameters_active"] = number_or_null(p.active);
  json["buffers_not_persistent"] = number_or_null(p.other_buffers);
  json["tied"] = p.tied;
  if (!p.ties_counted) reason["parameters_ties_counted"] = kUnknownTies;
  if (!p.active) reason["parameters_active"] = kUnknownActive;
  if (!p.persistent_buffers) reason["buffers_persistent"] = kUnknownBuffers;
  if (!p.other_buffers) reason["buffers_not_persistent"] = kUnknownOthers;
  if (!reason.empty()) json["reason"] = std::move(reason);
}

// Inline models: their buffers, and no names.
void count_network(const network::NetworkSpec& spec, Parameters& p) {
  network::BuildOptions options;
  options.sequence = 1;  // sizes of a run do not matter here
  const network::Network network = network::build_network(spec, options);
  p.tensors = static_cast<std::int64_t>(network.parameters.size());
  p.ties_counted = checked_add(p.count, network::tied_elements(spec));
  p.active = p.count;
  std::int64_t buffers = 0;
  for (const network::Buffer& b : network.buffers) {
    buffers = checked_add(buffers, network::element_count(b.shape));
  }
  p.persistent_buffers = buffers;
  p.other_buffers = 0;
}

// "36 x [4096,4096] + 72 x [1024,4096]", in order of first appearance.
std::string shapes_text(const network::Inventory& inventory, network::ParameterRole role) {
  constexpr std::size_t kMostShown = 8;
  std::vector<std::pair<network::Dims, std::int64_t>> shapes;
  for (const network::InventoryParameter& p : inventory.parameters) {
    if (p.role != role) continue;
    const auto same = std::find_if(shapes.begin(), shapes.end(),
                                   [&](const auto& entry) { return entry.first == p.shape; });
    if (same != shapes.end()) {
      ++same->second;
    } else {
      shapes.emplace_back(p.shape, 1);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(shapes.size(), kMostShown); ++i) {
    const auto& [shape, times] = shapes[i];
    text += fmt::format("{}{} x [{}]", i == 0 ? "" : " + ", times,
                        fmt::join(shape.begin(), shape.end(), ","));
  }
  if (shapes.size() <= kMostShown) return text;
  return text + fmt::format(" + tensors of {} more shapes", shapes.size() - kMostShown);
}

void add_role_terms(const network::Inventory& inventory, Parameters& p) {
  p.by_role = true;
  for (int i = 0; i <= static_cast<int>(network::ParameterRole::kOther); ++i) {
    const auto role = static_cast<network::ParameterRole>(i);
    const std::int64_t count = inventory.elements_of(role);
    if (count == 0) continue;
    p.terms.push_back(
        {std::string(name(role)), "sum of the shapes", shapes_text(inventory, role), count});
  }
}

void count_inventory(const network::Inventory& inventory, Parameters& p) {
  p.tensors = static_cast<std::int64_t>(inventory.parameters.size());
  p.ties_counted = inventory.ties_counted();
  p.active = inventory.active_elements();
  p.persistent_buffers = inventory.count_buffers(true).elements;
  p.other_buffers = inventory.count_buffers(false).elements;
  p.tied = inventory.tied;
}

}  // namespace

Parameters parameters_of(const formats::CountedModel& model) {
  Parameters p;
  p.title = model.title;
  if (model.spec) {
    p.terms = parameter_terms(*model.spec);
    p.assumptions = model.spec->assumptions;
  } else {
    add_role_terms(model.inventory->inventory, p);
    p.assumptions = model.inventory->assumptions;
  }
  for (const network::ParameterTerm& term : p.terms) p.count = checked_add(p.count, term.count);
  if (model.inventory) {
    count_inventory(model.inventory->inventory, p);
  } else {
    count_network(*model.spec, p);
  }
  return p;
}

Parameters parameters_of(const network::NetworkSpec& spec) {
  return parameters_of(formats::CountedModel{spec.title, spec, std::nullopt});
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
  text += totals_line(p, style) + "\n";
  text += p.terms.empty() ? dtypes_section(p, style) : terms_section(p, style);
  if (p.against) text += "\n" + against_section(*p.against, style);
  return text + learning_section(p, style) + assumption_section(p, style);
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
  json["learning"] = learning_json(p);
  json["assumptions"] = p.assumptions;
  return json;
}

}  // namespace plimsoll::report
