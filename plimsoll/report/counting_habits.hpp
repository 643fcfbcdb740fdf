// The ways in which people count the parameters of one and the same model differently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::report {

// Part of published - calculated.
struct DifferencePart {
  std::string name;
  std::string formula;  // may be empty
  std::int64_t count = 0;
};

// Everything that others leave out or count besides, with its size; never 0. Likely ones first.
std::vector<DifferencePart> counting_habits(const formats::CountedModel& model);

// Rules of thumb that replace the exact sum: 12 L D^2 and the like, as differences to `calculated`.
// They explain a count alone, never beside a habit.
std::vector<DifferencePart> rules_of_thumb(const formats::CountedModel& model,
                                           std::int64_t calculated);

}  // namespace plimsoll::report
