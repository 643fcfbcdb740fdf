// The options that describe a job, the same for every command that plans or runs one.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/cli/command.hpp"
#include "plimsoll/formats/load_shape.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::cli {

// The frozen list, in the order of the help.
std::vector<Option> job_options();

// The modes of a job (--mode) that a command takes: training alone, or inference, too. Another one is
// refused.
enum class Modes : std::uint8_t { kTraining, kAll };

// The job that the options describe for this model; settings that were not given are chosen and
// listed in its assumptions. Has passed plan::validate(). Refused with exit code 2: unknown values
// (with the nearest name), and values of the contract that this version cannot do.
Result<plan::Job> make_job(const Given& given, const network::NetworkSpec& spec,
                           Modes modes = Modes::kTraining);

// The same for a model of which only the sizes may be known: what needs its operations is then not
// checked.
Result<plan::Job> make_job(const Given& given, const formats::LoadedShape& model);

}  // namespace plimsoll::cli
