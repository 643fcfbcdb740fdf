// A group of ranks and the collectives they call together.
//
// All ranks of a group call the same collectives in the same order with the same counts, element
// types and labels; whatever differs is a Mismatch, never garbage. Calls only begin the collective;
// Work::wait completes it, in any order. One thread of a rank uses a communicator at a time.
//
// [Note: Sums in rank order] The only reduction is SUM, as ((x0 + x1) + x2) + ... over the ranks, in
// fp32 for fp32, bf16 and fp16, in fp64 for fp64, modulo 2^64 for int64. Sums of 16-bit floats are
// handed out as fp32. So a result depends neither on timing nor on the backend (except `nccl`).
//
// Counts are positive: an empty collective kills some backends and means nothing on the others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "plimsoll/comm/dtype.hpp"
#include "plimsoll/comm/error.hpp"
#include "plimsoll/comm/work.hpp"

namespace plimsoll::comm {

// What a collective is about; goes into errors and into the comparison between ranks.
struct Label {
  std::string_view unit = {};  // such as "layers.3"; longer than 31 bytes it is compared by hash
  std::int64_t step = -1;      // not compared
};

// Memory that peers can read without a copy in between, where the backend can do that.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<std::byte> data, std::int64_t bytes, bool common)
      : data_(std::move(data)), bytes_(bytes), common_(common) {}
  std::byte* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }
  bool common() const { return common_; }  // true: one piece of memory for all ranks of the group

 private:
  std::shared_ptr<std::byte> data_;
  std::int64_t bytes_ = 0;
  bool common_ = false;
};

enum class Sharing : std::uint8_t {
  // This rank's own memory, readable for peers: reduce_scatter and all_gather skip their copies.
  kOwn,
  // One piece of memory for the whole group, a collective call. all_gather into it is one write per
  // rank instead of R. Nobody may release or overwrite it before all ranks have stopped reading (a
  // barrier). Backends without shared memory give own memory: Buffer::common() tells.
  kCommon,
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // 0 .. size() - 1
  virtual int size() const = 0;

  // output = the inputs of rank 0, 1, ... one after the other; output.count = R * input.count. The
  // input may be this rank's place inside the output.
  virtual Work all_gather(ConstView input, View output, const Label& label = {}) = 0;
  // output = the sum of everybody's piece number rank() [Note: Sums in rank order];
  // input.count = R * output.count, output.dtype = sum_dtype(input.dtype). The output may be this
  // rank's piece of the input.
  virtual Work reduce_scatter(ConstView input, View output, const Label& label = {}) = 0;
  // output = the sum of all inputs; equal counts, output.dtype = sum_dtype(input.dtype). The output
  // may be the input.
  virtual Work all_reduce(ConstView input, View output, const Label& label = {}) = 0;
  // data = what rank `root` has in it.
  virtual Work broadcast(View data, int root, const Label& label = {}) = 0;
  // Complete when all ranks have called it.
  virtual Work barrier(const Label& label = {}) = 0;

  // The group of those who give the same colour, in the order of their ranks; blocks. A group of one
  // inside a larger world is refused on every rank (Mismatch naming it): there are no replica
  // meshes, and a rank that never talks to its replicas drifts from them silently.
  virtual std::unique_ptr<Communicator> split(std::int64_t colour, const Label& label = {}) = 0;

  // Ends the world: every wait on every rank throws `cause`, unless something else went wrong before.
  // A rank of -1 stands for this one, an empty operation for the last one that it began.
  virtual void fail(const Cause& cause) noexcept = 0;
  // fail() as PeerLost of this rank.
  void abort(std::string_view reason) noexcept;

  // Uninitialised memory, aligned to 64 bytes, given back when the last copy of the Buffer goes.
  virtual Buffer allocate(std::int64_t bytes, Sharing sharing = Sharing::kOwn) = 0;
};

inline void Communicator::abort(std::string_view reason) noexcept {
  Cause cause;
  cause.text = std::string(reason);
  fail(cause);
}

}  // namespace plimsoll::comm
