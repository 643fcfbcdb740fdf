// The verdict: whether a job fits its device, by how much, and what to change if it does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/hardware/device.hpp"
#include "plimsoll/plan/fit/changes.hpp"
#include "plimsoll/plan/fit/largest.hpp"
#include "plimsoll/plan/fit/need.hpp"

namespace plimsoll::plan {

enum class Verdict : std::uint8_t { kFits, kTight, kDoesNotFit };
std::string_view name(Verdict verdict);  // "fits", "tight", "does not fit"

// A fit that leaves less than this share of the available bytes is tight: what is not counted (see
// need.hpp) can be as much.
inline constexpr double kTightShare = 0.05;

struct Fit {
  hardware::MemoryBudget budget;
  Need need;
  Verdict verdict = Verdict::kFits;
  std::optional<std::int64_t> largest_batch;  // none when not even one row fits
  Changes changes;                            // when it does not fit
  std::int64_t free() const { return need.available - need.bytes; }  // negative: what is lacking
};

// The job has a device and has passed plan::validate. Throws OverflowError when its sizes leave 64 bits.
Fit make_fit(NeedSearch& search, const Job& job);

}  // namespace plimsoll::plan
