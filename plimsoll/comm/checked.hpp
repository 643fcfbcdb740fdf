// Compares what the ranks call: kind, element types, count, root, unit and sequence number, by
// gathering 64 bytes beside every collective. The first difference is a Mismatch that names both
// calls, thrown before the data of the collective itself are waited for.
//
// `shm` and `threads` compare the same things by themselves; this is for the other backends, and for
// looking from outside. In a split the error names ranks by their places in the group.
#pragma once

#include <cstdint>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::comm {

class Checked final : public Decorator {
 public:
  using Decorator::Decorator;

 protected:
  Work begin_call(const Call& call) override;
  std::unique_ptr<Decorator> around(Communicator& inner) override;

 private:
  std::uint64_t sequence_ = 0;
};

}  // namespace plimsoll::comm
