// plimsoll explain MODEL [TERM]: how a figure of the plan came about.
#include "plimsoll/report/explain.hpp"

#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/planned.hpp"
#include "plimsoll/cli/values.hpp"

namespace plimsoll::cli {
namespace {

Result<const plan::Term*> find_term(const std::vector<plan::Term>& terms, const std::string& name) {
  std::vector<std::string> names;
  for (const plan::Term& term : terms) {
    if (term.name == name) return &term;
    names.push_back(term.name);
  }
  const std::string near = nearest_name(name.substr(0, 64), names);
  return fail("explain", in_quotes(name) + " is no term of this plan",
              near.empty() ? "plimsoll explain MODEL lists the terms" : "nearest name: " + near);
}

Result<Output> run_explain(const Given& given, const TextStyle& style) {
  const auto plan = planned(given, Modes::kAll);
  if (!plan) return tl::unexpected(plan.error());
  const std::vector<plan::Term> terms = plan::explain_terms(*plan);
  const bool json = given.has("--json");
  if (given.further.empty()) {
    return Output{json ? report::json_text(report::terms_json(terms))
                       : report::terms_text(terms, style)};
  }
  const auto term = find_term(terms, given.further[0]);
  if (!term) return tl::unexpected(term.error());
  return Output{json ? report::json_text(report::term_json(**term))
                     : report::term_text(**term, style)};
}

}  // namespace

Command explain_command() {
  Syntax syntax{"explain",
                "how a figure of the plan came about; without TERM, all of them",
                "MODEL",
                job_options(),
                {"[TERM]"}};
  syntax.options.push_back({"--json", "", "JSON of schema plimsoll.explain/1"});
  return {std::move(syntax), run_explain};
}

}  // namespace plimsoll::cli
