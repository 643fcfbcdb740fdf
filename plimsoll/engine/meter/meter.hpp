// Meter: records what happens to memory while it lives, byte by byte.
//
//   engine::Meter meter;
//   meter.begin_phase({timeline::Phase::kForward});
//   at::Tensor loss = model->forward(x);
//   meter.end_phase();
//   timeline::Timeline timeline = meter.finish();
//
// Counts requested bytes of every block on the CPU and on the meta device, of all threads of this
// process (one rank). What is not seen: library/allocators.hpp. Blocks that are alive when a meter
// starts are not events; their sum is start_bytes(). A timeline counts from 0, so add start_bytes()
// to its figures; when such a block is released, the timeline goes below 0. Or adopt() the ones
// that belong to the run.
//
// Several meters may record at once, nested or in different threads, and may end in any order:
// each one sees every event while it records. Phases and labels are each meter's own, tags belong
// to the blocks and are seen by all. Tensors may outlive a meter and the other way round.
//
// Events of one thread keep their order; those of several threads interleave as they happened.
// Cost: about 0.2 us per operation and 0.1 us per event; without a meter 10 ns per block.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::engine {

class Meter {
 public:
  // Starts recording into a timeline of its own.
  Meter();
  // Starts pushing events into `sink`, which must outlive the recording. It is called under a
  // lock: it may not allocate or drop tensors. When it throws, the meter stops, finish() rethrows.
  explicit Meter(timeline::Sink& sink);
  // Stops recording; drops what was recorded unless finish() took it. Never throws.
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // Begins a phase, ending the one that is open.
  void begin_phase(timeline::PhaseKey key);
  // Does nothing when no phase is open.
  void end_phase();

  // Names the next events, until called with "": then events carry libtorch's names again, that
  // of the operation called or, inside backward, of the running node.
  void operation(std::string_view label);

  // Records the tensor's block, alive before the meter started, as an allocation of this moment
  // with this tag, and takes it out of start_bytes(). Does nothing for tensors without a block, or
  // when the block was adopted before or made since.
  void adopt(const at::Tensor& tensor, timeline::Tag tag);

  // Bytes alive when the meter started, without those adopted, and all bytes alive now (no longer
  // updated after finish()).
  std::int64_t start_bytes() const;
  timeline::BytesByTag start_bytes_by_tag() const;
  std::int64_t current() const;

  // Stops recording and hands out the timeline, with an open phase ended. With a sink of one's own
  // it holds only the operation names. Throws std::logic_error when called twice.
  timeline::Timeline finish();

 private:
  class Stream;
  class Broadcast;
  std::unique_ptr<Stream> stream_;
};

// Ends its phase when it goes out of scope, also by an exception. The meter must outlive it.
class PhaseScope {
 public:
  PhaseScope(Meter& meter, timeline::PhaseKey key) : meter_(meter) { meter_.begin_phase(key); }
  ~PhaseScope() { meter_.end_phase(); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Meter& meter_;
};

}  // namespace plimsoll::engine
