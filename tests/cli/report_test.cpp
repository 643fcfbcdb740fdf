// plimsoll report: files whole or not at all, measurements of the same job alone.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/call.hpp"
#include "tests/cli/schema_check.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::call;
using Arguments = std::vector<std::string>;

const std::string kSmallGpt = "minigpt:d=32,L=1,V=50,s=16,heads=4";

std::string file_contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t count_files(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a page and a trace are written, and what is told of them is JSON by its schema") {
  const test::TemporaryFolder folder;
  const std::string out = folder.path() + "/r.html";
  const std::string trace = folder.path() + "/t.json";
  const test::Call text = call({"report", kSmallGpt, "--out", out, "--trace", trace});
  CAPTURE(text.err);
  REQUIRE(text.code == 0);
  CHECK(text.err.empty());
  CHECK(contains(text.out, out));
  CHECK(contains(text.out, trace));
  CHECK(count_files(folder.path()) == 2);
  const std::string page = file_contents(out);
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(json::parse(file_contents(trace)).contains("traceEvents"));
  // The same call gives the same bytes, over a file that is there.
  const test::Call again = call({"report", kSmallGpt, "--out", out, "--trace", trace, "--json"});
  const json told = json::parse(again.out);
  CHECK(test::schema_violations(test::read_schema("report"), told).empty());
  CHECK(told["page"] == out);
  const json plan = json::parse(call({"plan", kSmallGpt, "--json"}).out);
  CHECK(told["peak"]["bytes"] == plan["timeline"]["steady"]["peak"]["bytes"]);
  CHECK(contains(page, "{\"schema\":\"plimsoll.plan/1\",\"model\":"));
}

TEST_CASE("the first step can be shown, and a job that does not fit is told by the exit code") {
  const test::TemporaryFolder folder;
  const std::string out = folder.path() + "/r.html";
  CHECK(call({"report", kSmallGpt, "--out", out, "--first-step"}).code == 0);
  CHECK(contains(file_contents(out), "Memory over the first step"));
  const test::Call small = call(
      {"report", "llama-3-8b", "--seq", "8192", "--device", "rtx-4090", "--out", out, "--json"});
  CHECK(small.code == 1);
  CHECK(json::parse(small.out)["verdict"] == "does not fit");
  // Its changes are commands of plan, without this command's files.
  const std::string page = file_contents(out);
  CHECK(contains(page, "plimsoll plan llama-3-8b --device rtx-4090 --seq 8192 --checkpoint block"));
  CHECK_FALSE(contains(page.substr(page.find("id=\"changes\""), 1500), "--out"));
}

TEST_CASE("a report over a link goes where the link points, new files obey the umask") {
  const test::TemporaryFolder folder;
  const std::string target = folder.write("target.html", "before");
  const std::string link = folder.path() + "/link.html";
  fs::create_symlink(target, link);
  CHECK(call({"report", kSmallGpt, "--out", link}).code == 0);
  CHECK(fs::is_symlink(link));
  CHECK(file_contents(target).starts_with("<!doctype"));
  const test::Call made = test::call_shell("umask 027; plimsoll report " + kSmallGpt + " --out " +
                                           folder.path() + "/new.html");
  CHECK(made.code == 0);
  CHECK((fs::status(folder.path() + "/new.html").permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));
}

TEST_CASE("what the command reads is never overwritten") {
  const test::TemporaryFolder folder;
  const std::string config = R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 12})";
  const std::string file = folder.write("config.json", config);
  for (const std::string& model : {file, folder.path()}) {
    for (const Arguments& target :
         {Arguments{"--out", file}, {"--out", folder.path() + "/r.html", "--trace", file}}) {
      Arguments arguments = {"report", model, "--seq", "8"};
      arguments.insert(arguments.end(), target.begin(), target.end());
      const test::Call result = call(arguments);
      CHECK(result.code == 2);
      CHECK(contains(result.err, "is read by this command"));
      CHECK(file_contents(file) == config);
      CHECK(count_files(folder.path()) == 1);
    }
  }
}

TEST_CASE("a file that cannot be written whole leaves nothing, and nothing is lost") {
  const test::TemporaryFolder folder;
  const std::string before = folder.write("r.html", "before");
  // Files of at most 8 blocks of 512 or 1024 bytes: smaller than the page.
  const test::Call full = test::call_shell("trap '' XFSZ; ulimit -f 8; plimsoll report " +
                                           kSmallGpt + " --out " + before);
  CHECK(full.code == 3);
  CHECK(contains(full.out, "[--out] \"" + before + "\" cannot be written: File too large"));
  CHECK(file_contents(before) == "before");
  CHECK(count_files(folder.path()) == 1);
  // The page of a trace that cannot be written is not left behind either.
  const test::Call no_trace = call({"report", kSmallGpt, "--out", folder.path() + "/new.html",
                                    "--trace", "/proc/self/trace.json"});
  CHECK(no_trace.code == 3);
  CHECK(contains(no_trace.err, "[--trace] \"/proc/self/trace.json\" cannot be written"));
  CHECK(test::line_count(no_trace.err) == 1);
  CHECK(count_files(folder.path()) == 1);
}

