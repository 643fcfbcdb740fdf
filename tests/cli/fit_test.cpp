// `plimsoll fit`, `plimsoll diff` and the verdicts of plans, from outside.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"

#include "tests/cli/call.hpp"
#include "tests/cli/output_checks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

json parsed(const Arguments& arguments, int code) {
  Arguments words = arguments;
  words.push_back("--json");
  const test::Call result = test::call(words);
  CAPTURE(result.err);
  REQUIRE(result.code == code);
  CHECK(result.err.empty());
  return json::parse(result.out);
}

// Jobs that do not fit, with changes that need one option, two, and more.
std::vector<Arguments> too_large() {
  return {{"llama-3-8b", "--seq", "2048", "--device", "h100-80g"},
          {"llama-3-8b", "--seq", "8192", "--device", "rtx-4090"},
          {"llama-3-8b", "--seq", "8192", "--device", "h100-80g", "--ranks", "8", "--zero", "1",
           "--batch", "4"},
          {"gpt2", "--device", "t4", "--batch", "64", "--precision", "fp32"},
          {test::kMiniGpt, "--device", "100MiB", "--reserve", "0", "--batch", "64"},
          {"cnn:", "--device", "60MB", "--reserve", "1MB", "--batch", "64"}};
}

Arguments call_of(const std::string& command, const Arguments& job) {
  Arguments words = {command};
  words.insert(words.end(), job.begin(), job.end());
  return words;
}

TEST_CASE("commands of advised changes, run as they are printed, fit") {
  for (const Arguments& job : too_large()) {
    CAPTURE(job[0]);
    const json fit = parsed(call_of("plan", job), 1)["fit"];
    CHECK(fit["verdict"] == "does not fit");
    CHECK(fit["changes"].size() >= 1);
    CHECK(fit["changes"].size() <= 3);
    for (const json& change : fit["changes"]) {
      const std::string command = change["command"];
      CAPTURE(command);
      const test::Call again = test::call_shell(command + " --json");
      CHECK(again.code == 0);
      const json plan = json::parse(again.out);
      CHECK(plan["fit"]["needed"] == change["needed"]);
      CHECK(plan["fit"]["verdict"] != "does not fit");
      CHECK(fit["needed"].get<std::int64_t>() - change["saved"].get<std::int64_t>() ==
            change["needed"].get<std::int64_t>());
    }
  }
}

TEST_CASE("fit and plan agree, are valid by their schemas and fit 100 columns") {
  std::vector<Arguments> jobs = too_large();
  jobs.push_back({test::kMiniGpt, "--device", "h100-80g", "--ranks", "2", "--zero", "2"});
  jobs.push_back({test::kMiniGpt, "--device", "1KB", "--reserve", "0"});
  for (const Arguments& job : jobs) {
    CAPTURE(job[0]);
    const test::Call text = test::call(call_of("fit", job));
    test::check_width(text.out);
    const json fit = parsed(call_of("fit", job), text.code);
    const json plan = parsed(call_of("plan", job), text.code);
    test::check_schema("fit", fit);
    test::check_schema("plan", plan);
    CHECK(text.code == (fit["verdict"] == "does not fit" ? 1 : 0));
    for (const char* key : {"needed", "available", "verdict", "reserve"}) {
      CHECK(fit[key] == plan["fit"][key]);
    }
    CHECK(fit["largest_batch"]["timeline"] == plan["fit"]["largest_batch"]);
    CHECK(text.out.find(grouped(fit["needed"])) != std::string::npos);
    CHECK(text.out.find(grouped(fit["available"])) != std::string::npos);
    for (const json& option : fit["options"]) {
      CHECK(text.out.find(grouped(option["needed"])) != std::string::npos);
    }
    for (const char* key : {"longest_sequence", "fewest_ranks"}) {
      if (fit[key].is_null()) CHECK(fit["reason"].contains(key));
    }
  }
}

TEST_CASE("nothing is found where nothing helps, and that is said") {
  const Arguments hopeless = {"plan", test::kMiniGpt, "--device", "1KB", "--reserve", "0"};
  const json fit = parsed(hopeless, 1)["fit"];
  CHECK(fit["changes"].empty());
  CHECK(fit["reason"]["changes"].get<std::string>().find("nothing found") != std::string::npos);
  CHECK(fit["largest_batch"].is_null());
  CHECK(test::call(hopeless).out.find("nothing found") != std::string::npos);
}

