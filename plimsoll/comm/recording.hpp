// Counts traffic: bytes that this rank takes from other ranks, by kind of collective.
//
// Counted at the call, from its sizes (call.hpp: bytes_taken); so it is what a collective has to
// move, not what a backend copies inside. Collectives of at most 64 bytes (losses, norms, flags,
// order hashes) are counted apart. Barriers take nothing. A split counts into the same figures.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::comm {

struct KindTraffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
};

struct Traffic {
  static constexpr std::int64_t kSmall = 64;  // bytes of input up to which a call is small
  std::array<KindTraffic, 5> kinds{};         // without the small ones, by Kind
  KindTraffic small;

  const KindTraffic& of(Kind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
  // Of all kinds, without the small ones.
  std::int64_t bytes() const;
};

class Recording final : public Decorator {
 public:
  explicit Recording(Communicator& inner) : Recording(inner, std::make_shared<Traffic>()) {}

  const Traffic& traffic() const { return *traffic_; }
  void reset() { *traffic_ = {}; }

 protected:
  Work begin_call(const Call& call) override;
  std::unique_ptr<Decorator> around(Communicator& inner) override;

 private:
  Recording(Communicator& inner, std::shared_ptr<Traffic> traffic)
      : Decorator(inner), traffic_(std::move(traffic)) {}

  const std::shared_ptr<Traffic> traffic_;  // shared with splits
};

}  // namespace plimsoll::comm
