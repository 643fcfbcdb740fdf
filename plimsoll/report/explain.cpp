#include "plimsoll/report/explain.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

std::string value_text(const plan::Term& term) {
  if (const auto* whole = std::get_if<std::int64_t>(&term.value)) return grouped(*whole);
  if (const auto* text = std::get_if<std::string>(&term.value)) return *text;
  return fmt::format("{:.6g}", std::get<double>(term.value));
}

std::string with_unit(const plan::Term& term) {
  std::string text = value_text(term);
  if (term.unit != "1") text += " " + term.unit;
  const auto* bytes = std::get_if<std::int64_t>(&term.value);
  if (bytes != nullptr && term.unit == "bytes" && std::abs(*bytes) >= 1024) {
    text += fmt::format(" ({})", human(Bytes{*bytes}));
  }
  return text;
}

Json body(const plan::Term& term) {
  Json json;
  json["term"] = term.name;
  json["formula"] = term.formula;
  json["substituted"] = term.substituted;
  std::visit([&](const auto& value) { json["value"] = value; }, term.value);
  json["unit"] = term.unit;
  json["source"] = term.source;
  json["evidence"] = name(term.evidence);
  json["in_plan"] = term.json_path.empty() ? Json(nullptr) : Json(term.json_path);
  return json;
}

}  // namespace

std::string term_text(const plan::Term& term, const TextStyle& style) {
  std::string text = fmt::format("{} = {}\n", bold(term.name, style), with_unit(term));
  const auto line = [&](const char* what, const std::string& value) {
    if (value.empty()) return;
    text += fmt::format("  {:<11}  ", what) + wrapped(visible(value), 15, 15, style.width) + "\n";
  };
  line("formula", term.formula);
  line("substituted", term.substituted);
  line("source", term.source);
  line("evidence", std::string(name(term.evidence)));
  line("in the plan", term.json_path);
  return text;
}

std::string terms_text(std::span<const plan::Term> terms, const TextStyle& style) {
  Table table({{"term", Align::kLeft}, {"value"}, {"", Align::kLeft}, {"formula", Align::kWrap}},
              0);
  for (const plan::Term& term : terms) {
    table.row({term.name, value_text(term), term.unit == "1" ? "" : term.unit, term.formula});
  }
  return table.text(style);
}

Json term_json(const plan::Term& term) {
  Json json;
  json["schema"] = "plimsoll.explain/1";
  json.update(body(term));
  return json;
}

Json terms_json(std::span<const plan::Term> terms) {
  Json json;
  json["schema"] = "plimsoll.explain/1";
  json["terms"] = Json::array();
  for (const plan::Term& term : terms) json["terms"].push_back(body(term));
  return json;
}

}  // namespace plimsoll::report
