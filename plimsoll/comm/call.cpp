#include "plimsoll/comm/call.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"
#include "plimsoll/base/hash.hpp"
#include "plimsoll/base/number_text.hpp"

namespace plimsoll::comm {
namespace {

bool is_sum(Kind kind) { return kind == Kind::kReduceScatter || kind == Kind::kAllReduce; }

std::int64_t expected_output(const Call& call, int size) {
  if (call.kind == Kind::kAllGather) return checked_mul(call.input.count, size);
  if (call.kind == Kind::kReduceScatter) {
    return call.input.count % size == 0 ? call.input.count / size : -1;
  }
  return call.input.count;
}

[[noreturn]] void refuse(const Call& call, const std::string& what) {
  throw InternalError(
      fmt::format("[comm] {} of unit={}: {}", name(call.kind), call.label.unit, what));
}

}  // namespace

void check_call(const Call& call, int size, bool fake_memory) {
  if (call.kind == Kind::kBarrier) return;
  if (call.input.count <= 0) refuse(call, fmt::format("count={}, expected > 0", call.input.count));
  const std::int64_t output = expected_output(call, size);
  if (call.output.count != output) {
    refuse(call, fmt::format("input={}, output={} elements on {} ranks, expected output={}",
                             call.input.count, call.output.count, size, output));
  }
  const DType dtype = is_sum(call.kind) ? sum_dtype(call.input.dtype) : call.input.dtype;
  if (call.output.dtype != dtype) {
    refuse(call, fmt::format("output of {}, expected {} for {}", name(call.output.dtype),
                             name(dtype), name(call.input.dtype)));
  }
  if (is_sum(call.kind) && dtype == DType::kUInt8) refuse(call, "uint8 cannot be summed");
  if (call.kind == Kind::kBroadcast && (call.root < 0 || call.root >= size)) {
    refuse(call, fmt::format("root={}, expected 0 .. {}", call.root, size - 1));
  }
  const bool has_memory = call.input.data != nullptr && call.output.data != nullptr;
  if (!has_memory && !fake_memory) refuse(call, "a view without memory");
}

Work begin(Communicator& group, const Call& call) {
  switch (call.kind) {
    case Kind::kAllGather:
      return group.all_gather(call.input, call.output, call.label);
    case Kind::kReduceScatter:
      return group.reduce_scatter(call.input, call.output, call.label);
    case Kind::kAllReduce:
      return group.all_reduce(call.input, call.output, call.label);
    case Kind::kBroadcast:
      return group.broadcast(call.output, call.root, call.label);
    case Kind::kBarrier:
      break;
  }
  return group.barrier(call.label);
}

Slice slice_of(std::int64_t count, int rank, int size) {
  const std::int64_t each = (count + size - 1) / size;
  const std::int64_t first = std::min(count, each * rank);
  return {first, std::min(each, count - first)};
}

std::int64_t bytes_taken(const Call& call, int rank, int size) {
  const std::int64_t others = size - 1;
  switch (call.kind) {
    case Kind::kAllGather:
      return checked_mul(call.input.bytes(), others);
    case Kind::kReduceScatter:
      return checked_mul(call.output.count, size_of(call.input.dtype)) * others;
    case Kind::kAllReduce: {
      const std::int64_t own = slice_of(call.input.count, rank, size).count;
      return own * others * size_of(call.input.dtype) +
             (call.input.count - own) * size_of(call.output.dtype);
    }
    case Kind::kBroadcast:
      return rank == call.root ? 0 : call.input.bytes();
    case Kind::kBarrier:
      break;
  }
  return 0;
}

bool Signature::operator==(const Signature& other) const {
  return kind == other.kind && input_dtype == other.input_dtype &&
         output_dtype == other.output_dtype && root == other.root && count == other.count &&
         sequence == other.sequence && unit_hash == other.unit_hash;
}

Signature signature_of(const Call& call, std::uint64_t sequence) {
  Signature signature;
  signature.kind = call.kind;
  signature.input_dtype = call.input.dtype;
  signature.output_dtype = call.output.dtype;
  signature.root = call.root;
  signature.count = call.input.count;
  signature.sequence = sequence;
  signature.unit_hash = fnv1a(call.label.unit);
  const std::size_t length = std::min(call.label.unit.size(), sizeof(signature.unit) - 1);
  if (!call.label.unit.empty()) std::memcpy(signature.unit, call.label.unit.data(), length);
  return signature;
}

std::string describe(const Signature& signature) {
  std::string text(name(signature.kind));
  if (signature.unit[0] != 0) text += fmt::format(" of unit={}", signature.unit);
  if (signature.kind == Kind::kBarrier) return text;
  text += fmt::format(" ({} {}", grouped(signature.count), name(signature.input_dtype));
  if (signature.root >= 0) text += fmt::format(" from rank {}", signature.root);
  return text + ")";
}

std::optional<Odd> odd_one(std::span<const Signature> calls) {
  const auto votes = [&](const Signature& call) {
    return std::count(calls.begin(), calls.end(), call);
  };
  // The first of the largest: max_element keeps the earliest of equals.
  const auto reference =
      std::max_element(calls.begin(), calls.end(),
                       [&](const Signature& a, const Signature& b) { return votes(a) < votes(b); });
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    if (calls[rank] == *reference) continue;
    return Odd{static_cast<int>(rank), static_cast<int>(reference - calls.begin())};
  }
  return std::nullopt;
}

Cause mismatch(int reference, const Signature& right, int odd, const Signature& theirs,
               std::int64_t step) {
  Cause cause;
  cause.kind = CauseKind::kMismatch;
  cause.rank = odd;
  cause.reporter = reference;
  cause.step = step;
  cause.operation = std::string(name(right.kind));
  cause.unit = right.unit;
  cause.text =
      fmt::format("calls {} as number {}, expected {} as number {}, which rank {} calls",
                  describe(theirs), theirs.sequence, describe(right), right.sequence, reference);
  return cause;
}

Cause lonely(int rank, int reporter, std::int64_t colour, int size, const Label& label) {
  Cause cause;
  cause.kind = CauseKind::kMismatch;
  cause.rank = rank;
  cause.reporter = reporter;
  cause.operation = "split";
  cause.unit = std::string(label.unit);
  cause.step = label.step;
  cause.text = fmt::format(
      "alone in a group of size 1 (colour {}) inside a group of {}, expected at least 2 members",
      colour, size);
  return cause;
}

int place_of(std::int64_t colour, std::span<const std::int64_t> colours, Communicator& group,
             const Label& label) {
  for (std::size_t member = 0; member < colours.size() && colours.size() > 1; ++member) {
    if (std::count(colours.begin(), colours.end(), colours[member]) > 1) continue;
    const Cause cause =
        lonely(static_cast<int>(member), group.rank(), colours[member], group.size(), label);
    group.fail(cause);
    throw Mismatch(cause);
  }
  const std::set<std::int64_t> distinct(colours.begin(), colours.end());
  return static_cast<int>(std::distance(distinct.begin(), distinct.find(colour)));
}

}  // namespace plimsoll::comm
