// JSON output: valid by its schema, and the same figures as the text.
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"

#include "tests/cli/call.hpp"
#include "tests/cli/output_checks.hpp"
#include "tests/cli/schema_check.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json output_of(const Arguments& arguments) {
  const test::Call result = test::call(with(arguments, {"--json"}));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(result.err.empty());
  return json::parse(result.out);
}

std::vector<Arguments> jobs() {
  return {{"gpt2"},
          {"llama-3-8b", "--seq", "8192", "--precision", "mixed"},
          {"llama-3-8b", "--semantics", "hf", "--precision", "bf16", "--seq", "128"},
          {test::kMiniGpt, "--accumulate", "3", "--precision", "mixed", "--batch", "2"},
          {test::kMiniGpt, "--optimizer-impl", "torch-python", "--first-step"},
          {test::kMiniGpt, "--backend", "cuda", "--batch", "8"},
          {test::kMiniGpt, "--checkpoint", "matmuls", "--batch", "4"},
          {test::kMiniGpt, "--checkpoint", "block", "--dropout", "0.1", "--attention", "math"},
          {test::kMiniGpt, "--device", "h100-80g", "--batch", "4"},
          {test::kMiniGpt, "--device", "24GiB", "--reserve", "1GiB"},
          {"llama-3-8b", "--ranks", "8", "--zero", "3", "--precision", "mixed"},
          {test::kMiniGpt, "--ranks", "3", "--zero", "1", "--accumulate", "2", "--no-sync"},
          {test::kMiniGpt, "--ranks", "4", "--snapshot"},
          {test::kMiniGpt, "--lora", "rank=8,targets=qkv,down,alpha=16", "--freeze", "layers:0-1"},
          {"llama-3-8b", "--lora", "rank=8", "--ranks", "2", "--zero", "3", "--seq", "128"},
          {test::kMiniGpt, "--precision", "autocast", "--batch", "2"},
          {test::kMiniGpt, "--precision", "fp16"},
          {test::kMiniGpt, "--precision", "zero-paper", "--ranks", "4", "--zero", "2"},
          {test::kMiniGpt, "--precision", "megatron", "--ranks", "4", "--zero", "1"},
          {test::kMiniGpt, "--precision", "bf16", "--master-dtype", "fp32", "--grad-dtype", "fp32"},
          {test::kMiniGpt, "--optimizer", "adafactor"},
          {test::kMiniGpt, "--optimizer", "adamw-8bit", "--precision", "bf16"},
          {test::kMiniGpt, "--loss-chunks", "7", "--batch", "4", "--precision", "mixed"},
          {test::kMiniGpt, "--mode", "prefill", "--batch", "4", "--kv-dtype", "bf16"},
          {"gpt2", "--mode", "decode", "--context", "700", "--kv-dtype", "int8"},
          {"cnn:norm=batch,bias=off,pool=last", "--batch", "4"}};
}

// "1,234" must stand in the text as a word of its own.
bool shows(const std::string& text, std::int64_t figure) {
  const std::string word = grouped(figure);
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    const auto continues = [](char c) { return c == ',' || (c >= '0' && c <= '9'); };
    if (!continues(before) && !continues(after)) return true;
  }
  return false;
}

void check_shown(const std::string& text, const json& figures) {
  if (figures.is_number_integer()) {
    CAPTURE(figures.get<std::int64_t>());
    CHECK(shows(text, figures.get<std::int64_t>()));
  } else if (figures.is_structured()) {
    for (const json& part : figures) check_shown(text, part);
  }
}

json step_figures(const json& step) {
  json figures = json::array({step["peak"]["bytes"]});
  for (const json& alive : step["peak"]["alive"]) figures.push_back(alive["bytes"]);
  for (const json& phase : step["phases"]) {
    for (const char* key : {"start", "end", "peak"}) figures.push_back(phase[key]);
  }
  return figures;
}

std::int64_t sum(const json& rows, const char* key) {
  std::int64_t total = 0;
  for (const json& row : rows) total += row[key].get<std::int64_t>();
  return total;
}

TEST_CASE("plans are valid by their schema") {
  for (const Arguments& job : jobs()) {
    CAPTURE(job[0]);
    test::check_schema("plan", output_of(with({"plan"}, job)));
  }
}

