// Headers of .safetensors files: what is in them, and which files are not whole.
#include "plimsoll/formats/safetensors.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/unit/temporary_folder.hpp"

namespace {

using namespace plimsoll::formats;
using plimsoll::test::TemporaryFolder;

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((length >> (8U * unsigned(i))) & 0xFFU);
  return bytes;
}

std::string file(const std::string& header, std::size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, '\0');
}

const char* const kHeader = R"({"__metadata__": {"format": "pt"},
  "b": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
  "a": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
  "packed": {"dtype": "I32", "shape": [1, 2], "data_offsets": [32, 40]},
  "scalar": {"dtype": "F32", "shape": [], "data_offsets": [40, 44]},
  "empty": {"dtype": "F32", "shape": [0, 7], "data_offsets": [44, 44]},
  "fp4": {"dtype": "F4", "shape": [4], "data_offsets": [44, 46]}}   )";

TEST_CASE("tensors come in the order of their data, counted by dtype") {
  const TemporaryFolder folder;
  const auto tensors = read_safetensors_header(folder.write("m.safetensors", file(kHeader, 46)));
  REQUIRE_MESSAGE(tensors.has_value(), (tensors ? "" : plimsoll::format_error(tensors.error())));
  REQUIRE(tensors->size() == 6);
  CHECK(tensors->at(0).name == "a");
  CHECK(tensors->at(1).shape == std::vector<std::int64_t>{2, 3});
  CHECK(tensors->at(1).elements == 6);
  const auto counts = count_by_dtype(*tensors);
  REQUIRE(counts.size() == 4);
  CHECK(counts[0].dtype == "BF16");
  CHECK(counts[1].elements == 7);
  CHECK(counts[1].tensors == 3);
  CHECK(counts[1].parameters);
  CHECK(counts[2].dtype == "I32");
  CHECK_FALSE(counts[2].parameters);
  CHECK(counts[3].bytes == 2);
  CHECK_FALSE(counts[3].parameters);
}

TEST_CASE("shards of a folder are read together") {
  const TemporaryFolder folder;
  folder.write("model-2.safetensors",
               file(R"({"b": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}})", 4));
  CHECK_FALSE(read_safetensors_folder(folder.path() + "/nothing"));
  const std::string one = R"({"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}})";
  folder.write("model-1.safetensors", file(one, 2));
  const auto tensors = read_safetensors_folder(folder.path());
  REQUIRE(tensors);
  REQUIRE(tensors->size() == 2);
  CHECK(tensors->front().name == "a");
  folder.write("model-3.safetensors", file(one, 2));
  const auto twice = read_safetensors_folder(folder.path());
  REQUIRE_FALSE(twice);
  CHECK(twice.error().what == "a is in an earlier file too");
}

TEST_CASE("an index of shards must fit what the shards hold") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& index) {
    folder.write("model.safetensors.index.json", index);
    const auto tensors = read_safetensors_folder(folder.path());
    return tensors ? std::string() : plimsoll::format_error(tensors.error());
  };
  folder.write("model-1.safetensors",
               file(R"({"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}})", 2));
  CHECK(message(R"({"weight_map": {"a": "model-1.safetensors"}})").empty());
  CHECK(message(R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})")
            .find("names the shard model-2.safetensors, which is not there") != std::string::npos);
  CHECK(message(R"({"weight_map": {"b": "model-1.safetensors"}})")
            .find("has no a, which a shard holds") != std::string::npos);
  CHECK(message(R"({"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}})")
            .find("lists 2 tensors, the shards hold 1") != std::string::npos);
  CHECK(message(R"({"weight_map": {"a": 3}})").find("3, expected the name of a file") !=
        std::string::npos);
  CHECK(message("[]").find("expected an object with a weight_map") != std::string::npos);
}

struct BadHeader {
  std::string bytes;
  std::string message;
};

std::string entry(const std::string& inside) { return R"({"a": {)" + inside + "}}"; }

std::vector<BadHeader> bad_files() {
  return {
      {"", "expected a header length"},
      {"abc", "expected a header length"},
      {length_bytes(100), "a header of 100 bytes, expected at most 0"},
      {length_bytes(UINT64_MAX) + "{}", "expected at most 2"},
      {length_bytes(100'000'001) + "{}", "expected at most 2"},
      {file("", 0), "is empty"},
      {file("[]", 0), "expected a JSON object"},
      {file("{", 0), "ends too early"},
      {file(R"({"a": 1})", 0), "1, expected an object"},
      {file(R"({"a": {}})", 0), "[m.safetensors:/a/dtype] null"},
      {file(entry(R"("dtype": "F33", "shape": [1], "data_offsets": [0, 4])"), 4), "\"F33\""},
      {file(entry(R"("dtype": "F32", "shape": 3, "data_offsets": [0, 4])"), 4), "a list of sizes"},
      {file(entry(R"("dtype": "F32", "shape": [-1], "data_offsets": [0, 4])"), 4), "at least 0"},
      {file(entry(R"("dtype": "F32", "shape": [1.5], "data_offsets": [0, 4])"), 4), "at least 0"},
      {file(entry(R"("dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 4])"),
            4),
       "at most 2^63 bits"},
      {file(entry(R"("dtype": "F4", "shape": [3], "data_offsets": [0, 1])"), 1), "whole bytes"},
      {file(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [4, 0])"), 4), "[begin, end]"},
      {file(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [0])"), 4), "[begin, end]"},
      {file(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [0, 8])"), 8),
       "expected 4 bytes"},
      {file(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [4, 8])"), 8), "begins at 4"},
      {file(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [0, 4])"), 3),
       "the file is cut off"},
      {file(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [0, 4])"), 9),
       "need 4 bytes of data, the file has 9"},
      {file(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
            3),
       "begins at 1, expected 2"},
      {file(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})",
            1),
       "is given twice"},
  };
}

TEST_CASE("files that are broken or cut off are refused") {
  const TemporaryFolder folder;
  for (const BadHeader& bad : bad_files()) {
    const auto tensors = read_safetensors_header(folder.write("m.safetensors", bad.bytes));
    REQUIRE_FALSE(tensors);
    std::string message = plimsoll::format_error(tensors.error());
    message.erase(1, folder.path().size() + 1);
    CAPTURE(message);
    CHECK(message.find(bad.message) != std::string::npos);
  }
  CHECK(read_safetensors_header("/dev/zero").error().what.starts_with("is a device"));
  CHECK(read_safetensors_header(folder.path()).error().what.starts_with("is a folder"));
  CHECK(read_safetensors_header("no/such.safetensors").error().what == "no such file");
}

}  // namespace
