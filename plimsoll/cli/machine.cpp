#include "plimsoll/cli/machine.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sched.h>
#include <string>
#include <thread>

namespace plimsoll::cli {
namespace {

// A line "MemTotal:  24576 kB" of /proc/meminfo in bytes.
std::optional<std::int64_t> meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::int64_t kibibytes = 0;
  while (file >> word) {
    if (word == key && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

// The limit of the control group, which containers set; absent or "max" means none.
std::optional<std::int64_t> container_limit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::int64_t bytes = 0;
  if (file >> bytes && bytes > 0) return bytes;
  return std::nullopt;
}

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cores = usable_cores();
  machine.memory_total = meminfo("MemTotal:");
  machine.memory_available = meminfo("MemAvailable:");
  if (const auto limit = container_limit(); limit && machine.memory_total) {
    machine.memory_total = std::min(*machine.memory_total, *limit);
    if (machine.memory_available) {
      machine.memory_available = std::min(*machine.memory_available, *limit);
    }
  }
  return machine;
}

}  // namespace plimsoll::cli
