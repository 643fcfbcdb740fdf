// Every figure of a plan can be asked how it came about, and the answer is that figure.
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/call.hpp"
#include "tests/cli/output_checks.hpp"
#include "tests/cli/schema_check.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using nlohmann::json;
using Arguments = std::vector<std::string>;

std::vector<Arguments> explained_jobs() {
  return {{test::kMiniGpt, "--batch", "8"},
          {test::kMiniGpt, "--precision", "mixed", "--accumulate", "2", "--checkpoint", "block"},
          {test::kMiniGpt, "--optimizer-impl", "torch-python", "--backend", "cuda"},
          {"llama-3.2-1b", "--seq", "128", "--device", "h100-80g"},
          {test::kMiniGpt, "--device", "24GiB"},
          {test::kMiniGpt, "--device", "100MiB", "--reserve", "1MiB", "--batch", "64"},
          {test::kMiniGpt, "--ranks", "4", "--zero", "3", "--backend", "cuda"},
          {test::kMiniGpt, "--mode", "prefill", "--batch", "3"},
          {"llama-3.2-1b", "--mode", "decode", "--kv-dtype", "fp8", "--device", "l4"},
          {"gpt2", "--mode", "decode", "--device", "200MiB", "--reserve", "0"},
          {"cnn:", "--device", "t4"},
          {"cnn:norm=batch", "--batch", "4"}};
}

json output_of_command(const std::string& command, Arguments arguments) {
  arguments.insert(arguments.begin(), command);
  arguments.emplace_back("--json");
  const test::Call result = test::call(arguments);
  CAPTURE(result.err);
  REQUIRE((result.code == 0 || (command == "plan" && result.code == 1)));
  return json::parse(result.out);
}

// JSON pointers of all numbers below `value`.
void numbers_below(const json& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_number()) found.push_back(path);
  if (!value.is_structured()) return;
  for (const auto& [key, part] : value.items()) numbers_below(part, path + "/" + key, found);
}

// Everything the plan prints but what was asked of it (settings, sizes of the config) and when an
// instant was.
std::vector<std::string> figures_of(const json& plan) {
  std::vector<std::string> all = {"/model/parameters", "/model/parameter_tensors"};
  for (const auto& [section, part] : plan.items()) {
    if (section != "model" && section != "job") numbers_below(part, "/" + section, all);
  }
  if (!plan.at("fit").at("verdict").is_null()) all.emplace_back("/fit/verdict");
  std::erase_if(all, [](const std::string& path) {
    return path.ends_with("/step") || path.ends_with("/micro_batch");
  });
  return all;
}

TEST_CASE("every explained value is the plan's, and every figure of the plan is explained") {
  for (const Arguments& job : explained_jobs()) {
    CAPTURE(job[0]);
    const json plan = output_of_command("plan", job);
    const json explained = output_of_command("explain", job);
    std::set<std::string> paths;
    for (const json& term : explained.at("terms")) {
      CAPTURE(term.dump());
      CHECK_FALSE(term.at("formula").get<std::string>().empty());
      CHECK_FALSE(term.at("source").get<std::string>().empty());
      if (term.at("in_plan").is_null()) continue;
      const std::string path = term.at("in_plan");
      paths.insert(path);
      CHECK(plan.at(json::json_pointer(path)) == term.at("value"));
    }
    for (const std::string& figure : figures_of(plan)) {
      CAPTURE(figure);
      CHECK(paths.contains(figure));
    }
  }
}

TEST_CASE("terms have names of their own, and each can be asked for alone") {
  const Arguments job = {"llama-3.2-1b", "--seq", "64", "--device", "l4"};
  const json all = output_of_command("explain", job);
  std::set<std::string> names;
  for (const json& term : all.at("terms")) names.insert(term.at("term").get<std::string>());
  CHECK(names.size() == all.at("terms").size());
  for (const char* name :
       {"posts.P", "tags.optimizer", "ledger.distinct.bytes", "flops.forward.full", "closed_form.A",
        "memory.requested", "kv_cache.per_token", "parameters.attention", "time.bound_seconds",
        "fit.usable", "fit.verdict", "fit.needed", "memory.reserved", "memory.library_workspace",
        "semantics_hf.peak.difference", "timeline.steady.alive.parameters",
        "timeline.steady.backward.0.peak"}) {
    CAPTURE(name);
    Arguments one = job;
    one.insert(one.begin() + 1, name);
    const json term = output_of_command("explain", one);
    CHECK(term.at("term") == name);
    for (const json& other : all.at("terms")) {
      if (other.at("term") == name) CHECK(other.at("value") == term.at("value"));
    }
  }
}

