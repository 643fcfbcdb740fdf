#include "plimsoll/comm/error.hpp"

#include <fmt/format.h>

namespace plimsoll::comm {

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kReduceScatter:
      return "reduce_scatter";
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kBarrier:
      return "barrier";
  }
  return "?";
}

std::string format_cause(const Cause& cause) {
  std::string text = "[comm] ";
  if (cause.rank >= 0) text += fmt::format("rank {}: ", cause.rank);
  text += cause.text;
  std::string place;
  const auto add = [&](std::string_view field, std::string_view value) {
    place += fmt::format("{}{}={}", place.empty() ? "; " : ", ", field, value);
  };
  if (!cause.operation.empty()) add("operation", cause.operation);
  if (!cause.unit.empty()) add("unit", cause.unit);
  if (cause.step >= 0) add("step", std::to_string(cause.step));
  text += place;
  if (cause.reporter >= 0 && cause.reporter != cause.rank) {
    text += fmt::format("; seen by rank {}", cause.reporter);
  }
  return text;
}

void throw_cause(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kTimeout:
      throw Timeout(cause);
    case CauseKind::kMismatch:
      throw Mismatch(cause);
    case CauseKind::kPeerLost:
      break;
  }
  throw PeerLost(cause);
}

}  // namespace plimsoll::comm
