#include "tests/dist/conformance.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "plimsoll/comm/call.hpp"

namespace plimsoll::test {
namespace {

using comm::ConstView;
using comm::DType;
using comm::Kind;
using comm::size_of;
using comm::View;

// Where the memory of a call lies.
enum class Place { kPrivate, kShared, kInputShared, kOutputShared, kInPlace, kCommonOutput };
constexpr std::array kPlaces = {Place::kPrivate,      Place::kShared,  Place::kInputShared,
                                Place::kOutputShared, Place::kInPlace, Place::kCommonOutput};

// Memory of either kind.
class Memory {
 public:
  Memory(comm::Communicator& world, std::int64_t bytes, std::optional<comm::Sharing> sharing)
      : own_(sharing ? 0 : static_cast<std::size_t>(bytes)) {
    if (sharing) buffer_ = world.allocate(bytes, *sharing);
  }
  std::byte* data() { return own_.empty() ? buffer_.data() : own_.data(); }

 private:
  std::vector<std::byte> own_;
  comm::Buffer buffer_;
};

class Suite {
 public:
  Suite(comm::Communicator& world, const ConformanceOptions& options)
      : world_(world), options_(options), random_(static_cast<unsigned>(world.rank()) + 7) {}

  void collective(Kind kind, DType dtype, std::int64_t piece, Place place);
  void in_flight();
  void splits();
  void many_small();

 private:
  void pause();
  void fill(DType dtype, int rank, std::int64_t count, std::byte* to) const;
  void expect(Kind kind, DType dtype, std::int64_t piece, const std::byte* output, int root) const;
  void check_input_unchanged(const ConstView& input, int rank) const;

  comm::Communicator& world_;
  const ConformanceOptions& options_;
  std::mt19937 random_;
};

// Of long arrays every 61st element is looked at, and all at both ends: the oracle computes them one
// by one.
std::int64_t next_to_look_at(std::int64_t index, std::int64_t count) {
  constexpr std::int64_t kEnds = 2000;
  const bool in_the_middle = index >= kEnds && index + kEnds < count;
  return index + (count > 20'000 && in_the_middle ? 61 : 1);
}

std::string_view name_of(Place place) {
  constexpr std::array<std::string_view, 6> kNames = {"private",       "shared",   "input shared",
                                                      "output shared", "in place", "common output"};
  return kNames[static_cast<std::size_t>(place)];
}

void Suite::pause() {
  if (!options_.random_pauses) return;
  const auto dice = random_() % 8;
  if (dice < 3) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000));
}

void Suite::fill(DType dtype, int rank, std::int64_t count, std::byte* to) const {
  for (std::int64_t i = 0; i < count; ++i) write_element(dtype, rank, i, to + i * size_of(dtype));
}

// Compares every element of an output of `kind` whose smaller side has `piece` elements.
void Suite::expect(Kind kind, DType dtype, std::int64_t piece, const std::byte* output,
                   int root) const {
  const int ranks = world_.size();
  const bool sums = kind == Kind::kReduceScatter || kind == Kind::kAllReduce;
  const std::int64_t element = size_of(sums ? comm::sum_dtype(dtype) : dtype);
  const std::int64_t count = kind == Kind::kAllGather ? piece * ranks : piece;
  const std::int64_t first = kind == Kind::kReduceScatter ? piece * world_.rank() : 0;
  for (std::int64_t i = 0; i < count; i = next_to_look_at(i, count)) {
    std::array<std::byte, 8> right{};
    if (sums) {
      write_sum(dtype, ranks, first + i, right.data());
    } else if (kind == Kind::kAllGather) {
      write_element(dtype, static_cast<int>(i / piece), i % piece, right.data());
    } else {
      write_element(dtype, root, i, right.data());
    }
    if (std::memcmp(right.data(), output + i * element, static_cast<std::size_t>(element)) == 0) {
      continue;
    }
    throw std::runtime_error(fmt::format("{} of {} {} per rank: element {} of rank {} is wrong",
                                         name(kind), piece, name(dtype), i, world_.rank()));
  }
}

void Suite::check_input_unchanged(const ConstView& input, int rank) const {
  const auto* data = static_cast<const std::byte*>(input.data);
  const std::int64_t element = size_of(input.dtype);
  for (std::int64_t i = 0; i < input.count; i = next_to_look_at(i, input.count)) {
    std::array<std::byte, 8> right{};
    write_element(input.dtype, rank, i, right.data());
    if (std::memcmp(right.data(), data + i * element, static_cast<std::size_t>(element)) != 0) {
      throw std::runtime_error(fmt::format("element {} of an input was changed", i));
    }
  }
}

void Suite::collective(Kind kind, DType dtype, std::int64_t piece, Place place) {
  const int ranks = world_.size();
  const bool sums = kind == Kind::kReduceScatter || kind == Kind::kAllReduce;
  const DType result = sums ? comm::sum_dtype(dtype) : dtype;
  const std::int64_t inputs = kind == Kind::kReduceScatter ? piece * ranks : piece;
  const std::int64_t outputs = kind == Kind::kAllGather ? piece * ranks : piece;
  const bool in_place = place == Place::kInPlace || kind == Kind::kBroadcast;
  if (in_place && result != dtype) return;
  const bool shared = place == Place::kShared || in_place;
  using Sharing = std::optional<comm::Sharing>;
  const Sharing own = comm::Sharing::kOwn;
  const bool common = place == Place::kCommonOutput && kind == Kind::kAllGather;
  Memory input(world_, inputs * size_of(dtype),
               shared || place == Place::kInputShared ? own : Sharing{});
  Memory output(world_, outputs * size_of(result),
                common                                    ? Sharing{comm::Sharing::kCommon}
                : shared || place == Place::kOutputShared ? own
                                                          : Sharing{});
  ConstView in{input.data(), inputs, dtype};
  View out{output.data(), outputs, result};
  const std::int64_t own_piece = piece * world_.rank() * size_of(dtype);
  if (in_place) {
    if (kind == Kind::kAllGather) in.data = output.data() + own_piece;
    if (kind == Kind::kReduceScatter) out.data = input.data() + own_piece;
    if (kind == Kind::kAllReduce || kind == Kind::kBroadcast) out.data = input.data();
  }
  fill(dtype, world_.rank(), inputs,
       static_cast<std::byte*>(in_place && kind == Kind::kAllGather ? output.data() + own_piece
                                                                    : input.data()));
  const int root = ranks - 1;
  const comm::Label label{name_of(place), piece};
  pause();
  comm::Work work = kind == Kind::kBroadcast ? world_.broadcast(out, root, label)
                                             : comm::begin(world_, {kind, in, out, -1, label});
  pause();
  work.wait();
  expect(kind, dtype, piece, static_cast<const std::byte*>(out.data), root);
  if (!in_place) check_input_unchanged(in, world_.rank());
  // Nobody overwrites common memory while another still reads it.
  if (common) world_.barrier().wait();
}

// More collectives in flight than a backend has places for, waited for backwards: each is right, and
// nobody hangs.
void Suite::in_flight() {
  constexpr int kCalls = 50;
  const auto ranks = static_cast<std::size_t>(world_.size());
  std::vector<std::int64_t> inputs(kCalls);
  std::vector<std::vector<std::int64_t>> outputs(kCalls, std::vector<std::int64_t>(ranks));
  std::vector<comm::Work> works;
  for (int i = 0; i < kCalls; ++i) {
    const auto at = static_cast<std::size_t>(i);
    inputs[at] = 1000 * i + world_.rank();
    works.push_back(world_.all_gather(comm::view(std::span<const std::int64_t>(&inputs[at], 1)),
                                      comm::view(std::span(outputs[at])), {"in flight", i}));
    if (i % 7 == world_.rank() % 7) pause();
  }
  while (!works.empty()) {
    works.back().wait();
    works.pop_back();
  }
  for (int i = 0; i < kCalls; ++i) {
    for (std::size_t r = 0; r < ranks; ++r) {
      if (outputs[static_cast<std::size_t>(i)][r] != 1000 * i + static_cast<std::int64_t>(r)) {
        throw std::runtime_error(fmt::format("collective {} in flight is wrong", i));
      }
    }
  }
}

// Sums within odd and even ranks, between collectives of the world.
void Suite::splits() {
  if (world_.size() < 4) return;
  const auto group = world_.split(world_.rank() % 2, {"halves"});
  const int members = (world_.size() + 1 - world_.rank() % 2) / 2;
  if (group->size() != members || group->rank() != world_.rank() / 2) {
    throw std::runtime_error("a split has the wrong ranks");
  }
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::int64_t> input(1000, world_.rank() + round);
    std::vector<std::int64_t> within(1000);
    std::vector<std::int64_t> all(1000);
    comm::Work inner =
        group->all_reduce(comm::view(std::span(input)), comm::view(std::span(within)), {"half"});
    comm::Work outer =
        world_.all_reduce(comm::view(std::span(input)), comm::view(std::span(all)), {"whole"});
    outer.wait();
    inner.wait();
    std::int64_t expected_within = 0;
    std::int64_t expected_all = 0;
    for (int r = 0; r < world_.size(); ++r) {
      expected_all += r + round;
      if (r % 2 == world_.rank() % 2) expected_within += r + round;
    }
    if (within.back() != expected_within || all.back() != expected_all) {
      throw std::runtime_error("a sum within a split is wrong");
    }
  }
}

