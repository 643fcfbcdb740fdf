// What this machine offers to this process: containers often give less than the machine has.
#pragma once

#include <cstdint>
#include <optional>

namespace plimsoll::cli {

struct Machine {
  std::int64_t cores = 1;                        // that the process may run on
  std::optional<std::int64_t> memory_total;      // bytes, the container's limit when there is one
  std::optional<std::int64_t> memory_available;  // bytes
};

// Unknown figures are absent; nothing fails.
Machine this_machine();

}  // namespace plimsoll::cli
