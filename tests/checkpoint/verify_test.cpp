// Whatever was done to a checkpoint's files is found, with file and piece.
#include "plimsoll/checkpoint/verify.hpp"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plimsoll/checkpoint/checksum.hpp"

#include "tests/checkpoint/saved_model.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using checkpoint::Depth;
using checkpoint::Finding;

// A checkpoint to damage; each test puts back what it changed.
class Checkpoint {
 public:
  Checkpoint() {
    const auto plan = test::plan_of(model_, folder_.path(), 120, 2, shard::Stage::kParameters);
    REQUIRE(test::save(model_, plan).has_value());
  }
  std::string path() const { return folder_.path() + "/step-00000120"; }
  std::string path(const std::string& file) const { return path() + "/" + file; }
  const std::string& folder() const { return folder_.path(); }

  std::vector<Finding> findings(Depth depth = Depth::kContents) const {
    return checkpoint::verify(path(), depth).findings;
  }

 private:
  test::TemporaryFolder folder_;
  test::Model model_ = test::small_model();
};

std::string first(const std::vector<Finding>& findings) {
  return findings.empty() ? "nothing found" : finding_text(findings.front());
}

TEST_CASE("an untouched checkpoint is whole") {
  const Checkpoint c;
  const auto result = checkpoint::verify(c.path() + "/", Depth::kContents);
  CHECK(result.findings.empty());
  std::int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(c.path())) {
    bytes += static_cast<std::int64_t>(entry.file_size());
  }
  CHECK(result.bytes == bytes);
}

TEST_CASE("every flipped bit of every file is found, with file and piece") {
  const Checkpoint c;
  for (const std::string& file : test::names_in(c.path())) {
    const std::string whole = test::file_text(c.path(file));
    for (std::size_t byte = 0; byte < whole.size(); ++byte) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (byte % 8)));
      test::overwrite(c.path(file), damaged);
      const auto findings = c.findings();
      CAPTURE(file);
      CAPTURE(byte);
      REQUIRE(findings.size() == 1);
      CHECK(findings[0].file == file);
      CHECK(findings[0].piece.empty() == !file.starts_with("rank-"));
    }
    test::overwrite(c.path(file), whole);
  }
  CHECK(c.findings().empty());
}

TEST_CASE("files cut at any byte, or longer") {
  const Checkpoint c;
  for (const std::string& file : test::names_in(c.path())) {
    const std::string whole = test::file_text(c.path(file));
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      test::overwrite(c.path(file), whole.substr(0, size));
      CAPTURE(file);
      CAPTURE(size);
      const auto findings = c.findings();
      REQUIRE(!findings.empty());
      CHECK(findings[0].file == file);
      // Cut files are found without reading them.
      CHECK(!c.findings(Depth::kStructure).empty());
      // A cut piece is named.
      if (file.starts_with("rank-")) CHECK(!findings.back().piece.empty());
    }
    test::overwrite(c.path(file), whole + '\0');
    CHECK(!c.findings(Depth::kStructure).empty());
    test::overwrite(c.path(file), whole);
  }
}

TEST_CASE("missing, swapped and foreign files") {
  const Checkpoint c;
  for (const std::string& file : test::names_in(c.path())) {
    fs::rename(c.path(file), c.folder() + "/aside");
    const std::string why = file == "COMPLETE" ? ": the save was not finished" : "";
    CHECK(first(c.findings(Depth::kStructure)) == file + ": is missing" + why);
    fs::rename(c.folder() + "/aside", c.path(file));
  }
  fs::rename(c.path("rank-0000.bin"), c.folder() + "/aside");
  fs::rename(c.path("rank-0001.bin"), c.path("rank-0000.bin"));
  fs::rename(c.folder() + "/aside", c.path("rank-0001.bin"));
  const auto swapped = c.findings();
  CHECK(std::any_of(swapped.begin(), swapped.end(),
                    [](const Finding& f) { return f.file == "rank-0000.bin"; }));
  CHECK(std::any_of(swapped.begin(), swapped.end(),
                    [](const Finding& f) { return f.file == "rank-0001.bin"; }));
  fs::rename(c.path("rank-0000.bin"), c.folder() + "/aside");
  fs::rename(c.path("rank-0001.bin"), c.path("rank-0000.bin"));
  fs::rename(c.folder() + "/aside", c.path("rank-0001.bin"));
  test::overwrite(c.path("rank-0002.bin"), "");
  CHECK(first(c.findings()) == "rank-0002.bin: does not belong to this checkpoint");
  fs::remove(c.path("rank-0002.bin"));
  fs::create_directory(c.path("more"));
  CHECK(first(c.findings()) == "more: does not belong to this checkpoint");
}

TEST_CASE("a folder of another step, or none") {
  const Checkpoint c;
  fs::copy(c.path(), c.folder() + "/step-00000200");
  const auto moved = checkpoint::verify(c.folder() + "/step-00000200", Depth::kStructure);
  CHECK(first(moved.findings) ==
        "is called step-00000200, expected step-00000120: its step is 120");
  fs::rename(c.folder() + "/step-00000200", c.folder() + "/backup");
  CHECK(checkpoint::verify(c.folder() + "/backup", Depth::kContents).findings.empty());
  CHECK(first(checkpoint::verify(c.folder() + "/none", Depth::kContents).findings) ==
        "no such folder");
}

