// One fault at a chosen collective of this rank, for tests of what the others see.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::comm {

enum class FaultKind : std::uint8_t {
  kThrow,       // std::runtime_error("injected fault") instead of the call
  kStall,       // sleeps for Fault::stall before the call
  kExit,        // _exit(Fault::exit_code): no destructor, no handler
  kKill,        // SIGKILL to this process
  kStop,        // SIGSTOP to this process
  kWrongOrder,  // the call announces the unit of the call before, as if two had been swapped
  kWrongCount,  // the call is made for one element less per rank
  kNotANumber,  // the first element of this rank's input becomes NaN (floating types alone)
};

struct Fault {
  FaultKind kind = FaultKind::kThrow;
  std::int64_t call = 0;  // which collective, counted from 0
  Milliseconds stall{0};
  int exit_code = 9;
  // When set, in place of `call`: every collective for which it is true. It is asked once for each.
  std::function<bool(const Call&)> when = {};
};

class Faulty final : public Decorator {
 public:
  Faulty(Communicator& inner, const Fault& fault)
      : Faulty(inner, fault, std::make_shared<State>()) {}

 protected:
  Work begin_call(const Call& call) override;
  std::unique_ptr<Decorator> around(Communicator& inner) override;

 private:
  struct State {
    std::int64_t calls = 0;
    std::string unit_before = "no unit";
  };
  Faulty(Communicator& inner, const Fault& fault, std::shared_ptr<State> state)
      : Decorator(inner), fault_(fault), state_(std::move(state)) {}
  Work begin_faulty(Call call, const std::string& unit_before);

  const Fault fault_;
  const std::shared_ptr<State> state_;  // one count for a group and its splits
};

}  // namespace plimsoll::comm
