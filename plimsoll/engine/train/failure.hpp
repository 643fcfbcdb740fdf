// How training ends on all ranks together when one of them cannot go on.
#pragma once

#include <stdexcept>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::engine {

// Thrown on every rank, with the same rank and step in its cause.
class TrainingFailed final : public std::runtime_error {
 public:
  TrainingFailed(const comm::Cause& cause, ExitCode code)
      : std::runtime_error(comm::format_cause(cause)), cause_(cause), code_(code) {}
  const comm::Cause& cause() const { return cause_; }
  ExitCode code() const { return code_; }

 private:
  comm::Cause cause_;
  ExitCode code_;
};

// What a rank does that has caught one: all leave together, and the world's error is that of the rank whose
// fault it is.
void end_world(comm::Communicator& world, const comm::Cause& cause);

}  // namespace plimsoll::engine
