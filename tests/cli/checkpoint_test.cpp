// plimsoll checkpoint and plimsoll export, from outside.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/call.hpp"
#include "tests/cli/schema_check.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kExample = "tests/checkpoint/example";

// A copy that may be damaged.
class Copy {
 public:
  Copy() { fs::copy(kExample, path(), fs::copy_options::recursive); }
  std::string path() const { return folder_.path() + "/run"; }
  std::string path(const std::string& file) const { return path() + "/" + file; }
  std::string beside(const std::string& name) const { return folder_.path() + "/" + name; }

  void flip(const std::string& file, std::streamoff at) const {
    std::fstream stream(path(file), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
  }

 private:
  test::TemporaryFolder folder_;
};

json checked(const std::vector<std::string>& arguments, const std::string& schema, int code = 0) {
  std::vector<std::string> words = arguments;
  words.emplace_back("--json");
  const test::Call result = test::call(words);
  CAPTURE(result.err);
  REQUIRE(result.code == code);
  CHECK(result.err.empty());
  const json value = json::parse(result.out);
  for (const std::string& violation : test::schema_violations(test::read_schema(schema), value)) {
    FAIL_CHECK(schema, violation);
  }
  return value;
}

TEST_CASE("list, show and verify are valid by their schema") {
  const Copy copy;
  const json list = checked({"checkpoint", "list", copy.path()}, "checkpoints");
  CHECK(list["newest"] == 20);
  CHECK(list["ended"].is_null());
  CHECK(list["checkpoints"].size() == 2);
  const json show = checked({"checkpoint", "show", copy.path()}, "checkpoint_contents");
  CHECK(show["step"] == 20);
  CHECK(show["bytes"] == list["checkpoints"][1]["bytes"]);
  std::int64_t elements = 0;
  for (const json& tensor : show["tensors"]) elements += tensor["elements"].get<std::int64_t>();
  CHECK(elements == list["checkpoints"][1]["parameters"]);
  const json older =
      checked({"checkpoint", "show", copy.path("step-00000010")}, "checkpoint_contents");
  CHECK(older["step"] == 10);
  const json verify = checked({"checkpoint", "verify", copy.path()}, "checkpoints");
  CHECK(verify["depth"] == "contents");
}

TEST_CASE("damage: verify says where and exits with 1, list says what can be seen") {
  const Copy copy;
  copy.flip("step-00000020/rank-0001.bin", 1);
  fs::create_directory(copy.path("step-00000030.tmp"));
  std::ofstream(copy.path("ENDED")) << "step 30\n";
  const json list = checked({"checkpoint", "list", copy.path()}, "checkpoints");
  CHECK(list["newest"] == 20);
  CHECK(list["ended"] == 30);
  CHECK(list["checkpoints"][2]["temporary"] == true);
  const json verify = checked({"checkpoint", "verify", copy.path()}, "checkpoints", 1);
  CHECK(verify["newest"] == 10);
  const json& findings = verify["checkpoints"][1]["findings"];
  REQUIRE(findings.size() == 1);
  CHECK(findings[0]["file"] == "rank-0001.bin");
  CHECK(findings[0]["piece"].get<std::string>().find(" weight [") != std::string::npos);
  const test::Call text = test::call({"checkpoint", "verify", copy.path()});
  CHECK(text.code == 1);
  CHECK(text.out.find("2 checkpoints, the newest whole one is of step 10") != std::string::npos);
  CHECK(text.out.find("The run came to its end after step 30.") != std::string::npos);
  fs::remove(copy.path("step-00000020/COMPLETE"));
  CHECK(checked({"checkpoint", "list", copy.path()}, "checkpoints")["newest"] == 10);
}

TEST_CASE("export takes the newest whole one and says what it skipped") {
  const Copy copy;
  const std::string out = copy.beside("model");
  CHECK(checked({"export", copy.path(), "--out", out}, "export")["step"] == 20);
  const test::Call again = test::call({"export", copy.path(), "--out", out});
  CHECK(again.code == 2);
  CHECK(again.err.find("exists and is not empty") != std::string::npos);
  copy.flip("step-00000020/rank-0000.bin", 5);
  const json older = checked({"export", copy.path(), "--out", out, "--force"}, "export");
  CHECK(older["step"] == 10);
  CHECK(older["skipped"].size() == 1);
  const test::Call damaged =
      test::call({"export", copy.path("step-00000020"), "--out", out, "--force"});
  CHECK(damaged.code == 2);
  CHECK(damaged.err.find("rank-0000.bin") != std::string::npos);
  CHECK(checked({"params", out}, "params")["parameters"] == older["parameters"]);
}

TEST_CASE("bad input") {
  const test::TemporaryFolder empty;
  struct Bad {
    std::vector<std::string> arguments;
    std::string says;
  };
  const std::vector<Bad> cases = {
      {{"checkpoint"}, "[checkpoint] ACTION is missing"},
      {{"checkpoint", "list"}, "[checkpoint] DIR is missing"},
      {{"checkpoint", "look", kExample}, "[checkpoint] \"look\", expected list, show or verify"},
      {{"checkpoint", "list", kExample, "more"}, "unexpected argument \"more\""},
      {{"checkpoint", "list", empty.path() + "/no"}, "no such folder"},
      {{"checkpoint", "list", "README.md"}, "[README.md] is no folder"},
      {{"checkpoint", "show", empty.path()}, "has no checkpoint"},
      {{"checkpoint", "verify", empty.path()}, "has no checkpoint"},
      {{"checkpoint", "list", kExample, "--out", "x"}, "[--out] is no option"},
      {{"export", kExample}, "[--out] is missing"},
      {{"export"}, "[export] DIR is missing"},
      {{"export", empty.path(), "--out", "x"}, "has no checkpoint"},
      {{"export", kExample, "--out", "README.md"}, "is a file"},
  };
  for (const Bad& bad : cases) {
    const test::Call result = test::call(bad.arguments);
    CAPTURE(bad.says);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(test::line_count(result.err) == 1);
    CHECK(result.err.find(bad.says) != std::string::npos);
  }
}

}  // namespace
}  // namespace plimsoll
