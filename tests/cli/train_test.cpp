// plimsoll train from outside: that it learns, that ranks do not change what it learns, what it
// refuses, and that a refusal leaves nothing behind.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/call.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

const std::string kModel = "minigpt:d=32,L=2,V=256,s=16,heads=2";

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

std::string repeating_text(int times) {
  return repeated("the quick brown fox jumps over the lazy dog. ", times);
}

struct Run {
  test::Call call;
  std::vector<json> steps;
  std::vector<json> evaluations;

  double loss(std::size_t i) const { return steps.at(i)["loss"].get<double>(); }
};

Run train(const Arguments& more, const std::string& model = kModel,
          const std::string& data = repeating_text(100)) {
  const test::TemporaryFolder folder;
  Arguments words = {
      "train", model, "--data", folder.write("text", data), "--out", folder.path() + "/run"};
  words.insert(words.end(), more.begin(), more.end());
  Run run;
  run.call = test::call(words);
  std::ifstream file(folder.path() + "/run/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    json parsed = json::parse(line);
    (parsed.contains("evaluation") ? run.evaluations : run.steps).push_back(std::move(parsed));
  }
  return run;
}

void check_equal_losses(const Run& a, const Run& b) {
  REQUIRE(a.call.code == 0);
  REQUIRE(b.call.code == 0);
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    CAPTURE(i);
    // Sums over rows are rounded in another order: fp32's rounding over a few steps.
    CHECK(std::abs(a.loss(i) - b.loss(i)) <= 1e-6 * a.loss(i));
  }
}

void check_refused(const Arguments& more, const std::string& says, int code = 2,
                   const std::string& data = repeating_text(10), const std::string& name = "text") {
  const test::TemporaryFolder folder;
  Arguments words = {"train", kModel};
  if (std::find(more.begin(), more.end(), "--data") == more.end()) {
    words.insert(words.end(), {"--data", folder.write(name, data)});
  }
  const std::string out = folder.path() + "/run";
  for (const Arguments& standard :
       {Arguments{"--steps", "3"}, Arguments{"--lr", "1e-3"}, Arguments{"--out", out}}) {
    if (std::find(more.begin(), more.end(), standard[0]) != more.end()) continue;
    words.insert(words.end(), standard.begin(), standard.end());
  }
  words.insert(words.end(), more.begin(), more.end());
  const test::Call result = test::call(words);
  CAPTURE(says);
  CAPTURE(result.err);
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK(result.err.find(says) != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));
}

}  // namespace

TEST_CASE("the loss falls on a repeating text, on one rank and on two, at every stage") {
  for (const Arguments& ranks :
       {Arguments{}, Arguments{"--ranks", "2"}, Arguments{"--ranks", "2", "--zero", "2"},
        Arguments{"--ranks", "2", "--zero", "3"}}) {
    Arguments words = {"--steps", "60", "--lr", "3e-3", "--batch", "4", "--warm-up", "5"};
    words.insert(words.end(), ranks.begin(), ranks.end());
    const Run run = train(words);
    CAPTURE(run.call.err);
    REQUIRE(run.call.code == 0);
    REQUIRE(run.steps.size() == 60);
    CHECK(run.loss(0) == doctest::Approx(std::log(256.0)).epsilon(0.02));
    CHECK(run.loss(59) < 0.6 * run.loss(0));
    CHECK(run.call.out.find("60 steps") != std::string::npos);
  }
}

TEST_CASE("metrics: one line a step, with the measured peak that the plan calculated") {
  // On processors with 16-bit units oneDNN's scratch comes on top, and the summary says so.
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  for (const Arguments& job :
       {Arguments{}, Arguments{"--ranks", "2", "--zero", "3", "--accumulate", "2"},
        Arguments{"--checkpoint", "block", "--dropout", "0.1", "--accumulate", "2"},
        Arguments{"--precision", "fp64"}, Arguments{"--precision", "bf16"},
        Arguments{"--precision", "mixed", "--ranks", "2", "--zero", "2"}}) {
    Arguments words = {"--steps", "3", "--lr", "1e-3", "--clip", "0.5", "--schedule", "linear"};
    words.insert(words.end(), job.begin(), job.end());
    const Run run = train(words);
    CAPTURE(run.call.err);
    CHECK(run.call.out.find("cannot explain") == std::string::npos);
    REQUIRE(run.steps.size() == 3);
    Arguments plan = {"plan", kModel, "--json"};
    plan.insert(plan.end(), job.begin(), job.end());
    const json planned = json::parse(test::call(plan).out);
    for (std::size_t i = 0; i < 3; ++i) {
      const json& step = run.steps[i];
      CHECK(step["step"] == i + 1);
      CHECK(step["grad_norm"].get<double>() > 0);
      CHECK(step["tokens_per_second"].get<double>() > 0);
      CHECK(step["lr"].get<double>() == doctest::Approx(1e-3 * (1 - static_cast<double>(i) / 3)));
      const auto& peak = planned["timeline"][i == 0 ? "first" : "steady"]["peak"];
      CHECK(step["peak_bytes"] == peak["bytes"]);
    }
  }
}

