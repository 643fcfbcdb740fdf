#include "plimsoll/comm/recording.hpp"

namespace plimsoll::comm {

std::int64_t Traffic::bytes() const {
  std::int64_t sum = 0;
  for (const KindTraffic& one : kinds) sum = checked_add(sum, one.bytes);
  return sum;
}

Work Recording::begin_call(const Call& call) {
  Work work = Decorator::begin_call(call);  // checks the call first
  const bool small = call.kind != Kind::kBarrier && call.input.bytes() <= Traffic::kSmall;
  KindTraffic& counter =
      small ? traffic_->small : traffic_->kinds[static_cast<std::size_t>(call.kind)];
  ++counter.calls;
  counter.bytes = checked_add(counter.bytes, bytes_taken(call, rank(), size()));
  return work;
}

std::unique_ptr<Decorator> Recording::around(Communicator& inner) {
  return std::unique_ptr<Decorator>(new Recording(inner, traffic_));
}

}  // namespace plimsoll::comm
