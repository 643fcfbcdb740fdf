#include "plimsoll/comm/faulty.hpp"

#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

namespace plimsoll::comm {
namespace {

// The same collective on one element less of each rank's share.
Call smaller(Call call, int size) {
  const std::int64_t input = call.kind == Kind::kReduceScatter ? size : 1;
  const std::int64_t output = call.kind == Kind::kAllGather ? size : 1;
  if (call.kind == Kind::kBarrier || call.input.count <= input) return call;
  call.input.count -= input;
  call.output.count -= output;
  return call;
}

}  // namespace

Work Faulty::begin_call(const Call& call) {
  const std::string before = std::exchange(state_->unit_before, std::string(call.label.unit));
  if (state_->calls++ != fault_.call) return Decorator::begin_call(call);
  return begin_faulty(call, before);
}

Work Faulty::begin_faulty(Call call, const std::string& unit_before) {
  switch (fault_.kind) {
    case FaultKind::kThrow:
      throw std::runtime_error("injected fault");
    case FaultKind::kStall:
      std::this_thread::sleep_for(fault_.stall);
      break;
    case FaultKind::kExit:
      _exit(fault_.exit_code);
    case FaultKind::kKill:
      kill(getpid(), SIGKILL);
      break;
    case FaultKind::kStop:
      kill(getpid(), SIGSTOP);
      break;
    case FaultKind::kWrongOrder:
      call.label.unit = unit_before;
      break;
    case FaultKind::kWrongCount:
      call = smaller(call, size());
      break;
  }
  return Decorator::begin_call(call);
}

std::unique_ptr<Decorator> Faulty::around(Communicator& inner) {
  return std::unique_ptr<Decorator>(new Faulty(inner, fault_, state_));
}

}  // namespace plimsoll::comm