TEST_CASE("ranks or micro-batches: the same rows give the same losses") {
  const Arguments common = {"--steps", "8", "--lr", "1e-3", "--clip", "1"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), common.begin(), common.end());
    return train(more);
  };
  const Run one = with({"--accumulate", "2"});
  for (const char* stage : {"0", "1", "2", "3"}) {
    CAPTURE(stage);
    check_equal_losses(one, with({"--ranks", "2", "--zero", stage}));
  }
  CHECK(one.loss(0) != with({"--accumulate", "2", "--seed", "6"}).loss(0));
}

TEST_CASE("evaluation: held out, without dropout, the same on any number of ranks") {
  const Arguments common = {"--steps", "4", "--lr", "1e-9", "--eval-every", "2"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), common.begin(), common.end());
    return train(more);
  };
  const Run one = with({"--batch", "2"});
  REQUIRE(one.evaluations.size() == 2);
  const json& evaluation = one.evaluations[1]["evaluation"];
  CHECK(one.evaluations[1]["step"] == 4);
  const double loss = evaluation["loss"].get<double>();
  // 450 of 4500 tokens, 28 rows of 16 and the token after them.
  CHECK(evaluation["rows"] == 28);
  for (const Arguments& job :
       {Arguments{"--batch", "2", "--dropout", "0.5"},
        Arguments{"--ranks", "2", "--zero", "3", "--dropout", "0.5", "--checkpoint", "block"}}) {
    const Run other = with(job);
    CAPTURE(other.call.err);
    REQUIRE(other.evaluations.size() == 2);
    // The rate is too small to learn anything: the same parameters, up to rounding.
    CHECK(std::abs(other.evaluations[1]["evaluation"]["loss"].get<double>() - loss) <= 1e-5 * loss);
  }
}

TEST_CASE("a loss that is no number ends the run and names step and rank") {
  for (const char* ranks : {"1", "2"}) {
    const Run run =
        train({"--steps", "50", "--lr", "1e30", "--ranks", ranks, "--schedule", "constant"});
    CAPTURE(run.call.err);
    CHECK(run.call.code == 1);
    CHECK(run.call.out.empty());
    CHECK(run.call.err.find("expected a finite number") != std::string::npos);
    CHECK(run.call.err.find("; operation=") != std::string::npos);
    CHECK(run.call.err.find(", unit=") != std::string::npos);
    CHECK(run.call.err.find(", step=") != std::string::npos);
    CHECK(run.steps.size() < 50);
  }
}

TEST_CASE("bad input ends with 2 and leaves nothing behind") {
  check_refused({"--data", "/nowhere/text"}, "no such file");
  check_refused({}, "is empty", 2, "");
  check_refused({}, "expected at least 17", 2, "short");
  check_refused({"--schedule", "cosin"}, "[--schedule] \"cosin\", expected cosine");
  check_refused({"--steps", "0"}, "[--steps] \"0\"");
  check_refused({"--lr", "0"}, "[--lr] \"0\"");
  check_refused({"--warm-up", "3"}, "[--warm-up] steps=3, expected fewer than --steps 3");
  check_refused({"--held-out", "1"}, "[--held-out]");
  check_refused({"--held-out", "0.001"}, "[--held-out] rows=0, expected at least 1");
  check_refused({"--token-bytes", "2"}, "--data is text");
  check_refused({}, "token=24930 at position 0, expected below 256", 2, repeated("ba", 40),
                "x.bin");
  check_refused({}, "bytes=5, expected a multiple of 2", 2, "ababa", "x.bin");
  check_refused({"--optimizer-impl", "torch-cpp"}, "[--optimizer-impl]");
  check_refused({"--backend", "cuda"}, "[--backend]");
  check_refused({"--ranks", "1000"}, "[--ranks]");
  const test::Call images =
      test::call({"train", "cnn:channels=16,image=8,classes=10", "--data", "README.md", "--steps",
                  "1", "--lr", "1", "--out", "/nowhere"});
  CHECK(images.code == 2);
  CHECK(images.err.find("expected a causal language model") != std::string::npos);
}

TEST_CASE("the plan comes first, and what does not fit is not run unless forced") {
  check_refused({"--device", "256KiB", "--reserve", "0"}, "[train] does not fit: peak=", 1);
  const Run forced = train({"--device", "256KiB", "--reserve", "0", "--force", "--steps", "2",
                            "--lr", "1e-3", "--precision", "fp32"});
  CAPTURE(forced.call.err);
  CHECK(forced.call.code == 0);
  CHECK(forced.call.err.find("Assumptions") < forced.call.err.find("step 1/2"));
}

TEST_CASE("metrics that are there are kept unless forced") {
  const test::TemporaryFolder folder;
  const std::string text = folder.write("text", repeating_text(10));
  folder.write("metrics.jsonl", "mine\n");
  Arguments words = {"train", kModel, "--data", text,    "--steps",
                     "1",     "--lr", "1e-3",   "--out", folder.path()};
  const test::Call refused = test::call(words);
  CHECK(refused.code == 2);
  CHECK(refused.err.find("metrics.jsonl exists") != std::string::npos);
  words.push_back("--force");
  CHECK(test::call(words).code == 0);
  std::ifstream file(folder.path() + "/metrics.jsonl");
  std::string line;
  std::getline(file, line);
  CHECK(json::parse(line)["step"] == 1);
}

}  // namespace plimsoll