// Scalars, one after the other: handshakes without data.
void Suite::many_small() {
  for (int i = 0; i < 200; ++i) {
    double loss = world_.rank() + i;
    world_
        .all_reduce(comm::view(std::span<const double>(&loss, 1)), comm::view(std::span(&loss, 1)))
        .wait();
    const double ranks = world_.size();
    if (loss != ranks * i + ranks * (ranks - 1) / 2) throw std::runtime_error("a loss is wrong");
    if (i % 10 == 0) world_.barrier({"step", i}).wait();
  }
}

}  // namespace

void run_conformance(comm::Communicator& world, const ConformanceOptions& options) {
  Suite suite(world, options);
  const std::array kinds = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce,
                            Kind::kBroadcast};
  const std::array dtypes = {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16,
                             DType::kInt64};
  for (const Kind kind : kinds) {
    for (const Place place : kPlaces) {
      for (const DType dtype : dtypes) {
        for (const std::int64_t piece : {1, 5, 257}) suite.collective(kind, dtype, piece, place);
      }
      // Around the size of a staging slot, and several of them.
      const bool plain = place == Place::kPrivate || place == Place::kShared;
      for (const std::int64_t piece : {131071, 131073}) {
        if (world.size() > 4 && !plain) break;  // eight ranks on two cores take their time
        suite.collective(kind, DType::kFloat32, piece, place);
      }
      if (place == Place::kInputShared || place == Place::kOutputShared) continue;
      const std::int64_t whole = options.large_bytes / 2 / world.size() + 3;
      const bool spread = kind == Kind::kAllGather || kind == Kind::kReduceScatter;
      suite.collective(kind, DType::kBFloat16, spread ? whole : options.large_bytes / 2 + 3, place);
    }
  }
  suite.collective(Kind::kAllGather, DType::kUInt8, 77, Place::kPrivate);
  suite.in_flight();
  suite.splits();
  suite.many_small();
}

}  // namespace plimsoll::test
