// What ranks of MPI tell each other when one of them cannot go on, beside the collectives.
//
// [Note: how a failure is told] A rank that fails sends its cause to all others, and once more its exit code at the
// end. Whoever waits listens every 100 us; a word that comes first makes the listener fail with the same
// cause, so it sends its own word, too. It gives what it waits for a quarter of a second more: the speaker may
// have got all of that collective, and found its cause in it, before the last pieces are here.
// After a deadline the words are a roll call: who is silent has not arrived.
// A code without a cause may be one that all ranks are about to return: it counts after half a second.
// The first cause is printed by the rank that had it (a Mismatch by its reporter), which then ends the job.
//
// [Note: memory of unfinished collectives] MPI cannot give one up: its data may arrive whenever the library is
// called. When a work is dropped unfinished, and its memory with it, this rank therefore only sends and
// ends, and no longer hears what others say.
#pragma once

#include <cstdint>
#include <deque>
#include <mpi.h>
#include <optional>
#include <vector>

#include "plimsoll/comm/call.hpp"

namespace plimsoll::comm {

// Throws PeerLost when MPI reports an error.
void require_mpi(int code, const char* what);

// Per process; groups share it. Used by one thread.
class MpiWorld {
 public:
  // MPI is initialised. Collective.
  explicit MpiWorld(Milliseconds grace);

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Before every collective: throws the failure when there is one. `call` is what fail() names when a
  // cause has no operation.
  void begin(const Call& call);
  // The first cause counts; all others are told.
  void fail(const Cause& cause) noexcept;
  // A work was dropped without a wait; `complete`: its data had arrived. While an exception is on its way that
  // one is the cause, should it get through to the end.
  void dropped(const Cause& cause, bool complete) noexcept;
  bool is_deaf() const { return deaf_; }
  bool failed() const { return cause_.has_value(); }
  void throw_if_failed() const {
    if (cause_) throw_cause(*cause_);
  }
  // For waits: takes in what has arrived. True when a failure was heard, or is known, and its last pieces have had
  // their time.
  bool hears_failure();
  // That failure, after a roll call when it is a deadline's.
  [[noreturn]] void throw_failure();
  // This rank's deadline has passed: waits for everybody's word at most half a second, then throws
  // Timeout with the first silent rank.
  [[noreturn]] void time_out(const Cause& cause);

  // Every rank's last call. Returns when all ranks give the same code and none has failed: they may
  // finalise. Otherwise the job ends here, within `grace` and the time to print; where the one that was to print is gone,
  // after as much again and a second.
  void end(int code);

 private:
  // Plain bytes that travel. Texts are cut to fit.
  struct Word {
    std::int64_t when = 0;   // microseconds of the system's clock
    std::int64_t step = -1;  // of the cause
    std::int32_t rank = -1;
    std::int32_t reporter = -1;
    std::int32_t speaker = -1;  // who prints it
    std::int32_t code = -1;     // exit code; -1: not known yet
    CauseKind kind = CauseKind::kPeerLost;
    bool failed = false;  // a cause is there
    bool own = false;     // and it was not heard from a peer
    char operation[24] = {};
    char unit[96] = {};
    char text[800] = {};
  };

  std::optional<Word>& own_word() { return words_[static_cast<std::size_t>(rank_)]; }
  void take_in();
  void believe_code();
  void adopt(const Cause& cause, bool own, int speaker);
  void complete(Cause& cause) const;
  void tell();
  void roll_call();
  void hear_all_codes();
  int first_silent() const;
  const Word& first_word();
  [[noreturn]] void end_job(int code);
  static Cause cause_in(const Word& word);

  const Milliseconds grace_;
  MPI_Comm news_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  Cause last_call_;  // operation, unit and step alone
  std::optional<Cause> cause_;
  std::optional<Cause> dropped_;
  bool deaf_ = false;                       // [Note: memory of unfinished collectives]
  std::optional<Clock::time_point> heard_;  // when cause_ was
  std::optional<Clock::time_point> left_;   // when a peer was first heard to have left with a code
  std::vector<std::optional<Word>> words_;  // the newest of each rank, this one's included
  std::deque<Word> sent_;
  std::vector<MPI_Request> sending_;
};

}  // namespace plimsoll::comm