TEST_CASE("differences of two plans, largest first") {
  const test::TemporaryFolder folder;
  const auto plan_file = [&](const std::string& name, const Arguments& job) {
    Arguments words = call_of("plan", job);
    words.push_back("--json");
    return folder.write(name, test::call(words).out);
  };
  const std::string a = plan_file("a.json", {"gpt2", "--seq", "256", "--batch", "8"});
  const std::string b =
      plan_file("b.json", {"gpt2", "--seq", "256", "--batch", "8", "--checkpoint", "block"});
  const json diff = parsed({"diff", a, b}, 0);
  test::check_schema("diff", diff);
  CHECK(diff["settings"] == json::array({{{"name", "checkpoint"}, {"a", "none"}, {"b", "block"}}}));
  const json before =
      json::parse(test::call({"plan", "gpt2", "--seq", "256", "--batch", "8", "--json"}).out);
  bool activations = false;
  std::int64_t last = INT64_MAX;
  for (const json& row : diff["rows"]) {
    if (row["name"] == "posts.A") {
      activations = true;
      CHECK(row["a"] == before["posts"]["A"]);
    }
    CHECK(row["difference"].get<std::int64_t>() ==
          row["b"].get<std::int64_t>() - row["a"].get<std::int64_t>());
    if (row["unit"] != "bytes") continue;
    CHECK(std::abs(row["difference"].get<std::int64_t>()) <= last);
    last = std::abs(row["difference"].get<std::int64_t>());
  }
  CHECK(activations);
  const std::string text = test::call({"diff", a, b}).out;
  test::check_width(text);
  for (const json& row : diff["rows"]) {
    CHECK(text.find(grouped(row["difference"])) != std::string::npos);
  }
  const json same = parsed({"diff", a, a}, 0);
  CHECK(same["rows"].empty());
  CHECK(same["settings"].empty());
  CHECK(same["equal"].get<int>() > 20);
}

TEST_CASE("fit and diff refuse what they cannot read") {
  const test::TemporaryFolder folder;
  const std::string plan =
      folder.write("plan.json", test::call({"plan", test::kMiniGpt, "--json"}).out);
  const std::string empty = folder.write("empty.json", "{}");
  const std::string list = folder.write("list.json", "[1, 2]");
  const std::string other = folder.write("other.json", test::call({"devices", "--json"}).out);
  const std::string text = folder.write("plan.txt", test::call({"plan", test::kMiniGpt}).out);
  const std::string part = folder.write("part.json", R"({"schema": "plimsoll.plan/1"})");
  json broken = json::parse(test::call({"plan", test::kMiniGpt, "--json"}).out);
  broken["timeline"]["steady"] = 5;
  const std::string hurt = folder.write("hurt.json", broken.dump());
  const std::vector<std::pair<Arguments, std::string>> cases = {
      {{"fit", test::kMiniGpt}, "[--device] no device, expected a name of `plimsoll devices`"},
      {{"fit", test::kMiniGpt, "--device", "1GiB", "--reserve", "2GiB"}, "[--reserve]"},
      {{"plan", test::kMiniGpt, "--device", "1GiB", "--reserve", "1GiB"}, "[--reserve]"},
      {{"fit", test::kMiniGpt, "--device", "h200"}, "[--device]"},
      {{"fit"}, "MODEL is missing"},
      {{"diff", plan}, "B.json is missing"},
      {{"diff", plan, folder.path() + "/none.json"}, "none.json"},
      {{"diff", empty, plan}, "no plan, expected JSON of schema plimsoll.plan/1"},
      {{"diff", plan, list}, "no plan, expected JSON of schema plimsoll.plan/1"},
      {{"diff", plan, other}, "/schema] schema=\"plimsoll.devices/1\", expected plimsoll.plan/1"},
      {{"diff", text, plan}, "plan.txt"},
      {{"diff", part, plan}, "/model] no part of a plan"},
      {{"diff", plan, hurt}, "/timeline/steady] no step of a plan"},
      {{"diff", folder.path(), plan}, "a folder"},
  };
  for (const auto& [arguments, says] : cases) {
    CAPTURE(says);
    const test::Call result = test::call(arguments);
    CAPTURE(result.err);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(test::line_count(result.err) == 1);
    CHECK(result.err.find(says) != std::string::npos);
  }
}

}  // namespace
}  // namespace plimsoll
