#include "plimsoll/checkpoint/writer.hpp"

#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/checkpoint/checksum.hpp"
#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/checkpoint/rank_list.hpp"

namespace plimsoll::checkpoint {

struct Writer::State {
  SavePlan plan;
  Disk& disk;
  OutputFile file;
  RankList list;
  bool finished = false;
  bool failed = false;

  ~State() {
    if (!finished) ::unlink(file.path().c_str());
  }

  // Behind what is there, at the next aligned place.
  Result<Place> place(std::span<const std::byte> data) {
    check(!finished && !failed, "a checkpoint's writer was used after its end or an error");
    Place result{list.rank, 0, static_cast<std::int64_t>(data.size()), checksum_of(data)};
    auto done = file.align(kPieceAlignment).and_then([&] {
      result.offset = file.size();
      return file.write(data);
    });
    failed = !done;
    return done.map([&] { return result; });
  }
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::open(const SavePlan& plan, std::int32_t rank, Disk& disk) {
  check(rank >= 0 && rank < plan.ranks, "a checkpoint's writer is of no rank");
  auto file = OutputFile::create(temporary_folder(plan) + "/" + rank_file(rank), disk);
  if (!file) return tl::unexpected<Error>(file.error());
  RankList list;
  list.step = plan.step;
  list.rank = rank;
  return Writer(std::unique_ptr<State>(new State{plan, disk, *std::move(file), std::move(list)}));
}

Result<void> Writer::add(std::size_t tensor, StateKind kind, const shard::Range& elements,
                         std::span<const std::byte> data) {
  check(tensor < state_->plan.tensors.size(), "a piece of no tensor");
  const Tensor& whole = state_->plan.tensors[tensor];
  const TensorState* state = whole.find(kind);
  check(state != nullptr, "a piece of a state that its tensor does not have");
  if (elements.empty()) return {};
  const std::int64_t bytes = checked_mul(elements.size(), network::size_of(state->dtype));
  check(elements.begin >= 0 && elements.end <= element_count(whole), "a piece beyond its tensor");
  check(static_cast<std::int64_t>(data.size()) == bytes, "a piece's bytes do not fit its range");
  return state_->place(data).map([&](const Place& place) {
    state_->list.pieces.push_back({tensor, kind, {elements, place}});
  });
}

Result<void> Writer::add_blob(const std::string& name, std::span<const std::byte> data) {
  return state_->place(data).map([&](const Place& place) {
    state_->list.blobs.push_back({name, place});
  });
}

Result<void> Writer::finish() {
  State& s = *state_;
  check(!s.finished && !s.failed, "a checkpoint's writer was finished after its end or an error");
  s.list.file_bytes = s.file.size();
  const std::string path = temporary_folder(s.plan) + "/" + rank_list_file(s.list.rank);
  auto done = s.file.finish().and_then(
      [&] { return write_whole_file(path, rank_list_text(s.list), s.disk); });
  s.failed = !done;
  s.finished = !s.failed;
  return done;
}

std::int64_t Writer::bytes_written() const { return state_->file.size(); }

}  // namespace plimsoll::checkpoint
