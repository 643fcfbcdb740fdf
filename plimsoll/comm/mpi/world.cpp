#include "plimsoll/comm/mpi/world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/base/error.hpp"

namespace plimsoll::comm {
namespace {

constexpr Milliseconds kRollCall{500};
constexpr std::chrono::milliseconds kForwarding{250};
// How long collectives may still take to be complete when a failure has been heard.
constexpr Milliseconds kLastPieces{250};
// What the speaker may need to print and to end the job, beside its grace, on a busy machine.
constexpr Milliseconds kSpeakersTime{1000};

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& from) {
  const std::size_t length = std::min(from.size(), N - 1);
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

// Calls `done` until it is true or the time is over.
template <class Done>
void wait_until(Milliseconds longest, const Done& done) {
  const auto end = Clock::now() + longest;
  while (!done() && Clock::now() < end) std::this_thread::sleep_for(Milliseconds(1));
}

std::int64_t now_in_microseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// MPICH's ranks of one host share memory under a name that stays behind when they are killed. All have
// mapped it now.
void forget_names() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t name = line.find("/dev/shm/mpich_shm_");
    if (name != std::string::npos && !line.ends_with(" (deleted)")) {
      unlink(line.substr(name).c_str());
    }
  }
}

// MPI's own lines would follow the one that says why.
void silence_stderr() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
}

}  // namespace

void require_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  Cause cause;
  cause.text = fmt::format("{} failed: {}", what, text);
  throw PeerLost(cause);
}

MpiWorld::MpiWorld(Milliseconds grace) : grace_(grace) {
  require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &news_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(news_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(news_, &rank_);
  MPI_Comm_size(news_, &size_);
  words_.resize(static_cast<std::size_t>(size_));
  MPI_Barrier(news_);
  forget_names();
}

void MpiWorld::begin(const Call& call) {
  if (dropped_ && !cause_) fail(*dropped_);
  throw_if_failed();
  last_call_.operation = name(call.kind);
  last_call_.unit = call.label.unit;
  last_call_.step = call.label.step;
}

void MpiWorld::fail(const Cause& cause) noexcept {
  if (cause_) return;
  Cause full = cause;
  complete(full);
  adopt(full, true, full.kind == CauseKind::kMismatch ? full.reporter : rank_);
}

void MpiWorld::dropped(const Cause& cause, bool complete) noexcept {
  if (!complete) deaf_ = true;
  if (std::uncaught_exceptions() > 0) {
    dropped_ = cause;
  } else {
    fail(cause);
  }
}

void MpiWorld::complete(Cause& cause) const {
  if (cause.rank < 0 && cause.kind != CauseKind::kTimeout) cause.rank = rank_;
  if (cause.reporter < 0) cause.reporter = rank_;
  if (!cause.operation.empty()) return;
  cause.operation = last_call_.operation;
  cause.unit = last_call_.unit;
  cause.step = last_call_.step;
}

void MpiWorld::adopt(const Cause& cause, bool own, int speaker) {
  cause_ = cause;
  Word word;
  word.when = now_in_microseconds();
  word.step = cause.step;
  word.rank = cause.rank;
  word.reporter = cause.reporter;
  word.speaker = speaker;
  word.kind = cause.kind;
  word.failed = true;
  word.own = own;
  copy_text(word.operation, cause.operation);
  copy_text(word.unit, cause.unit);
  copy_text(word.text, cause.text);
  own_word() = word;
  tell();
}

Cause MpiWorld::cause_in(const Word& word) {
  return {word.kind, word.rank, word.reporter, word.step, word.operation, word.unit, word.text};
}

// Small messages: they are on their way when the call returns, whether or not a peer listens.
void MpiWorld::tell() {
  sent_.push_back(*own_word());
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    const Word& word = sent_.back();
    if (MPI_Isend(&word, sizeof(word), MPI_BYTE, peer, 0, news_, &request) == MPI_SUCCESS) {
      sending_.push_back(request);
    }
  }
}

