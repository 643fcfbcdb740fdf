// The parts of a plan as text and page show them: the posts, the peak, the phases, what is saved for
// backward, FLOPs, the closed form, traffic between ranks, and what it all rests on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/plan/plan.hpp"
#include "plimsoll/report/section.hpp"

namespace plimsoll::report {

enum class ShownStep : std::uint8_t { kSteady, kFirst };
std::string_view name(ShownStep step);  // "steady", "first"

const plan::StepTimeline& step_of(const plan::Plan& plan, ShownStep step);

// "in backward, at loss cross_entropy".
std::string peak_place(const plan::StepTimeline& step);

// Sections without content are empty: no closed form of image networks, no traffic of one rank.
Section posts_section(const plan::Plan& plan);
Section peak_section(const plan::Plan& plan, ShownStep shown);
Section phases_section(const plan::Plan& plan, ShownStep shown);
Section ledger_section(const plan::Plan& plan);
Section flops_section(const plan::Plan& plan);
Section closed_form_section(const plan::Plan& plan);
Section logits_section(const plan::Plan& plan);     // a large part of the peak, or in chunks
Section semantics_section(const plan::Plan& plan);  // empty for plans of hf themselves
Section traffic_section(const plan::Plan& plan);
Section advice_section(const plan::Plan& plan);
Section evidence_section(const plan::Plan& plan);  // of the library's facts; lists the assumed ones

}  // namespace plimsoll::report
