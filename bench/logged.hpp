// A communicator that writes down when collectives begin and when they are waited for.
#pragma once

#include <memory>
#include <string>

#include <fmt/format.h>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::bench {

class Logged final : public comm::Decorator {
 public:
  explicit Logged(comm::Communicator& inner) : Logged(inner, std::make_shared<Log>()) {}

  // "+unit" for a gather that begins, "unit" where it is waited for; "(unit)" for reductions.
  std::string text() const { return log_->text; }
  std::size_t calls() const { return log_->calls; }
  void clear() { *log_ = {}; }

 protected:
  comm::Work begin_call(const comm::Call& call) override {
    comm::Work work = comm::begin(inner(), call);
    const comm::Milliseconds timeout = work.timeout();
    if (call.kind == comm::Kind::kBarrier) return work;
    ++log_->calls;
    std::string name(call.label.unit);
    if (call.kind != comm::Kind::kAllGather) name = fmt::format("({})", name);
    log_->text += " +" + name;
    return {std::make_unique<LoggedWork>(std::move(work), std::move(name), log_), timeout};
  }
  std::unique_ptr<Decorator> around(comm::Communicator& group) override {
    return std::unique_ptr<Decorator>(new Logged(group, log_));
  }

 private:
  struct Log {
    std::string text;
    std::size_t calls = 0;
  };
  class LoggedWork final : public comm::PendingWork {
   public:
    LoggedWork(comm::Work work, std::string name, std::shared_ptr<Log> log)
        : work_(std::move(work)), name_(std::move(name)), log_(std::move(log)) {}
    void finish(comm::Clock::time_point deadline) override {
      work_.finish(deadline);
      log_->text += " " + name_;
    }

   private:
    comm::Work work_;
    std::string name_;
    std::shared_ptr<Log> log_;
  };
  Logged(comm::Communicator& inner, std::shared_ptr<Log> log)
      : Decorator(inner), log_(std::move(log)) {}

  std::shared_ptr<Log> log_;
};

}  // namespace plimsoll::bench
