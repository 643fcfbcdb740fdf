// The state of this process's default generator on the CPU, which dropout draws from.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace plimsoll::engine {

// Some 5 KB, of libtorch's own format. Not counted by meters.
std::vector<std::byte> random_state();
// Throws std::invalid_argument for bytes that are no such state.
void set_random_state(std::span<const std::byte> state);

}  // namespace plimsoll::engine