void MpiWorld::take_in() {
  while (!deaf_) {
    int there = 0;
    MPI_Status status;
    require_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, news_, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    Word word;
    require_mpi(MPI_Recv(&word, sizeof(word), MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, news_,
                         MPI_STATUS_IGNORE),
                "MPI_Recv");
    words_[static_cast<std::size_t>(status.MPI_SOURCE)] = word;
    if (word.failed && !cause_) adopt(cause_in(word), false, word.speaker);
    if (word.code > 0 && !left_) left_ = Clock::now();
  }
}

// Somebody left with a code of its own, or was not heard at the end.
void MpiWorld::believe_code() {
  Cause cause;
  for (int r = 0; r < size_ && cause.rank < 0; ++r) {
    const auto& word = words_[static_cast<std::size_t>(r)];
    if (!word || word->code <= 0) continue;
    cause.rank = r;
    cause.text = fmt::format("ended with exit code {}", word->code);
  }
  if (cause.rank < 0) {
    cause.rank = first_silent();
    cause.text = "did not come to its end";
  }
  const bool told = cause.rank >= 0 && words_[static_cast<std::size_t>(cause.rank)];
  cause.reporter = told ? cause.rank : rank_;
  adopt(cause, cause.reporter == rank_, cause.reporter);
}

bool MpiWorld::hears_failure() {
  take_in();
  const auto now = Clock::now();
  if (!cause_ && left_ && now - *left_ > kRollCall) believe_code();
  if (cause_ && !heard_) heard_ = now;
  return heard_ && now - *heard_ >= kLastPieces;
}

void MpiWorld::throw_failure() {
  if (cause_->kind == CauseKind::kTimeout) roll_call();
  throw_cause(*cause_);
}

int MpiWorld::first_silent() const {
  const auto silent = std::find(words_.begin(), words_.end(), std::nullopt);
  return silent == words_.end() ? -1 : static_cast<int>(silent - words_.begin());
}

void MpiWorld::roll_call() {
  wait_until(kRollCall, [&] {
    take_in();
    return first_silent() < 0;
  });
  if (cause_->rank < 0) cause_->rank = first_silent();
}

void MpiWorld::time_out(const Cause& cause) {
  fail(cause);
  throw_failure();
}

// Of the causes that ranks had of their own the first by the clocks of their hosts, else what was heard.
const MpiWorld::Word& MpiWorld::first_word() {
  const Word* first = &*own_word();
  for (const auto& word : words_) {
    if (!word || !word->failed || !word->own) continue;
    if (!first->own || word->when < first->when) first = &*word;
  }
  return *first;
}

// After a deadline those who were silent then are not asked again.
void MpiWorld::hear_all_codes() {
  const bool late = cause_ && cause_->kind == CauseKind::kTimeout;
  wait_until(grace_, [&] {
    take_in();
    return std::all_of(words_.begin(), words_.end(), [&](const std::optional<Word>& word) {
      return word ? word->code >= 0 : late;
    });
  });
}

void MpiWorld::end(int code) {
  auto& own = own_word();
  if (!own) own.emplace();
  own->code = code;
  tell();
  if (deaf_) {
    std::this_thread::sleep_for(std::min(kRollCall, grace_));
  } else {
    hear_all_codes();
  }
  const bool agreed = !cause_ && std::all_of(words_.begin(), words_.end(), [&](const auto& word) {
    return word && !word->failed && word->code == code;
  });
  if (!agreed) end_job(code);
  MPI_Waitall(static_cast<int>(sending_.size()), sending_.data(), MPI_STATUSES_IGNORE);
  MPI_Comm_free(&news_);
}

void MpiWorld::end_job(int code) {
  if (!cause_) believe_code();
  const Word word = first_word();
  // Its speaker ends the job. If that is gone, somebody has to.
  if (word.speaker != rank_) std::this_thread::sleep_for(grace_ + kSpeakersTime);
  Cause cause = cause_in(word);
  if (cause.rank < 0) cause.rank = cause_->rank;
  std::fputs((format_cause(cause) + "\n").c_str(), stderr);
  std::fflush(nullptr);
  // What the launcher has not forwarded when the job is ended is lost.
  std::this_thread::sleep_for(kForwarding);
  silence_stderr();
  const int failure = code == 0 ? static_cast<int>(ExitCode::kEnvironment) : code;
  MPI_Abort(MPI_COMM_WORLD, failure);
  std::_Exit(failure);
}

}  // namespace plimsoll::comm
