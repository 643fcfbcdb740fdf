// What a device can do: memory, peak rates, links, each figure with where it is from.
//
// Peaks are dense and theoretical: what a kernel reaches is lower, so times made of them are bounds.
// Not here: clocks under load, power limits, partitions of a card.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/evidence.hpp"

namespace plimsoll::hardware {

// A figure, or none when it is unknown; `source` says where it is from, or why it is unknown.
template <class T>
struct Figure {
  std::optional<T> value;
  Evidence evidence = Evidence::kAssumed;
  std::string source;
};

// Kinds of arithmetic that data sheets list.
enum class Arithmetic : std::uint8_t { kFp64, kFp32, kTf32, kBf16, kFp16, kFp8, kInt8, kCount };
std::string_view name(Arithmetic arithmetic);

// Operations per second.
struct Peak {
  Figure<double> vector;  // outside matrix units
  Figure<double> tensor;  // in matrix units (tensor cores)
  // The faster one, which a matrix product can use; none when both are unknown.
  std::optional<double> matmul() const;
};

struct Link {
  std::string name;
  std::string title;
  Figure<double> bandwidth;  // bytes per second, one direction
  Figure<double> latency;    // seconds per step of a ring
};

enum class Platform : std::uint8_t { kCuda, kRocm };
std::string_view name(Platform platform);

struct Device {
  std::string name;   // "h100-80g"
  std::string title;  // "NVIDIA H100 SXM5, 80 GB"
  Platform platform = Platform::kCuda;
  // Of CUDA cards, ten times major plus minor: 90 is 9.0. Decides which kernels a library takes.
  Figure<std::int64_t> compute_capability;
  Figure<std::int64_t> capacity;  // bytes, as marketed; the vendors' GB of memory are 2^30
  Figure<std::int64_t> usable;    // bytes that the driver reports to programs
  Figure<std::int64_t> context;   // bytes kept free for the driver's context and loaded kernels
  Figure<double> bandwidth;       // of its memory, bytes per second
  std::array<Peak, static_cast<std::size_t>(Arithmetic::kCount)> peaks;
  std::vector<Link> links;  // fastest first

  const Peak& peak(Arithmetic arithmetic) const {
    return peaks.at(static_cast<std::size_t>(arithmetic));
  }
};

// A GPU of this capacity of which nothing else is known: all of it usable, the context assumed.
Device device_of_size(std::int64_t bytes, std::string_view text);

// How many bytes of a device a job may use.
struct MemoryBudget {
  std::int64_t capacity = 0;  // as marketed
  std::int64_t usable = 0;    // as the driver reports
  Figure<std::int64_t> reserve;
  // What allocators may reserve; 0 when the reserve takes everything.
  std::int64_t available() const;
};

// With the device's own context as reserve, or with `reserve` bytes as the user gave them.
MemoryBudget memory_budget(const Device& device, std::optional<std::int64_t> reserve);

}  // namespace plimsoll::hardware
