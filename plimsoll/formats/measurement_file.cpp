#include "plimsoll/formats/measurement_file.hpp"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestMeasurement = 64U << 20U;
constexpr std::string_view kMeasureSchema = "plimsoll.measure/1";

class MeasurementReader {
 public:
  MeasurementReader(const json& root, std::string where) : root_(root), where_(std::move(where)) {}

  Result<MeasurementFile> read() {
    read_schema();
    file_.model = settings("model");
    file_.job = settings("job");
    read_lines();
    file_.dry_reason = reason("dry");
    file_.measured_reason = reason("measured");
    if (error_) return tl::unexpected<Error>(*error_);
    return std::move(file_);
  }

 private:
  void refuse(const std::string& path, std::string what) {
    if (error_) return;
    error_ =
        Error{json_where(where_, path), std::move(what), "plimsoll measure MODEL --json > FILE"};
  }

  // The member, or null; anything but an object has none.
  static const json& member(const json& object, const char* key) {
    static const json kNothing;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found == object.end() ? kNothing : *found;
  }

  void read_schema() {
    const json& schema = member(root_, "schema");
    if (schema == kMeasureSchema) return;
    refuse(schema.is_null() ? "" : "/schema",
           schema.is_null()
               ? fmt::format("no measurement, expected JSON of schema {}", kMeasureSchema)
               : fmt::format("schema={}, expected {}", json_value_text(schema), kMeasureSchema));
  }

  std::vector<std::pair<std::string, std::string>> settings(const char* part) {
    std::vector<std::pair<std::string, std::string>> result;
    const json& object = member(root_, part);
    if (!object.is_object()) refuse(std::string("/") + part, "missing, expected an object");
    for (const auto& [key, value] : object.items()) {
      if (!value.is_structured()) result.emplace_back(key, value.dump());
    }
    return result;
  }

  std::string reason(const char* column) {
    const json& text = member(member(root_, "reason"), column);
    return text.is_string() ? text.get<std::string>() : "";
  }

  void read_lines() {
    const json& rows = member(root_, "rows");
    if (!rows.is_array()) return refuse("/rows", "missing, expected a list");
    for (const json& row : rows) read_line(row);
  }

  void read_line(const json& row) {
    const std::string place = fmt::format("/rows/{}", file_.lines.size());
    const json& name = member(row, "line");
    if (!name.is_string()) return refuse(place + "/line", "missing, expected a text");
    MeasuredLine line;
    line.line = name.get<std::string>();
    line.bytes = member(row, "unit") != "count";
    const auto calculated = figure(row, "calculated", place);
    if (!calculated) return refuse(place + "/calculated", "missing, expected a whole number");
    line.calculated = *calculated;
    line.dry = figure(row, "dry", place);
    line.measured = figure(row, "measured", place);
    const json& cause = member(row, "cause");
    if (cause.is_string()) line.cause = cause.get<std::string>();
    file_.lines.push_back(std::move(line));
  }

  std::optional<std::int64_t> figure(const json& row, const char* key, const std::string& place) {
    const json& value = member(row, key);
    if (value.is_null()) return std::nullopt;
    const bool whole = value.is_number_integer() && value >= 0 &&
                       (!value.is_number_unsigned() || value.get<std::uint64_t>() <= kMost);
    if (whole) return value.get<std::int64_t>();
    refuse(place + "/" + key,
           fmt::format("{}, expected a whole number up to 2^63 - 1", json_value_text(value)));
    return std::nullopt;
  }

  static constexpr std::uint64_t kMost = INT64_MAX;

  const json& root_;
  const std::string where_;
  MeasurementFile file_;
  std::optional<Error> error_;
};

}  // namespace

Result<MeasurementFile> read_measurement_file(const std::filesystem::path& path) {
  const auto text = read_text_file(path, kLargestMeasurement);
  if (!text) return tl::unexpected(text.error());
  const auto root = parse_json(*text, path.string());
  if (!root) return tl::unexpected(root.error());
  return MeasurementReader(*root, path.string()).read();
}

}  // namespace plimsoll::formats