TEST_CASE("explanations, products, models and inference are valid by their schemas") {
  const auto check = [](const char* schema, const json& value) {
    for (const std::string& wrong : test::schema_violations(test::read_schema(schema), value)) {
      FAIL_CHECK(schema, wrong);
    }
  };
  check("explain", output_of_command("explain", {test::kMiniGpt}));
  check("explain", output_of_command("explain", {test::kMiniGpt, "posts.A"}));
  check("math", output_of_command("math", {"dot", "5"}));
  check("math", output_of_command("math", {"batched", "2", "3", "4", "5", "--device", "t4"}));
  check("math",
        output_of_command("math", {"matmul", "2", "3", "4", "--dtype", "fp8", "--device", "l4"}));
  check("math", output_of_command("math", {test::kMiniGpt, "--device", "24GiB"}));
  check("math", output_of_command("math", {"llama-3-8b", "--device", "b200", "--tokens-per-second",
                                           "9000", "--checkpoint", "matmuls"}));
  check("infer",
        output_of_command("infer", {"llama-3-8b", "--device", "a100-80g", "--batch", "4"}));
  check("infer", output_of_command("infer", {test::kMiniGpt, "--kv-dtype", "fp8"}));
}

TEST_CASE("mixtures of experts have costs and caches though their steps cannot be planned") {
  std::ifstream stream("tests/truth/hf/models/mixtral-8x22b.json");
  const json truth = json::parse(stream);
  const test::TemporaryFolder folder;
  const std::string file = folder.write("config.json", truth.at("config").dump());
  const json math = output_of_command("math", {file, "--seq", "4096", "--device", "h200-141g"});
  CHECK(math.at("parameters") == truth.at("params_unique"));
  CHECK(math.at("active_parameters") == 39161468928);
  CHECK(math.at("experts").at("experts") == 8);
  CHECK(math.at("experts").at("sparsity") == 4);
  CHECK(math.at("experts").at("all_to_all_bytes") == std::int64_t{2} * 4096 * 2 * 6144);
  const json infer = output_of_command("infer", {file, "--context", "1000"});
  CHECK(infer.at("kv_cache").at("per_token") == 56 * 2 * 8 * 128 * 2);
  // One token visits 2 of 8 experts: most weights are not read.
  CHECK(infer.at("decode").at("weight_bytes") < infer.at("weights").get<std::int64_t>() / 3);
}

TEST_CASE("MFU is tokens per second times FLOPs per token over the peak") {
  const json math =
      output_of_command("math", {"llama-3-8b", "--device", "h100-80g", "--tokens-per-second",
                                 "10000", "--checkpoint", "block"});
  const double peak = 989.4e12;
  REQUIRE(math.at("utilisation").size() == math.at("conventions").size() + 1);
  for (std::size_t i = 0; i < math.at("conventions").size(); ++i) {
    const double flops = math.at("conventions")[i].at("flops_per_token");
    CHECK(math.at("utilisation")[i].at("fraction").get<double>() ==
          doctest::Approx(10000 * flops / peak));
  }
  // HFU counts the recomputed forward pass too: more than MFU by the same convention.
  CHECK(math.at("utilisation").back().at("fraction") >
        math.at("utilisation")[math.at("conventions").size() - 1].at("fraction"));
}

TEST_CASE("the copies a layer keeps: about 20, the big products' results, its input alone") {
  const json math =
      output_of_command("math", {"llama-3-8b", "--device", "h100-80g", "--seq", "8192"});
  const json& none = math.at("activations").at(0);
  const json& matmuls = math.at("activations").at(1);
  const json& block = math.at("activations").at(2);
  // Norms' inputs and results 4, q and output 2, k and v 0.25 each, four of F/D = 3.5, and the
  // logsumexp of every head: 32 fp32 values for 4096 of 2 bytes; two fp32 rstd.
  CHECK(none.at("copies").get<double>() ==
        doctest::Approx(4 + 2 + 0.5 + 4 * 3.5 + 32 * 4 / 8192.0 + 2 * 4 / 8192.0).epsilon(1e-6));
  CHECK(matmuls.at("tensors").size() == 8);  // the input; q, k, v, o, gate, up, down
  CHECK(matmuls.at("copies").get<double>() == doctest::Approx(4 + 0.5 + 2 * 3.5));
  CHECK(block.at("tensors").size() == 1);
  CHECK(block.at("copies").get<double>() == doctest::Approx(1));
}

TEST_CASE("a step of generation is bound by memory, prefill by compute") {
  const json infer =
      output_of_command("infer", {"llama-3-8b", "--device", "h100-80g", "--seq", "4096"});
  CHECK(infer.at("decode").at("bound_by") == "memory");
  CHECK(infer.at("prefill").at("bound_by") == "compute");
  // Weights are read once per token: 8.03e9 less the embedding table, 2 bytes each, 3.352 TB/s.
  const double weights = 2.0 * (8030261248.0 - 128256.0 * 4096);
  const double cache = 131072.0 * (4096 + 1);
  CHECK(infer.at("decode").at("seconds").get<double>() ==
        doctest::Approx((weights + cache) / 3.352e12));
  CHECK(infer.at("kv_cache").at("per_token") == 131072);
  CHECK(infer.at("weights") == 2 * 8030261248);
}

}  // namespace
}  // namespace plimsoll
