// Full-size models of every planned family: the parameters that transformers 5.24 has, and a plan.
#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/config.hpp"
#include "plimsoll/plan/plan.hpp"

#include "tests/unit/truth_files.hpp"

namespace plimsoll::test {
namespace {

namespace fs = std::filesystem;

// Files of tests/truth/hf/models whose model type can be planned.
std::vector<std::string> planned_files() {
  std::vector<std::string> files;
  const std::vector<std::string>& types = formats::planned_model_types();
  for (const auto& entry : fs::directory_iterator(PLIMSOLL_TRUTH_DIR "/hf/models")) {
    const std::string name = fmt::format("hf/models/{}", entry.path().filename().string());
    const nlohmann::json config = truth(name).at("config");
    const std::string type = config.value("model_type", "");
    if (std::find(types.begin(), types.end(), type) != types.end()) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

network::NetworkSpec read(const nlohmann::json& config) {
  const auto spec = formats::read_config(config.dump(), "config.json");
  REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : format_error(spec.error())));
  return *spec;
}

// Layer numbers, and those of heads, become {}.
std::string pattern(const std::string& name) {
  std::string result;
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    result += fmt::format("{}{}", begin == 0 ? "" : ".", number ? "{}" : part);
    begin = end + 1;
  }
  return result;
}

// "model.norm.weight [4096]" -> how often. GPT-2's linears are stored [in, out] there.
std::map<std::string, std::int64_t> our_patterns(const network::NetworkSpec& spec) {
  network::BuildOptions options;
  options.sequence = 1;
  std::map<std::string, std::int64_t> counts;
  for (const network::Parameter& p : network::build_network(spec, options).parameters) {
    const std::vector<std::int64_t> shape(p.shape.begin(), p.shape.end());
    ++counts[fmt::format("{} {}", pattern(p.name), nlohmann::json(shape).dump())];
  }
  return counts;
}

std::map<std::string, std::int64_t> their_patterns(const nlohmann::json& file) {
  std::map<std::string, std::int64_t> counts;
  for (const nlohmann::json& row : file.at("param_patterns")) {
    counts[fmt::format("{} {}", row.at(0).get<std::string>(), row.at(1).dump())] +=
        row.at(3).get<std::int64_t>();
  }
  return counts;
}

}  // namespace

TEST_CASE("every planned family: transformers' parameters by name, shape and number") {
  const std::vector<std::string> files = planned_files();
  CHECK(files.size() >= 35);
  for (const std::string& name : files) {
    CAPTURE(name);
    const nlohmann::json file = truth(name);
    const network::NetworkSpec spec = read(file.at("config"));
    std::int64_t total = 0;
    for (const network::ParameterTerm& term : parameter_terms(spec)) total += term.count;
    CHECK(total == file.at("params_unique").get<std::int64_t>());
    CHECK(total + tied_elements(spec) == file.at("params_ties_counted").get<std::int64_t>());
    if (spec.family == network::Family::kGpt2) continue;
    CHECK(our_patterns(spec) == their_patterns(file));
  }
}

TEST_CASE("every planned family at full size: a plan, within 50 ms") {
  for (const std::string& name : planned_files()) {
    CAPTURE(name);
    const network::NetworkSpec spec = read(truth(name).at("config"));
    plan::Job job;
    job.sequence = std::min<std::int64_t>(spec.positions, 4096);
    job.precision = plan::Precision::kMixed;
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const std::clock_t start = std::clock();
      const auto result = plan::make_plan(spec, job);
      best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
      REQUIRE_MESSAGE(result.has_value(), (result ? "" : format_error(result.error())));
      CHECK(result->parameters.all == truth(name).at("params_unique").get<std::int64_t>());
      CHECK(result->steady.peak.bytes > 0);
      CHECK(result->closed_form.has_value());
    }
#ifdef NDEBUG  // processor time of optimised code, the best of three
    CHECK(best < 0.050);
#endif
  }
}

}  // namespace plimsoll::test
