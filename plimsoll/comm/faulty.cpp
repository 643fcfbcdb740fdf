#include "plimsoll/comm/faulty.hpp"

#include <csignal>
#include <cstring>
#include <limits>
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

// Inputs are memory of the caller, who does not expect it to change; that is the fault.
void spoil(const Call& call) {
  if (call.input.count == 0 || call.kind == Kind::kBarrier) return;
  void* first = const_cast<void*>(call.input.data);
  constexpr std::uint16_t kNan16 = 0x7fff;  // of both 16-bit types
  constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
  switch (call.input.dtype) {
    case DType::kFloat64:
      std::memcpy(first, &kNan, sizeof(kNan));
      break;
    case DType::kFloat32: {
      const auto narrow = static_cast<float>(kNan);
      std::memcpy(first, &narrow, sizeof(narrow));
      break;
    }
    case DType::kFloat16:
    case DType::kBFloat16:
      std::memcpy(first, &kNan16, sizeof(kNan16));
      break;
    case DType::kInt64:
    case DType::kUInt8:
      break;
  }
}

}  // namespace

Work Faulty::begin_call(const Call& call) {
  const std::string before = std::exchange(state_->unit_before, std::string(call.label.unit));
  const std::int64_t number = state_->calls++;
  const bool hit = fault_.when ? fault_.when(call) : number == fault_.call;
  return hit ? begin_faulty(call, before) : Decorator::begin_call(call);
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
    case FaultKind::kNotANumber:
      spoil(call);
      break;
  }
  return Decorator::begin_call(call);
}

std::unique_ptr<Decorator> Faulty::around(Communicator& inner) {
  return std::unique_ptr<Decorator>(new Faulty(inner, fault_, state_));
}

}  // namespace plimsoll::comm
