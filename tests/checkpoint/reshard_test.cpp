// Saved at any R and stage, read at any other: the same bytes, and no byte too many.
#include <numeric>

#include <doctest/doctest.h>

#include "plimsoll/checkpoint/verify.hpp"

#include "tests/checkpoint/saved_model.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using checkpoint::Depth;
using shard::Stage;

const std::vector<Stage> kStages = {Stage::kNothing, Stage::kOptimizer, Stage::kGradients,
                                    Stage::kParameters};

checkpoint::Reader saved_by(const test::Model& model, const std::string& folder, std::int32_t ranks,
                            Stage stage) {
  const checkpoint::SavePlan plan = test::plan_of(model, folder, 120, ranks, stage);
  const auto done = test::save(model, plan);
  if (!done) FAIL(format_error(done.error()));
  auto reader = checkpoint::Reader::open(folder + "/step-00000120");
  if (!reader) FAIL(format_error(reader.error()));
  return *std::move(reader);
}

// Reads what a rank owns and compares every byte; returns the number of bytes it needs.
std::int64_t check_rank(const test::Model& model, checkpoint::Reader& reader, shard::Stage stage,
                        std::int32_t ranks, std::int32_t rank) {
  std::int64_t needed = 0;
  for (const test::Owned& part : test::owned(model, stage, ranks, rank, false)) {
    const checkpoint::Tensor& tensor = model.tensors[part.tensor];
    for (const checkpoint::TensorState& state : tensor.states) {
      const auto expected = test::bytes_of(model, part.tensor, state.kind, part.elements);
      std::vector<std::byte> got(expected.size());
      const auto read = reader.read(tensor.name, state.kind, part.elements, got).and_then([&] {
        return reader.compare_checksums();
      });
      CAPTURE(piece_name(tensor, state.kind, part.elements));
      if (!read) FAIL_CHECK(format_error(read.error()));
      CHECK(got == expected);
      needed += static_cast<std::int64_t>(expected.size());
    }
  }
  return needed;
}

// troubles 33, 34, 55: resumed at another number of ranks, vocabularies and paddings included.
TEST_CASE("every world reads what every other has written") {
  const test::Model model = test::small_model();
  for (std::int32_t writers : {1, 2, 3, 4, 5, 8}) {
    const test::TemporaryFolder folder;
    for (const Stage stage : kStages) {
      checkpoint::Reader reader = saved_by(model, folder.path(), writers, stage);
      for (std::int32_t readers : {1, 2, 3, 4, 5, 8}) {
        for (std::int32_t rank = 0; rank < readers; ++rank) {
          const std::int64_t before = reader.bytes_read();
          const std::int64_t needed = check_rank(model, reader, Stage::kParameters, readers, rank);
          CHECK(reader.bytes_read() - before == needed);
        }
      }
    }
  }
}

TEST_CASE("random models: identical bytes, and nothing is read twice") {
  test::Dice dice(20);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const test::TemporaryFolder folder;
    const test::Model model = test::random_model(dice);
    const auto writers = static_cast<std::int32_t>(dice.between(1, 9));
    const auto readers = static_cast<std::int32_t>(dice.between(1, 9));
    checkpoint::Reader reader = saved_by(model, folder.path(), writers, dice.pick(kStages));
    const Stage stage = dice.pick(kStages);
    std::int64_t needed = 0;
    for (std::int32_t rank = 0; rank < readers; ++rank) {
      needed += check_rank(model, reader, stage, readers, rank);
    }
    CHECK(reader.bytes_read() == needed);
    std::int64_t all = 0;
    for (const checkpoint::Tensor& tensor : model.tensors) {
      for (const auto& state : tensor.states) {
        all += element_count(tensor) * network::size_of(state.dtype);
      }
    }
    CHECK(needed == (stage == Stage::kNothing ? all * readers : all));
  }
}

TEST_CASE("three rows on four ranks: the last one writes a file without pieces") {
  const test::TemporaryFolder folder;
  test::Model model;
  model.parameters = {{"w", {3}, {}, true, 0}};
  model.units = *shard::group_by_blocks(model.parameters, {});
  model.tensors = {{"w", {3}, {{checkpoint::StateKind::kWeight, network::DType::kFloat32, {}}}}};
  checkpoint::Reader reader = saved_by(model, folder.path(), 4, Stage::kParameters);
  CHECK(reader.manifest().tensors[0].states[0].pieces.size() == 3);
  CHECK(check_rank(model, reader, Stage::kParameters, 2, 0) == 8);
  CHECK(check_rank(model, reader, Stage::kParameters, 2, 1) == 4);
}

TEST_CASE("what a run knows beside tensors comes back") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  checkpoint::Reader reader = saved_by(model, folder.path(), 3, Stage::kOptimizer);
  const checkpoint::Manifest& m = reader.manifest();
  CHECK(m.step == 120);
  CHECK(m.ranks == 3);
  CHECK(m.stage == Stage::kOptimizer);
  CHECK(m.run == test::run_state(120));
  // troubles 38: the random state of every rank, not of the first alone.
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const auto random = reader.read_blob(rank, "random");
    REQUIRE(random.has_value());
    const std::string expected = "generator of rank " + std::to_string(rank);
    CHECK(std::string(reinterpret_cast<const char*>(random->data()), random->size()) == expected);
  }
  CHECK(!reader.read_blob(3, "random").has_value());
  CHECK(!reader.read_blob(0, "other").has_value());
}

TEST_CASE("files are the pieces, each at a multiple of 64 bytes") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  const checkpoint::Reader reader = saved_by(model, folder.path(), 2, Stage::kParameters);
  std::int64_t payload = 0;
  std::int64_t pieces = 0;
  for (const checkpoint::Tensor& tensor : reader.manifest().tensors) {
    for (const auto& state : tensor.states) {
      for (const checkpoint::Piece& piece : state.pieces) payload += piece.place.bytes;
      pieces += static_cast<std::int64_t>(state.pieces.size());
    }
  }
  for (const checkpoint::Blob& blob : reader.manifest().blobs) payload += blob.place.bytes;
  pieces += 2;
  const auto& bytes = reader.manifest().file_bytes;
  const std::int64_t files = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  CHECK(files >= payload);
  CHECK(files <= payload + pieces * (checkpoint::kPieceAlignment - 1));
  CHECK(test::names_in(folder.path() + "/step-00000120") ==
        std::vector<std::string>{"COMPLETE", "manifest.json", "rank-0000.bin", "rank-0001.bin"});
}

// troubles 51: state is found by name and range.
TEST_CASE("reading names what is not there") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  checkpoint::Reader reader = saved_by(model, folder.path(), 2, Stage::kParameters);
  std::vector<std::byte> out(4);
  const auto says = [&](const Result<void>& result) {
    REQUIRE(!result.has_value());
    CHECK(result.error().code == ExitCode::kBadInput);
    return result.error().what;
  };
  using checkpoint::StateKind;
  CHECK(says(reader.read("nothing", StateKind::kWeight, {0, 1}, out)) == "has no tensor nothing");
  CHECK(says(reader.read("blocks.0.w0", StateKind::kFirstMoment, {0, 1}, out)) ==
        "has no first_moment of blocks.0.w0");
  CHECK(says(reader.read("blocks.0.w0", StateKind::kWeight, {15, 16}, out)) ==
        "blocks.0.w0 weight [15, 16) is wanted, it has 15 elements");
}

}  // namespace
}  // namespace plimsoll
