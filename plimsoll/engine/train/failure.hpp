// How training ends on all ranks together when one of them cannot go on.
#pragma once

#include <stdexcept>
#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/comm/error.hpp"

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

}  // namespace plimsoll::engine