// A measurement as `measure --json` writes it, without an engine: all figures as planned.
json measurement_of(const Arguments& job) {
  Arguments arguments = {"plan"};
  arguments.insert(arguments.end(), job.begin(), job.end());
  arguments.emplace_back("--json");
  const json plan = json::parse(call(arguments).out);
  json rows = json::array();
  for (const json& phase : plan["timeline"]["steady"]["phases"]) {
    const std::int64_t peak = phase["peak"];
    rows.push_back({{"line", "steady " + phase["name"].get<std::string>() + ": peak"},
                    {"unit", "bytes"},
                    {"calculated", peak},
                    {"dry", peak},
                    {"measured", peak},
                    {"difference", 0},
                    {"cause", nullptr}});
  }
  return {{"schema", "plimsoll.measure/1"},
          {"model", plan["model"]},
          {"job", plan["job"]},
          {"rows", rows},
          {"reason", json::object()}};
}

test::Call report_with(const test::TemporaryFolder& folder, const json& measured,
                       const Arguments& job) {
  const std::string file = folder.write("m.json", measured.dump());
  Arguments arguments = {"report", "--out", folder.path() + "/r.html", "--measured", file};
  arguments.insert(arguments.end(), job.begin(), job.end());
  return call(arguments);
}

TEST_CASE("a measurement of the same job stands on the page; unnamed differences are told") {
  const test::TemporaryFolder folder;
  json measured = measurement_of({kSmallGpt});
  CHECK(report_with(folder, measured, {kSmallGpt}).code == 0);
  CHECK(contains(file_contents(folder.path() + "/r.html"), "5 lines compared, all equal"));
  measured["rows"][1]["measured"] = measured["rows"][1]["measured"].get<std::int64_t>() + 64;
  CHECK(report_with(folder, measured, {kSmallGpt}).code == 1);
  CHECK(contains(file_contents(folder.path() + "/r.html"), "not named"));
  measured["rows"][1]["cause"] = "scratch of a kernel";
  CHECK(report_with(folder, measured, {kSmallGpt}).code == 0);
  const std::string page = file_contents(folder.path() + "/r.html");
  CHECK(contains(page, "scratch of a kernel"));
  CHECK(contains(page, ">+64<"));
  measured["rows"][1]["measured"] = nullptr;
  measured["reason"]["measured"] = "no memory";
  CHECK(report_with(folder, measured, {kSmallGpt}).code == 0);
  CHECK(contains(file_contents(folder.path() + "/r.html"), "measured is missing"));
}

void check_measured_refused(const json& measured, const Arguments& job, const std::string& says) {
  const test::TemporaryFolder folder;
  const test::Call result = report_with(folder, measured, job);
  CAPTURE(result.err);
  CHECK(result.code == 2);
  CHECK(test::line_count(result.err) == 1);
  CHECK(contains(result.err, says));
  CHECK(count_files(folder.path()) == 1);
}

TEST_CASE("a measurement of another job or model is refused by the name of what differs") {
  const json measured = measurement_of({kSmallGpt});
  check_measured_refused(measured, {kSmallGpt, "--batch", "2"},
                         "m.json:/job/batch] a measurement of another job: batch=1, expected 2");
  check_measured_refused(measured, {kSmallGpt, "--optimizer", "sgd"},
                         "optimizer=\"adamw\", expected \"sgd\"");
  check_measured_refused(measured, {"minigpt:d=32,L=2,V=50,s=16,heads=4"}, "m.json:/model/title]");
  json other = measured;
  other["model"]["layers"] = 7;
  check_measured_refused(other, {kSmallGpt}, "layers=7, expected 1");
  other = measured;
  other["job"].erase("zero");
  check_measured_refused(other, {kSmallGpt}, "zero=missing, expected 0");
  other = measured;
  for (json& row : other["rows"]) row["calculated"] = 5;
  check_measured_refused(other, {kSmallGpt}, "calculated peak of the steady step=5, expected");
}

TEST_CASE("files that are no measurement are refused") {
  const json measured = measurement_of({kSmallGpt});
  json other = measured;
  other["schema"] = "plimsoll.plan/1";
  check_measured_refused(other, {kSmallGpt},
                         "/schema] schema=\"plimsoll.plan/1\", expected plimsoll.measure/1");
  check_measured_refused(json::array(), {kSmallGpt}, "no measurement, expected JSON of schema");
  other = measured;
  other.erase("rows");
  check_measured_refused(other, {kSmallGpt}, "/rows] missing, expected a list");
  other = measured;
  other["rows"][2]["calculated"] = -1;
  check_measured_refused(other, {kSmallGpt}, "/rows/2/calculated] -1, expected a whole number");
  other["rows"][2]["calculated"] = 1.5;
  check_measured_refused(other, {kSmallGpt}, "/rows/2/calculated] 1.5, expected a whole number");
  other["rows"][2].erase("line");
  check_measured_refused(other, {kSmallGpt}, "/rows/2/line] missing");
}

}  // namespace
}  // namespace plimsoll
