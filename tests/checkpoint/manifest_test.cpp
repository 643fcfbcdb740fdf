// manifest.json: what is written is read again, and nothing else is accepted.
#include "plimsoll/checkpoint/manifest.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/saved_model.hpp"

namespace plimsoll {
namespace {

using checkpoint::Manifest;
using checkpoint::StateKind;
using network::DType;
using nlohmann::json;

Manifest small_manifest() {
  Manifest m;
  m.step = 7;
  m.ranks = 2;
  m.stage = shard::Stage::kGradients;
  m.file_bytes = {76, 136};
  m.tensors = {{"w", {3, 2}, {{StateKind::kWeight, DType::kFloat32, {}}}}, {"none", {0}, {}}};
  m.tensors[0].states[0].pieces = {{{0, 3}, {0, 64, 12, 5}}, {{3, 6}, {1, 128, 8 + 4, 6}}};
  m.file_bytes[1] = 140;
  m.blobs = {{"random", {0, 0, 9, 8}}, {"random", {1, 0, 100, 9}}};
  m.run = test::run_state(7);
  return m;
}

TEST_CASE("a manifest survives its text") {
  const Manifest m = small_manifest();
  const auto read = checkpoint::parse_manifest(checkpoint::manifest_text(m), "manifest.json");
  if (!read) FAIL(format_error(read.error()));
  CHECK(*read == m);
}

// Changes one value of the text and returns the complaint.
std::string complaint(const std::string& pointer, const json& value) {
  json document = json::parse(checkpoint::manifest_text(small_manifest()));
  document[json::json_pointer(pointer)] = value;
  const auto read = checkpoint::parse_manifest(document.dump(), "m");
  return read ? "accepted" : read.error().where + " " + read.error().what;
}

void check_says(const std::string& pointer, const json& value, const std::string& says) {
  const std::string got = complaint(pointer, value);
  CAPTURE(pointer);
  CAPTURE(got);
  CHECK(got.find(says) != std::string::npos);
}

TEST_CASE("flaws are named by their place") {
  check_says("/format", "plimsoll.checkpoint/2",
             "m:/format \"plimsoll.checkpoint/2\", expected \"plimsoll.checkpoint/1\": another");
  check_says("/format", 1, "m:/format 1, expected text");
  check_says("/step", -1, "m:/step -1, expected a whole number");
  check_says("/step", 1.5, "m:/step 1.5");
  check_says("/stage", 4, "m:/stage 4, expected at most 3");
  check_says("/ranks", 3, "3 ranks and 2 files");
  check_says("/ranks", 1ULL << 40U, "m:/ranks");
  check_says("/files/0/name", "../../etc/passwd", "expected rank-0000.bin");
  check_says("/tensors/0/name", "none", "tensor none is there twice");
  check_says("/tensors/0/name", "", "without a name");
  check_says("/tensors/0/shape", json::array({3, 3}), "w weight [6, 9) is missing");
  check_says("/tensors/0/shape", json::array({-3, 2}), "m:/tensors/0/shape");
  check_says("/tensors/0/shape", json::array({1LL << 40, 1LL << 40}), "more than 2^63 bytes");
  check_says("/tensors/0/states/0/kind", "third_moment", "expected a kind of state");
  check_says("/tensors/0/states/0/dtype", "float32", "expected a dtype");
  check_says("/tensors/0/states/0/extra", 1, "m:/tensors/0/states/0/extra is no key");
  const std::string piece = "/tensors/0/states/0/pieces/1";
  check_says(piece + "/0", 2, "lies at rank 2 of 2");
  check_says(piece + "/1", 2, "does not follow element 3");
  check_says(piece + "/1", 4, "does not follow element 3");
  check_says(piece + "/2", 7, "does not follow element 3");
  check_says(piece + "/2", 3, "expected [rank, begin");
  check_says(piece + "/3", 100, "multiple of 64");
  check_says(piece + "/3", 192, "expected inside");
  check_says(piece + "/3", 0, "lie over each other in rank-0001.bin");
  check_says(piece + "/4", "short", "expected [rank, begin");
  check_says("/blobs/1/rank", 0, "blob random of rank 0 is there twice");
  check_says("/blobs/0/bytes", INT64_MAX, "expected inside");
  check_says("/run/settings", json::array(), "m:/run/settings");
  check_says("/run/settings", {{"a", 1}}, "m:/run/settings/a 1, expected text");
  check_says("/more", 1, "m:/more is no key of this format");
}

TEST_CASE("missing keys and texts that are no JSON") {
  const json document = json::parse(checkpoint::manifest_text(small_manifest()));
  for (const auto& item : document.items()) {
    json less = document;
    less.erase(item.key());
    const auto read = checkpoint::parse_manifest(less.dump(), "m");
    REQUIRE(!read.has_value());
    CHECK(read.error().where == "m:/" + item.key());
    CHECK(read.error().what == "is missing");
  }
  for (const char* text : {"", "{", "[]", "7", "{}", "null", "{\"format\":1,\"format\":2}"}) {
    CHECK(!checkpoint::parse_manifest(text, "m").has_value());
  }
}

}  // namespace
}  // namespace plimsoll
