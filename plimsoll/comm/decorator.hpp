// A Communicator that passes everything on to another one: base of Recording, Checked, Delayed, Faulty
// and LastWords, which change what happens around each collective. They stack in any order.
#pragma once

#include <memory>

#include "plimsoll/comm/call.hpp"

namespace plimsoll::comm {

class Decorator : public CallCommunicator {
 public:
  // `inner` has to outlive the decorator.
  explicit Decorator(Communicator& inner) : inner_(&inner) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  // The inner group's split, decorated alike.
  std::unique_ptr<Communicator> split(std::int64_t colour, const Label& label = {}) override;
  void fail(const Cause& cause) noexcept override { inner_->fail(cause); }
  Buffer allocate(std::int64_t bytes, Sharing sharing = Sharing::kOwn) override {
    return inner_->allocate(bytes, sharing);
  }

 protected:
  Work begin_call(const Call& call) override { return begin(*inner_, call); }
  Communicator& inner() { return *inner_; }
  // The same decoration around another group.
  virtual std::unique_ptr<Decorator> around(Communicator& inner) = 0;

 private:
  Communicator* inner_;
  std::unique_ptr<Communicator> owned_;  // the inner group of a split
};

}  // namespace plimsoll::comm
