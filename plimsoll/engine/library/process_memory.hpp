// How this process gets its memory from the system.
//
// Every step of training allocates and releases the same blocks again. glibc gives the large ones back to
// the system at once, and the next step pays for each of their pages anew: zeroing it and a page fault. A
// process that trains keeps them instead, and asks for huge pages.
//
// No block is larger or smaller for it, so meters and plans say the same. What the process occupies
// (RSS) stays at its highest, above the blocks alive by what lies unused between them.
#pragma once

#include <cstddef>

namespace plimsoll::engine {

// From now on the heap only grows, large blocks come from it, and it lies in huge pages where the system
// has them for who asks (transparent_hugepage: madvise or always). For the whole process, to be called
// before its threads start; calls after the first do nothing. Ranks do it themselves (zero/launch.hpp).
// PLIMSOLL_KEEP_MEMORY=0 in the environment: nothing changes. With another C library than glibc, neither.
void keep_memory();

// Told of each block: asks for huge pages when the heap has grown up to it. Without keep_memory() and
// without growth it costs a comparison. Thread-safe.
void heap_reaches(const std::byte* end) noexcept;

}  // namespace plimsoll::engine
