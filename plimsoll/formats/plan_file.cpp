#include "plimsoll/formats/plan_file.hpp"

#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestPlan = 64U << 20U;
constexpr std::string_view kSchema = "plimsoll.plan/1";

class PlanReader {
 public:
  PlanReader(const json& plan, std::string where) : plan_(plan), where_(std::move(where)) {}

  Result<PlanFile> read() {
    read_schema();
    for (const char* part :
         {"model", "job", "posts", "tags", "ledger", "timeline", "memory", "flops", "fit"}) {
      expect(part, plan_.is_object() && plan_.contains(part) && plan_[part].is_object(),
             "an object");
    }
    expect("traffic", plan_.is_object() && plan_.contains("traffic") && plan_["traffic"].is_array(),
           "a list");
    if (!error_) read_parts();
    if (error_) return tl::unexpected<Error>(*error_);
    return std::move(file_);
  }

 private:
  void refuse(const std::string& path, std::string what) {
    if (!error_) {
      error_ =
          Error{json_where(where_, path), std::move(what), "plimsoll plan MODEL --json > FILE"};
    }
  }

  void expect(const std::string& part, bool as_expected, const char* expected) {
    if (as_expected) return;
    refuse("/" + part, fmt::format("no part of a plan, expected {}", expected));
  }

  void read_schema() {
    const bool given = plan_.is_object() && plan_.contains("schema");
    if (given && plan_["schema"] == kSchema) return;
    refuse(given ? "/schema" : "",
           given ? fmt::format("schema={}, expected {}", json_value_text(plan_["schema"]), kSchema)
                 : fmt::format("no plan, expected JSON of schema {}", kSchema));
  }

  void read_parts() {
    const json& model = plan_["model"];
    if (!model.contains("title") || !model["title"].is_string()) {
      return refuse("/model/title", "missing, expected a text");
    }
    file_.title = model["title"].get<std::string>();
    if (model.contains("parameters")) add("parameters", FigureUnit::kCount, model["parameters"]);
    read_settings();
    for (const char* part : {"posts", "tags", "ledger", "memory"}) {
      add(part, FigureUnit::kBytes, plan_[part]);
    }
    for (const char* step : {"first", "steady"}) read_step(step);
    add("flops", FigureUnit::kFlops, plan_["flops"]);
    read_traffic();
    const json& fit = plan_["fit"];
    if (fit.contains("largest_batch")) {
      add("fit.largest_batch", FigureUnit::kCount, fit["largest_batch"]);
    }
  }

  void read_settings() {
    for (const auto& [name, value] : plan_["job"].items()) {
      if (value.is_array()) continue;  // assumptions
      file_.settings.emplace_back(name,
                                  value.is_string() ? value.get<std::string>() : value.dump());
    }
  }

  void read_step(const std::string& step) {
    const json& timeline = plan_["timeline"];
    const bool known = timeline.contains(step) && timeline[step].is_object() &&
                       timeline[step].contains("peak") && timeline[step]["peak"].is_object() &&
                       timeline[step]["peak"].contains("bytes");
    if (!known) return refuse("/timeline/" + step, "no step of a plan, expected its peak");
    add("peak." + step, FigureUnit::kBytes, timeline[step]["peak"]["bytes"]);
  }

  void read_traffic() {
    for (const json& line : plan_["traffic"]) {
      const bool known = line.is_object() && line.contains("what") && line["what"].is_string() &&
                         line.contains("bytes");
      if (!known) return refuse("/traffic", "no line of traffic, expected what and bytes");
      add("traffic." + line["what"].get<std::string>(), FigureUnit::kBytes, line["bytes"]);
    }
  }

  // Whole numbers at `value` and below; unknown figures are null and texts are no figures.
  void add(const std::string& name, FigureUnit unit, const json& value) {
    if (value.is_object()) {
      for (const auto& [key, part] : value.items()) {
        const bool counts = key == "tensors" || key == "storages";
        add(name + "." + key, counts ? FigureUnit::kCount : unit, part);
      }
      return;
    }
    if (!value.is_number_integer()) return;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost) {
      return refuse("/" + name,
                    fmt::format("{}, expected at most 2^63 - 1", json_value_text(value)));
    }
    file_.figures.push_back({name, unit, value.get<std::int64_t>()});
  }

  static constexpr std::uint64_t kMost = INT64_MAX;

  const json& plan_;
  const std::string where_;
  PlanFile file_;
  std::optional<Error> error_;
};

}  // namespace

Result<PlanFile> read_plan_file(const std::filesystem::path& path) {
  const auto text = read_text_file(path, kLargestPlan);
  if (!text) return tl::unexpected(text.error());
  const auto plan = parse_json(*text, path.string());
  if (!plan) return tl::unexpected(plan.error());
  return PlanReader(*plan, path.string()).read();
}

}  // namespace plimsoll::formats