// The same files as another version of the format would have them, with right checksums.
void become_format(const Checkpoint& c, const std::string& format) {
  const std::string known(checkpoint::kFormat);
  std::string manifest = test::file_text(c.path("manifest.json"));
  manifest.replace(manifest.find(known), known.size(), format);
  std::string marker = checkpoint::marker_text(120, manifest);
  marker.resize(marker.size() - 22);
  marker.replace(0, known.size(), format);
  marker += "xxh3 " + checkpoint::checksum_text(checkpoint::checksum_of(marker)) + "\n";
  test::overwrite(c.path("manifest.json"), manifest);
  test::overwrite(c.path("COMPLETE"), marker);
}

TEST_CASE("older and newer formats are told apart from damage") {
  for (const char* format : {"plimsoll.checkpoint/0", "plimsoll.checkpoint/2"}) {
    const Checkpoint c;
    become_format(c, format);
    CHECK(first(c.findings()) ==
          fmt::format("COMPLETE: says {}, expected plimsoll.checkpoint/1: another version of "
                      "plimsoll wrote it",
                      format));
    const auto reader = checkpoint::Reader::open(c.path());
    CHECK(!reader.has_value());
  }
}

// Every byte is flipped in reading, too: a piece that is read whole is compared.
TEST_CASE("readers notice damage in pieces that they read whole") {
  const Checkpoint c;
  std::string bytes = test::file_text(c.path("rank-0000.bin"));
  bytes[2] = static_cast<char>(bytes[2] ^ 1);
  test::overwrite(c.path("rank-0000.bin"), bytes);
  auto reader = checkpoint::Reader::open(c.path());
  REQUIRE(reader.has_value());
  int refused = 0;
  const test::Model model = test::small_model();
  for (const auto& part : test::owned(model, shard::Stage::kParameters, 2, 0, false)) {
    for (const auto& state : model.tensors[part.tensor].states) {
      const std::int64_t size = part.elements.size() * network::size_of(state.dtype);
      std::vector<std::byte> out(static_cast<std::size_t>(size));
      REQUIRE(reader->read(model.tensors[part.tensor].name, state.kind, part.elements, out));
      refused += reader->compare_checksums() ? 0 : 1;
    }
  }
  CHECK(refused == 1);
}

// What was read before the error may be let go at once, although its check may have been waiting.
TEST_CASE("a read that fails in its second piece leaves no check behind") {
  const Checkpoint c;
  const test::Model model = test::small_model();
  auto reader = checkpoint::Reader::open(c.path());
  REQUIRE(reader.has_value());
  std::filesystem::resize_file(c.path("rank-0001.bin"), 0);
  int failed = 0;
  for (const checkpoint::Tensor& tensor : model.tensors) {
    const shard::Range all{0, element_count(tensor)};
    const std::int64_t bytes = all.size() * network::size_of(tensor.states[0].dtype);
    std::vector<std::byte> out(static_cast<std::size_t>(bytes));
    const auto read = reader->read(tensor.name, StateKind::kWeight, all, out);
    failed += read ? 0 : 1;
    if (read) CHECK(reader->compare_checksums());
  }
  CHECK(failed > 0);
}

TEST_CASE("the newest valid one, and why others were skipped") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  const auto none = checkpoint::newest_valid(folder.path() + "/nothing");
  REQUIRE(none.has_value());
  CHECK(!none->found.has_value());
  for (std::int64_t step : {1, 2, 3, 4, 5}) {
    const auto plan = test::plan_of(model, folder.path(), step, 2, shard::Stage::kNothing);
    REQUIRE(test::save(model, plan).has_value());
  }
  const auto file = [&](int step, const char* name) {
    return fmt::format("{}/step-{:08}/{}", folder.path(), step, name);
  };
  std::string bytes = test::file_text(file(3, "rank-0001.bin"));
  bytes[0] = static_cast<char>(bytes[0] ^ 16);
  test::overwrite(file(3, "rank-0001.bin"), bytes);
  fs::remove(file(4, "COMPLETE"));
  fs::resize_file(file(5, "rank-0000.bin"), 0);
  fs::create_directory(folder.path() + "/step-00000006.tmp");
  const auto newest = checkpoint::newest_valid(folder.path(), Depth::kContents);
  REQUIRE(newest.has_value());
  REQUIRE(newest->found.has_value());
  CHECK(newest->found->step == 2);
  REQUIRE(newest->skipped.size() == 4);
  CHECK(newest->skipped[0].reason == "the save was interrupted");
  CHECK(newest->skipped[1].reason.find("rank-0000.bin: has 0 bytes, expected ") == 0);
  CHECK(newest->skipped[2].reason == "COMPLETE: is missing: the save was not finished");
  CHECK(newest->skipped[3].reason.find("rank-0001.bin: blocks.0.w0 weight [8, 15): checksum ") ==
        0);
  const auto shallow = checkpoint::newest_valid(folder.path(), Depth::kStructure);
  CHECK(shallow->found->step == 3);
}

TEST_CASE("checksums") {
  // Published test vector of XXH3 64 bits: the empty input with seed 0.
  CHECK(checkpoint::checksum_text(checkpoint::checksum_of(std::string_view())) ==
        "2d06800538d394c2");
  const std::string text(100'000, 'x');
  checkpoint::Checksum parts;
  for (std::size_t at = 0; at < text.size(); at += 333) {
    parts.update(
        std::as_bytes(std::span(text).subspan(at, std::min<std::size_t>(333, text.size() - at))));
  }
  CHECK(parts.value() == checkpoint::checksum_of(text));
  CHECK(checkpoint::parse_checksum("2d06800538d394c2") == 0x2d06800538d394c2U);
  for (const char* bad : {"", "2d06800538d394c", "2D06800538D394C2", "+d06800538d394c2"}) {
    CHECK(!checkpoint::parse_checksum(bad).has_value());
  }
}

}  // namespace
}  // namespace plimsoll
