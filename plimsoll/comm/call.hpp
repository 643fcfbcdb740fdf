// One collective call as data: what backends and decorators implement once instead of five times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

struct Call {
  Kind kind = Kind::kBarrier;
  ConstView input;  // broadcast: the data; barrier: nothing
  View output;      // broadcast: the data
  int root = -1;    // broadcast alone
  Label label;
};

// Throws InternalError when the call breaks a rule of communicator.hpp for a group of `size`.
// `fake_memory`: null pointers are fine.
void check_call(const Call& call, int size, bool fake_memory);

// Begins `call` on `group`.
Work begin(Communicator& group, const Call& call);

// [Note: Slices] all_reduce cuts `count` elements into R slices of ceil(count / R); the last ones
// are shorter or empty. Rank r adds up slice r and everybody copies it from there.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
Slice slice_of(std::int64_t count, int rank, int size);

// Bytes that rank `rank` of `size` takes from other ranks in `call`; its own share costs nothing.
std::int64_t bytes_taken(const Call& call, int rank, int size);

// What two ranks must agree on, and the sequence number of the call in its group. Plain bytes, so
// that it can travel; 64 of them.
struct Signature {
  Kind kind = Kind::kBarrier;
  DType input_dtype = DType::kUInt8;
  DType output_dtype = DType::kUInt8;
  std::uint8_t padding = 0;
  std::int32_t root = -1;
  std::int64_t count = 0;  // of the input
  std::uint64_t sequence = 0;
  std::uint64_t unit_hash = 0;
  char unit[32] = {};  // its beginning, ended by 0

  bool operator==(const Signature& other) const;
};
static_assert(sizeof(Signature) == 64);

Signature signature_of(const Call& call, std::uint64_t sequence);

// "all_gather of unit=layers.3 (1,000 fp32)".
std::string describe(const Signature& signature);

// The first of `calls` (one per rank) that differs from what most ranks call; of two equal halves,
// from what the lower ranks call. So all ranks that compare the same calls blame the same one.
struct Odd {
  int rank = -1;
  int reference = -1;  // the first rank of the majority
};
std::optional<Odd> odd_one(std::span<const Signature> calls);

// The cause when rank `odd` calls `theirs` where `reference` calls `right`; both are named as given.
Cause mismatch(int reference, const Signature& right, int odd, const Signature& theirs,
               std::int64_t step);

// The cause when `rank` is the only member of its colour in a split of a group of `size`.
Cause lonely(int rank, int reporter, std::int64_t colour, int size, const Label& label);

// The place of `colour` among the distinct colours of a group in ascending order. Mismatch, after
// group.fail(), when a colour has one member in a group of several.
int place_of(std::int64_t colour, std::span<const std::int64_t> colours, Communicator& group,
             const Label& label);

// Turns the five collectives into one function. Defaults as in Communicator.
class CallCommunicator : public Communicator {
 public:
  Work all_gather(ConstView input, View output, const Label& label = {}) final {
    return begin_call({Kind::kAllGather, input, output, -1, label});
  }
  Work reduce_scatter(ConstView input, View output, const Label& label = {}) final {
    return begin_call({Kind::kReduceScatter, input, output, -1, label});
  }
  Work all_reduce(ConstView input, View output, const Label& label = {}) final {
    return begin_call({Kind::kAllReduce, input, output, -1, label});
  }
  Work broadcast(View data, int root, const Label& label = {}) final {
    return begin_call({Kind::kBroadcast, data, data, root, label});
  }
  Work barrier(const Label& label = {}) final {
    return begin_call({Kind::kBarrier, {}, {}, -1, label});
  }

 protected:
  virtual Work begin_call(const Call& call) = 0;
};

}  // namespace plimsoll::comm
