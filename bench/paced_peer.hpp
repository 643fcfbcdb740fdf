// A peer program that does one unit of work whenever it is told to, so that its units and ours can
// alternate within seconds instead of process by process.
//
// Protocol: the peer reads lines from stdin. For each it works once and prints "WALL CPU" (seconds);
// at the end of its input it prints one line of JSON and ends. Its stderr is ours.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "bench/harness.hpp"

namespace plimsoll::bench {

class PacedPeer {
 public:
  // Runs the Python of PLIMSOLL_PYTHON (else python3) on bench/peers/<script>, single-threaded.
  PacedPeer(const std::string& script, const std::vector<std::string>& arguments);
  ~PacedPeer();
  PacedPeer(const PacedPeer&) = delete;
  PacedPeer& operator=(const PacedPeer&) = delete;

  // One unit. Throws std::runtime_error when the peer has died.
  Elapsed step();
  // Ends the peer; what it says about all its units.
  nlohmann::json finish();

 private:
  std::string read_line();

  std::string script_;
  int child_ = 0;
  int to_peer_ = -1;
  int from_peer_ = -1;
  std::string unread_;
};

}  // namespace plimsoll::bench