TEST_CASE("what is alive at a peak sums to it") {
  for (const Arguments& job : jobs()) {
    CAPTURE(job[0]);
    const json plan = output_of(with({"plan"}, job));
    for (const json& step : plan["timeline"]) {
      CHECK(sum(step["peak"]["alive"], "bytes") == step["peak"]["bytes"].get<std::int64_t>());
    }
    std::int64_t tags = 0;
    for (const json& bytes : plan["tags"]) tags += bytes.get<std::int64_t>();
    CHECK(tags == plan["timeline"]["steady"]["peak"]["bytes"].get<std::int64_t>());
    CHECK(plan["memory"]["requested"] == plan["timeline"]["steady"]["peak"]["bytes"]);
  }
}

TEST_CASE("text and JSON of a plan have the same figures") {
  for (const Arguments& job : jobs()) {
    CAPTURE(job[0]);
    const json plan = output_of(with({"plan"}, job));
    const std::string text = test::call(with({"plan"}, job)).out;
    check_shown(text, plan["posts"]);
    check_shown(text, plan["ledger"]);
    check_shown(text, plan["flops"]["forward"]["full"]);
    check_shown(text, plan["flops"]["backward"]["full"]);
    check_shown(text, plan["closed_form"]["posts"]);
    const bool first = job.back() == "--first-step";
    check_shown(text, step_figures(plan["timeline"][first ? "first" : "steady"]));
  }
}

TEST_CASE("the cache of a plan of inference is the one that infer prints") {
  const json decode = output_of({"plan", "mistral-7b-v0.1", "--mode", "decode", "--precision",
                                 "bf16", "--context", "8192", "--batch", "2", "--kv-dtype", "fp8"});
  const json infer = output_of(
      {"infer", "mistral-7b-v0.1", "--context", "8192", "--batch", "2", "--kv-dtype", "fp8"});
  CHECK(decode["posts"]["kv_cache"] == infer["kv_cache"]["total"]);
  CHECK(decode["posts"]["P"] == infer["weights"]);
  CHECK(decode["job"]["mode"] == "decode");
  CHECK(decode["job"]["context"] == 8192);
  CHECK(decode["job"]["kv_dtype"] == "fp8");
  CHECK(decode["job"]["seq"] == 1);
  CHECK(decode["flops"]["rule_6nt"].is_null());
}

TEST_CASE("a plan says by how much the same job in hf differs, or why nobody knows") {
  const Arguments job = {"llama-3.2-1b", "--seq", "256", "--batch", "2", "--device", "h100-80g"};
  const json own = output_of(with({"plan"}, job));
  const json hf = output_of(with({"plan", "--semantics", "hf"}, job));
  const json& compared = own["semantics_hf"];
  const auto value = [&](const char* name) { return compared[name]["value"].get<std::int64_t>(); };
  CHECK(value("peak") == hf["timeline"]["steady"]["peak"]["bytes"]);
  CHECK(value("A") == hf["posts"]["A"]);
  CHECK(value("flops") == hf["flops"]["forward"]["full"].get<std::int64_t>() +
                              hf["flops"]["backward"]["full"].get<std::int64_t>());
  CHECK(value("A") - own["posts"]["A"].get<std::int64_t>() == compared["A"]["difference"]);
  CHECK(compared["A"]["difference"] > 0);
  CHECK(compared["reason"].is_null());
  const std::string text = test::call(with({"plan"}, job)).out;
  for (const char* name : {"peak", "A", "flops"}) {
    CHECK(shows(text, value(name)));
    const std::int64_t difference = compared[name]["difference"];
    if (difference > 0) CHECK(text.find(grouped(difference) + " more") != std::string::npos);
  }
  for (const json& unknown : {hf["semantics_hf"], output_of({"plan", "cnn:"})["semantics_hf"],
                              output_of({"plan", test::kMiniGpt})["semantics_hf"]}) {
    CHECK(unknown["reason"].is_string());
    for (const char* name : {"peak", "A", "flops"}) CHECK(unknown[name].is_null());
  }
}

TEST_CASE("a device chooses cuda and mixed, and its memory stands in the plan") {
  const json plan = output_of({"plan", test::kMiniGpt, "--device", "A100-80G"});
  CHECK(plan["job"]["device"] == "a100-80g");
  CHECK(plan["job"]["backend"] == "cuda");
  CHECK(plan["job"]["precision"] == "mixed");
  CHECK(plan["fit"]["capacity"] == 85899345920);
  CHECK(plan["fit"]["reserve"] == 481 * 1048576);
  CHECK(plan["job"]["assumptions"].dump().find("context (measured") != std::string::npos);
  const json sized = output_of({"plan", test::kMiniGpt, "--device", "24GB", "--reserve", "0",
                                "--precision", "fp32", "--backend", "cpu"});
  CHECK(sized["fit"]["usable"] == 24000000000);
  CHECK(sized["fit"]["reserve"] == 0);
  CHECK(sized["job"]["backend"] == "cpu");
  CHECK(sized["job"]["precision"] == "fp32");
}

