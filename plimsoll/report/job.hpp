// What every report about a job begins with: the model, whose run it is, the settings.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/section.hpp"

namespace plimsoll::report {

// "gpt2: 124,439,808 parameters (124.44 M) in 148 tensors", one line.
std::string model_line(const network::NetworkSpec& spec, const network::ParameterCount& parameters,
                       const TextStyle& style);

// Whose run is described and with which settings, two lines or more.
std::string job_lines(const network::NetworkSpec& spec, const plan::Job& job,
                      const TextStyle& style);

// Section "Assumptions": what was not given and what the config is silent about.
Section assumptions_section(const network::NetworkSpec& spec, const plan::Job& job);

Json model_json(const network::NetworkSpec& spec, const network::ParameterCount& parameters);
Json job_json(const network::NetworkSpec& spec, const plan::Job& job);

// The facts about the library that a job rests on, each with its evidence.
Json facts_json(const plan::Job& job);

}  // namespace plimsoll::report
