// Multi-head latent attention: keys and values, and mostly queries too, go through a narrow latent.
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/formats/inventory/decoder.hpp"

namespace plimsoll::formats {

class LatentAttention {
 public:
  explicit LatentAttention(ConfigReader& reader);

  // The attention of the layer that `d` is in.
  void write(Decoder& d) const;

 private:
  std::optional<std::int64_t> query_rank_;  // none: queries are projected directly
  std::int64_t rank_ = 1;                   // of keys and values
  std::int64_t plain_ = 1;                  // elements of a query or key without positions
  std::int64_t rotary_ = 1;  // elements with positions; the keys' are shared by heads
  std::int64_t value_ = 1;
  bool bias_ = false;
};

}  // namespace plimsoll::formats
