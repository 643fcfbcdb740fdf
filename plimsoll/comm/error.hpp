// How a group of ranks says that it cannot go on.
//
// Three types, thrown by Work::wait and by the calls that begin a collective. Any of them is final
// for the whole world: every rank gets the same cause, named once, and every later call throws it
// again. Arguments that break a rule of communicator.hpp are the caller's bug: InternalError.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace plimsoll::comm {

enum class Kind : std::uint8_t { kAllGather, kReduceScatter, kAllReduce, kBroadcast, kBarrier };

// "all_gather", "reduce_scatter" ...
std::string_view name(Kind kind);

enum class CauseKind : std::uint8_t {
  kPeerLost,  // a rank died, left, threw or gave up
  kTimeout,   // a rank did not arrive before the deadline
  kMismatch,  // two ranks call different things
};

// The first thing that went wrong in a world.
struct Cause {
  CauseKind kind = CauseKind::kPeerLost;
  int rank = -1;           // whose fault, as a rank of the world; -1: unknown
  int reporter = -1;       // who noticed; -1: the launcher
  std::int64_t step = -1;  // -1: the caller named none
  std::string operation;   // empty: outside of any collective
  std::string unit;        // empty: the caller named none
  std::string text;        // what happened, without the fields above
};

// "[comm] rank 2: killed by signal 9 (Killed); operation=all_gather, unit=layers.3, step=7; seen by
// rank 0". Absent fields are left out.
std::string format_cause(const Cause& cause);

class CommError : public std::runtime_error {
 public:
  explicit CommError(Cause cause) : std::runtime_error(format_cause(cause)), cause_(cause) {}
  const Cause& cause() const { return cause_; }
  int rank() const { return cause_.rank; }

 private:
  Cause cause_;
};

class PeerLost final : public CommError {
 public:
  using CommError::CommError;
};

class Timeout final : public CommError {
 public:
  using CommError::CommError;
};

class Mismatch final : public CommError {
 public:
  using CommError::CommError;
};

// Throws the type that belongs to cause.kind.
[[noreturn]] void throw_cause(const Cause& cause);

}  // namespace plimsoll::comm
