// The calls by which checkpoints are written. Tests put a disk in between that fails.
#pragma once

#include <cstddef>
#include <sys/types.h>

namespace plimsoll::checkpoint {

// As the system calls of the same names: -1 and errno, and a write may be short.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual ssize_t write(int descriptor, const void* data, std::size_t bytes);
  virtual int fsync(int descriptor);
  virtual int rename(const char* from, const char* to);
};

// The machine's.
Disk& real_disk();

}  // namespace plimsoll::checkpoint
