// How every figure of a plan came about: formula, substituted values, source.
//
// Values are read from the plan itself, so that what is explained is what was printed.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/base/evidence.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::plan {

struct Term {
  std::string name;     // "posts.P", "flops.forward.full"
  std::string formula;  // in letters
  std::string substituted;
  std::variant<std::int64_t, double, std::string> value;  // a text: a verdict
  std::string unit;  // bytes, tensors, storages, collectives, rows, parameters, FLOPs, seconds, 1
  std::string source;
  Evidence evidence = Evidence::kSource;
  std::string json_path;  // of the same figure in the plan's JSON, "" when it is not there
};

// All terms of a plan, in the order of its sections.
std::vector<Term> explain_terms(const Plan& plan);

// Parts of it.
void explain_memory(const Plan& plan, std::vector<Term>& terms);
void explain_cost(const Plan& plan, std::vector<Term>& terms);
void explain_logits(const Plan& plan, std::vector<Term>& terms);
void explain_traffic(const Plan& plan, std::vector<Term>& terms);
void explain_fit(const Plan& plan, std::vector<Term>& terms);

}  // namespace plimsoll::plan
