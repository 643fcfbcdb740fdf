// A slower link: each collective takes `delay` more, one after the other, beginning with its call.
// Time that passes between call and wait counts, so a prefetched collective may cost nothing.
//
// For tests and benches of overlap: with as many busy ranks as cores, real copies have no free core
// to hide on, but a delay does not need one.
#pragma once

#include <memory>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::comm {

class Delayed final : public Decorator {
 public:
  Delayed(Communicator& inner, Milliseconds delay)
      : Delayed(inner, delay, std::make_shared<State>()) {}

  // How long waits have slept for the delay alone, since the beginning.
  Clock::duration slept() const { return state_->slept; }

 protected:
  Work begin_call(const Call& call) override;
  std::unique_ptr<Decorator> around(Communicator& inner) override;

 private:
  friend class DelayedWork;
  struct State {
    Clock::time_point free_at;  // when the link has passed everything begun so far
    Clock::duration slept{0};
  };
  Delayed(Communicator& inner, Milliseconds delay, std::shared_ptr<State> state)
      : Decorator(inner), delay_(delay), state_(std::move(state)) {}

  const Milliseconds delay_;
  const std::shared_ptr<State> state_;  // one link for a group and its splits
};

}  // namespace plimsoll::comm
