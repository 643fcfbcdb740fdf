#include "plimsoll/engine/meter/meter.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/engine/library/operation_names.hpp"

namespace plimsoll::engine {
struct OperationNameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

// Gives each operation name a number within one stream; "" is 0.
class OperationNumbers {
 public:
  timeline::OperationId id(std::string_view name) {
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    const auto id = static_cast<timeline::OperationId>(names_.size());
    names_.emplace_back(name);
    ids_.emplace(name, id);
    return id;
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_{""};
  std::unordered_map<std::string, timeline::OperationId, OperationNameHash, std::equal_to<>> ids_{
      {"", 0}};
};

// What one meter has recorded. All members are guarded by AllocationLock.
class Meter::Stream {
 public:
  explicit Stream(timeline::Sink* sink) : sink_(sink == nullptr ? &recorder_ : sink) {}

  // Takes the figures at the start. Every later event must be pushed, and no earlier one.
  void start() {
    start_ = live_bytes();
    first_block_ = next_block_id();
    current_ = total(start_);
  }

  // Runs `push`, which may throw: events arrive inside destructors, where that would end the
  // process. The first exception stops the stream and is kept for finish().
  template <class Push>
  void push(Push&& push) noexcept {
    if (stopped_) return;
    try {
      push(*sink_);
    } catch (...) {
      failure_ = std::current_exception();
      stopped_ = true;
    }
  }

  void allocate(const Block& block) noexcept {
    current_ += block.bytes;
    push([&](timeline::Sink& sink) {
      sink.allocate(number(block), block.bytes, block.tag, operation());
    });
  }

  void release(const Block& block) noexcept {
    current_ -= block.bytes;
    push([&](timeline::Sink& sink) {
      sink.release(number(block), block.bytes, block.tag, operation());
    });
  }

  void retag(const Block& block, timeline::Tag from) noexcept {
    push([&](timeline::Sink& sink) { sink.retag(number(block), block.bytes, from, block.tag); });
  }

  void begin_phase(timeline::PhaseKey key) noexcept {
    end_phase();
    push([&](timeline::Sink& sink) { sink.begin_phase(key); });
    phase_open_ = true;
  }

  void end_phase() noexcept {
    if (phase_open_) push([](timeline::Sink& sink) { sink.end_phase(); });
    phase_open_ = false;
  }

  void adopt(const Block& block) {
    if (block.id >= first_block_ || !adopted_.insert(block.id).second) return;
    start_[static_cast<std::size_t>(block.tag)] -= block.bytes;
    push([&](timeline::Sink& sink) {
      sink.allocate(number(block), block.bytes, block.tag, operation());
    });
  }

  // Blocks made after the start count from 0, older ones from 2^32 downwards.
  timeline::BlockId number(const Block& block) const {
    return static_cast<timeline::BlockId>(block.id - first_block_);
  }

  timeline::OperationId operation() {
    return names_.id(label_.empty() ? outermost_operation() : std::string_view(label_));
  }

  timeline::Timeline take() {
    if (failure_) std::rethrow_exception(failure_);
    timeline::Timeline timeline = std::move(recorder_.timeline());
    timeline.operations = names_.take();
    return timeline;
  }

  timeline::BytesByTag start_{};
  std::uint64_t first_block_ = 0;
  std::int64_t current_ = 0;
  std::string label_;
  bool recording_ = true;

 private:
  OperationWatch watch_;
  timeline::Recorder recorder_;
  timeline::Sink* sink_;
  OperationNumbers names_;
  std::unordered_set<std::uint64_t> adopted_;
  bool phase_open_ = false;
  bool stopped_ = false;
  std::exception_ptr failure_;
};

// Hands each event to all streams that record. Its members are guarded by AllocationLock, which is
// held while events arrive.
class Meter::Broadcast final : public AllocationListener {
 public:
  static Broadcast& instance() {
    static auto* broadcast =
        new Broadcast;  // never destroyed: tensors die after static destructors
    return *broadcast;
  }

  void on_allocate(const Block& block) noexcept override {
    for (Stream* stream : streams_) stream->allocate(block);
  }
  void on_release(const Block& block) noexcept override {
    for (Stream* stream : streams_) stream->release(block);
  }
  void on_retag(const Block& block, timeline::Tag from) noexcept override {
    for (Stream* stream : streams_) stream->retag(block, from);
  }

  void add(Stream* stream) {
    AllocationLock lock;
    streams_.push_back(stream);
    stream->start();
    lock.set_listener(this);
  }

  void remove(Stream* stream) {
    AllocationLock lock;
    std::erase(streams_, stream);
    if (streams_.empty()) lock.set_listener(nullptr);
    stream->end_phase();
    stream->recording_ = false;
  }

 private:
  std::vector<Stream*> streams_;
};

namespace {

template <class Action>
auto locked(Action&& action) {
  const AllocationLock lock;
  return action();
}

}  // namespace

Meter::Meter() : stream_(std::make_unique<Stream>(nullptr)) {
  Broadcast::instance().add(stream_.get());
}

Meter::Meter(timeline::Sink& sink) : stream_(std::make_unique<Stream>(&sink)) {
  Broadcast::instance().add(stream_.get());
}

Meter::~Meter() {
  if (stream_->recording_) Broadcast::instance().remove(stream_.get());
}

void Meter::begin_phase(timeline::PhaseKey key) {
  locked([&] {
    if (stream_->recording_) stream_->begin_phase(key);
  });
}

void Meter::end_phase() {
  locked([&] { stream_->end_phase(); });
}

void Meter::operation(std::string_view label) {
  locked([&] { stream_->label_ = label; });
}

void Meter::adopt(const at::Tensor& tensor, timeline::Tag tag) {
  const Block* block = block_of(tensor);
  if (block == nullptr || !block->seen) return;
  locked([&] {
    if (stream_->recording_) stream_->adopt(*block);
  });
  retag(tensor, tag);
}

std::int64_t Meter::start_bytes() const { return total(start_bytes_by_tag()); }

timeline::BytesByTag Meter::start_bytes_by_tag() const {
  return locked([&] { return stream_->start_; });
}

std::int64_t Meter::current() const {
  return locked([&] { return stream_->current_; });
}

timeline::Timeline Meter::finish() {
  if (!stream_->recording_) throw std::logic_error("Meter::finish was called twice");
  Broadcast::instance().remove(stream_.get());
  return stream_->take();
}

}  // namespace plimsoll::engine
