// A peer program that does one unit of work whenever it is told to, so that its units and ours can
// alternate within seconds instead of process by process.
//
// Protocol: the peer reads lines from stdin. For each it works once and prints "WALL CPU" (seconds);
// at the end of its input it prints one line of JSON and ends. Its stderr is ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "bench/harness.hpp"

namespace plimsoll::bench {

class PacedPeer {
 public:
  // Runs the Python of PLIMSOLL_PYTHON (else python3) on bench/peers/<script>, single-threaded, with
  // `variables` ("NAME=value") besides this process's environment.
  PacedPeer(const std::string& script, const std::vector<std::string>& arguments,
            const std::vector<std::string>& variables = {});
  ~PacedPeer();
  PacedPeer(const PacedPeer&) = delete;
  PacedPeer& operator=(const PacedPeer&) = delete;

  // One unit. Throws std::runtime_error when the peer has died.
  Elapsed step() {
    begin_step();
    return end_step();
  }
  // The same in two halves, for peers that need each other.
  void begin_step();
  Elapsed end_step();
  // Ends the peer's input; finish() then returns what it says about all its units.
  void end_input();
  nlohmann::json finish();

 private:
  std::string read_line();

  std::string script_;
  int child_ = 0;
  int to_peer_ = -1;
  int from_peer_ = -1;
  std::string unread_;
};

// Ranks of one peer program, started as torchrun would: on this host, each with its rank in its environment.
class PacedGroup {
 public:
  PacedGroup(const std::string& script, const std::vector<std::string>& arguments, int ranks);

  // One unit of all ranks; rank 0's time.
  Elapsed step();
  // What rank 0 says in the end.
  nlohmann::json finish();

 private:
  std::vector<std::unique_ptr<PacedPeer>> peers_;
};

}  // namespace plimsoll::bench
