// One term of a plan explained, or the list of terms.
#pragma once

#include <span>
#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/plan/explain.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

std::string term_text(const plan::Term& term, const TextStyle& style);
std::string terms_text(std::span<const plan::Term> terms, const TextStyle& style);

// Schema plimsoll.explain/1: one term, or all of them under `terms`.
Json term_json(const plan::Term& term);
Json terms_json(std::span<const plan::Term> terms);

}  // namespace plimsoll::report
