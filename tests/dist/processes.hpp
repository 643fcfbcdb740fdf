// Whether processes of other tests' making have ended, and which ones a process has started.
#pragma once

#include <sys/types.h>
#include <vector>

namespace plimsoll::test {

// Dead, whether or not anybody has asked for its exit code.
bool is_gone(pid_t pid);
// The same within five seconds.
bool is_gone_soon(pid_t pid);

// Direct children, ascending by what the kernel lists.
std::vector<pid_t> children_of(pid_t pid);

}  // namespace plimsoll::test
