// XXH3 with 64 bits: finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::checkpoint {

std::uint64_t checksum_of(std::span<const std::byte> bytes);
std::uint64_t checksum_of(std::string_view text);

// The same of bytes that come part by part.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 16 hexadecimal digits, lower case; the inverse takes nothing else.
std::string checksum_text(std::uint64_t checksum);
std::optional<std::uint64_t> parse_checksum(std::string_view text);

}  // namespace plimsoll::checkpoint
