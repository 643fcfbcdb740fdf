#include "plimsoll/plan/fold/unfold.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace plimsoll::plan::fold {
namespace {

using timeline::BlockId;
using timeline::Event;
using timeline::EventKind;

// Of the short network's period in the whole one: those left out follow the repeated one.
std::int32_t whole_period(std::int32_t period, std::int32_t inner) {
  return period <= kRepeated ? period : period + inner - kInner;
}

}  // namespace

// Says of every event what it is in its section, whichever period that is of.
class Unfolding::Encoder {
 public:
  Encoder(const FoldedNetwork& folded, Unfolding& out) : folded_(folded), out_(out) {}

  bool encode(const timeline::Timeline& brief) {
    out_.items_.reserve(brief.events.size());
    for (const Segment& segment : out_.segments_) {
      out_.passes_ = std::max(out_.passes_, segment.pass + 1);
      std::uint32_t made = 0;
      for (std::size_t i = segment.begin; i < segment.end; ++i) {
        if (!add(brief.events[i], segment, made)) return false;
      }
    }
    return is_periodic();
  }

 private:
  bool add(const Event& event, const Segment& segment, std::uint32_t& made) {
    Item item{event, {}, 0, 0};
    place(item, segment);
    if (event.kind == EventKind::kAllocate) {
      const bool outside = segment.pass == Segment::kOutside;
      if (births_.size() <= event.block) births_.resize(event.block + event.block / 2 + 1);
      births_[event.block] = {segment.pass, segment.period, outside ? outside_++ : made++};
    }
    const bool border = event.kind == EventKind::kBeginPhase || event.kind == EventKind::kEndPhase;
    if (!border && !find_block(item, segment)) return false;
    out_.items_.push_back(item);
    return true;
  }

  void place(Item& item, const Segment& segment) const {
    const Place& place = folded_.places()[item.event.operation];
    item.operation = place.id;
    if (place.period == Place::kRoot) return;
    if (segment.pass == Segment::kOutside) {
      item.operation += place.stride * whole_period(place.period, folded_.inner());
    } else {
      item.operation += place.stride * place.period;
      item.stride = place.stride;
    }
  }

  bool find_block(Item& item, const Segment& segment) const {
    item.block = births_[item.event.block];
    if (item.block.pass == Segment::kOutside) return true;
    if (segment.pass != Segment::kOutside) {
      item.block.period -= segment.period;
      return std::abs(item.block.period) <= kReach;
    }
    // Nobody would touch the blocks of the periods left out.
    if (item.block.period == kRepeated || item.block.period == kRepeated + 1) return false;
    item.block.period = whole_period(item.block.period, folded_.inner());
    return true;
  }

  static bool same(const Item& one, const Item& next) {
    return one.event.bytes == next.event.bytes && one.event.kind == next.event.kind &&
           one.event.tag == next.event.tag && one.event.to == next.event.to &&
           one.block == next.block && one.stride == next.stride &&
           one.operation + one.stride == next.operation;
  }

  // The repeated section of each pass is as the one of the next period, which is its neighbour.
  bool is_periodic() const {
    for (std::size_t s = 0; s + 1 < out_.segments_.size(); ++s) {
      const Segment* one = &out_.segments_[s];
      const Segment* next = &out_.segments_[s + 1];
      if (one->pass == Segment::kOutside || one->pass != next->pass) continue;
      if (one->down) std::swap(one, next);
      if (one->period != kRepeated) continue;
      const auto item = [&](std::size_t i) {
        return out_.items_.begin() + static_cast<std::ptrdiff_t>(i);
      };
      if (!std::equal(item(one->begin), item(one->end), item(next->begin), item(next->end), same))
        return false;
    }
    return true;
  }

  const FoldedNetwork& folded_;
  Unfolding& out_;
  std::vector<Block> births_;  // by block: with the short network's periods
  std::uint32_t outside_ = 0;
};

// Numbers blocks as they are allocated.
class Unfolding::Emitter {
 public:
  Emitter(const Unfolding& from, timeline::Sink& sink)
      : from_(from),
        sink_(sink),
        first_(static_cast<std::size_t>(from.passes_) * static_cast<std::size_t>(from.inner_ + 1)) {
  }

  void emit_all() {
    const std::int32_t left_out = from_.inner_ - kInner;
    for (const Segment& segment : from_.segments_) {
      emit(segment, whole_period(segment.period, from_.inner_));
      if (segment.pass == Segment::kOutside) continue;
      const bool before_gap = segment.period == (segment.down ? kRepeated + 1 : kRepeated);
      for (std::int32_t i = 1; before_gap && i <= left_out; ++i) {
        emit(segment, segment.down ? kRepeated + 1 + left_out - i : kRepeated + i);
      }
    }
  }

 private:
  BlockId& first_block(std::int32_t pass, std::int32_t period) {
    const auto each = static_cast<std::size_t>(from_.inner_ + 1);
    return first_[static_cast<std::size_t>(pass) * each + static_cast<std::size_t>(period)];
  }

  void emit(const Segment& segment, std::int32_t period) {
    const bool section = segment.pass != Segment::kOutside;
    if (section) first_block(segment.pass, period) = next_;
    const std::int32_t shift = period - segment.period;
    for (std::size_t i = segment.begin; i < segment.end; ++i) {
      const Item& item = from_.items_[i];
      push(item, section ? period : 0,
           static_cast<timeline::OperationId>(item.operation + item.stride * shift));
    }
  }

  BlockId block_of(const Item& item, std::int32_t period) {
    if (item.block.pass == Segment::kOutside) return outside_[item.block.index];
    return first_block(item.block.pass, item.block.period + period) + item.block.index;
  }

  void push(const Item& item, std::int32_t period, timeline::OperationId operation) {
    const Event& event = item.event;
    switch (event.kind) {
      case EventKind::kAllocate:
        if (item.block.pass == Segment::kOutside) outside_.push_back(next_);
        return sink_.allocate(next_++, event.bytes, event.tag, operation);
      case EventKind::kRelease:
        return sink_.release(block_of(item, period), event.bytes, event.tag, operation);
      case EventKind::kRetag:
        return sink_.retag(block_of(item, period), event.bytes, event.tag, event.to);
      case EventKind::kBeginPhase:
        return sink_.begin_phase(event.phase);
      case EventKind::kEndPhase:
        return sink_.end_phase();
    }
  }

  const Unfolding& from_;
  timeline::Sink& sink_;
  std::vector<BlockId> first_;  // by pass and period of the whole network
  std::vector<BlockId> outside_;
  BlockId next_ = 1;
};

std::optional<Unfolding> Unfolding::of(const FoldedNetwork& folded,
                                       const timeline::Timeline& brief) {
  auto segments = cut(folded.places(), brief);
  if (!segments) return std::nullopt;
  Unfolding result;
  result.inner_ = folded.inner();
  result.segments_ = *std::move(segments);
  if (!Encoder(folded, result).encode(brief)) return std::nullopt;
  return result;
}

void Unfolding::push_into(timeline::Sink& sink) const { Emitter(*this, sink).emit_all(); }

}  // namespace plimsoll::plan::fold