TEST_CASE("every null of a plan has its reason") {
  const json plan = output_of({"plan", test::kMiniGpt, "--backend", "cuda"});
  for (const auto& [key, value] : plan["memory"].items()) {
    CAPTURE(key);
    if (value.is_null()) CHECK(plan["memory"]["reason"].contains(key));
  }
  CHECK(plan["time"]["reason"].is_string());
  CHECK(plan["fit"]["reason"].is_string());
  CHECK(output_of({"plan", "cnn:"})["closed_form"]["reason"].is_string());
}

TEST_CASE("parameters, models and doctor are valid by their schema") {
  test::check_schema("params", output_of({"params", "gpt2", "--against", "163037184"}));
  test::check_schema("models", output_of({"models"}));
  test::check_schema("doctor", output_of({"doctor"}));
  test::check_schema("devices", output_of({"devices"}));
  test::check_schema("devices", output_of({"devices", "mi250x"}));
  test::check_schema("devices", output_of({"devices", "24GiB"}));
}

#if PLIMSOLL_HAS_ENGINE
TEST_CASE("measurements are valid by their schema, and every difference is named") {
  const json value =
      output_of({"measure", "minigpt:d=32,L=1,V=50,s=16,heads=4", "--batch", "2", "--fit-batch",
                 "--families", "--sweep", "width", "--bisect", "2MiB"});
  test::check_schema("measure", value);
  CHECK(value["rows"].size() > 10);
  for (const char* study : {"fit_batch", "families", "sweep", "bisect"}) {
    CHECK(value.contains(study));
  }
  for (const json& row : value["rows"]) {
    CHECK((row["difference"] == 0 || row["cause"].is_string()));
  }
}

TEST_CASE("a sharded job: every line of every rank is equal, traffic too") {
  const json value = output_of({"measure", "minigpt:d=33,L=2,V=51,s=8,heads=3", "--ranks", "3",
                                "--zero", "3", "--precision", "mixed", "--accumulate", "2"});
  test::check_schema("measure", value);
  std::set<std::string> lines;
  for (const json& row : value["rows"]) {
    CHECK(row["difference"] == 0);
    lines.insert(row["line"].get<std::string>());
  }
  for (const char* line : {"peak of all steps", "traffic of all steps",
                           "rank 1: sum of differences", "rank 2: sum of differences"}) {
    CHECK(lines.contains(line));
  }
}
#endif

TEST_CASE("terms sum to the parameters, parts to the difference") {
  for (const char* model : {"gpt2", "llama-3.2-1b", "llama-2-70b", "minigpt:", "cnn:"}) {
    CAPTURE(model);
    const json p = output_of({"params", model, "--against", "123456789"});
    CHECK(sum(p["terms"], "count") == p["parameters"].get<std::int64_t>());
    const json& against = p["against"];
    CHECK(sum(against["parts"], "count") + against["unexplained"].get<std::int64_t>() ==
          against["difference"].get<std::int64_t>());
    CHECK(against["difference"].get<std::int64_t>() ==
          123456789 - p["parameters"].get<std::int64_t>());
  }
}

TEST_CASE("names that are not UTF-8 do not break the JSON") {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("gpt\xff.json", R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 12})");
  test::check_schema("plan", output_of({"plan", file, "--seq", "8"}));
  test::check_schema("params", output_of({"params", file}));
}

TEST_CASE("the schema checker finds what is wrong") {
  const json schema = test::read_schema("plan");
  json plan = output_of({"plan", test::kMiniGpt});
  const auto broken = [&](const char* pointer, const json& value) {
    json copy = plan;
    copy[json::json_pointer(pointer)] = value;
    return !test::schema_violations(schema, copy).empty();
  };
  CHECK_FALSE(broken("/posts/P", 5));
  CHECK(broken("/posts/P", 5.5));
  CHECK(broken("/posts/P", "5"));
  CHECK(broken("/posts/P", -5));
  CHECK(broken("/posts/O/extra", 5));
  CHECK(broken("/schema", "plimsoll.plan/2"));
  CHECK(broken("/job/precision", "fp23"));
  CHECK(broken("/timeline/first/phases/0/end", nullptr));
  plan["ledger"].erase("distinct");
  CHECK_FALSE(test::schema_violations(schema, plan).empty());
}

}  // namespace
}  // namespace plimsoll
