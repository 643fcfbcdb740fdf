// A sink that checks the bookkeeping of a stream of events, independently of PeakSink.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll::test {

class Audit final : public timeline::Sink {
 public:
  void begin_phase(timeline::PhaseKey) override {
    if (in_phase_) complain("a phase inside a phase");
    in_phase_ = true;
    recount();
  }
  void end_phase() override {
    if (!in_phase_) complain("the end of a phase that did not begin");
    in_phase_ = false;
    recount();
  }
  void allocate(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
                timeline::OperationId) override {
    if (bytes <= 0) complain(fmt::format("block {} has {} bytes", block, bytes));
    if (block <= last_block_) complain(fmt::format("block {} is not a new one", block));
    last_block_ = block;
    alive_[block] = {bytes, tag};
    change(tag, bytes);
  }
  void release(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag,
               timeline::OperationId) override {
    expect(block, bytes, tag);
    alive_.erase(block);
    change(tag, -bytes);
  }
  void retag(timeline::BlockId block, std::int64_t bytes, timeline::Tag from,
             timeline::Tag to) override {
    expect(block, bytes, from);
    alive_[block] = {bytes, to};
    change(from, -bytes);
    current_ += bytes;  // `change` took them off
    by_tag_[static_cast<std::size_t>(to)] += bytes;
    check_sum();
  }

  // The first inconsistency, or "".
  const std::string& problem() const { return problem_; }
  std::size_t blocks_alive() const { return alive_.size(); }
  std::int64_t current() const { return current_; }

 private:
  struct Block {
    std::int64_t bytes = 0;
    timeline::Tag tag = timeline::Tag::kActivations;
  };

  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void expect(timeline::BlockId block, std::int64_t bytes, timeline::Tag tag) {
    const auto found = alive_.find(block);
    if (found == alive_.end()) return complain(fmt::format("block {} is not alive", block));
    if (found->second.bytes != bytes || found->second.tag != tag) {
      complain(fmt::format("block {} of {} bytes ({}) is named with {} bytes ({})", block,
                           found->second.bytes, name(found->second.tag), bytes, name(tag)));
    }
  }
  void change(timeline::Tag tag, std::int64_t bytes) {
    current_ += bytes;
    by_tag_[static_cast<std::size_t>(tag)] += bytes;
    if (by_tag_[static_cast<std::size_t>(tag)] < 0) complain("a tag holds less than nothing");
    if (bytes > 0) check_sum();
  }
  void check_sum() {
    if (std::accumulate(by_tag_.begin(), by_tag_.end(), std::int64_t{0}) != current_) {
      complain("the tags do not sum to the current bytes");
    }
  }
  // The running figures against the blocks themselves.
  void recount() {
    timeline::BytesByTag counted{};
    for (const auto& [block, b] : alive_) counted[static_cast<std::size_t>(b.tag)] += b.bytes;
    if (counted != by_tag_) complain("running sums differ from the blocks alive");
    check_sum();
  }

  std::unordered_map<timeline::BlockId, Block> alive_;
  timeline::BytesByTag by_tag_{};
  std::int64_t current_ = 0;
  timeline::BlockId last_block_ = 0;
  bool in_phase_ = false;
  std::string problem_;
};

}  // namespace plimsoll::test
