// The curve as data for the page's cursor.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/report/page/chart.hpp"

namespace plimsoll::report {
namespace {

using timeline::Instant;

// Texts, each once, in the order in which they appear.
class Names {
 public:
  std::size_t index(const std::string& name) {
    const auto [place, is_new] = places_.emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return place->second;
  }
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> names_;
};

Json bytes_column(const timeline::Curve& curve, timeline::Tag tag) {
  Json column = Json::array();
  for (const Instant& point : curve.points) {
    column.push_back(fmt::format("{}", point.alive[static_cast<std::size_t>(tag)]));
  }
  return column;
}

}  // namespace

Json curve_json(const StepRecord& record) {
  const timeline::Curve& curve = record.curve;
  Names operations;
  Json json;
  json["step"] = name(record.shown);
  json["events"] = curve.events;
  json["peak"] = curve.peak;
  json["phases"] = record.phases.names;
  for (const Instant& point : curve.points) {
    const std::string operation =
        made_by(record.operations.at(point.operation), record.phases.keys[point.phase].phase);
    json["event"].push_back(point.event);
    json["phase"].push_back(point.phase);
    json["operation"].push_back(operations.index(operation));
    json["total"].push_back(fmt::format("{}", point.bytes));
  }
  json["operations"] = operations.all();
  for (const timeline::Tag tag : stacked_tags(curve)) {
    json["bytes"][std::string(timeline::name(tag))] = bytes_column(curve, tag);
  }
  return json;
}

}  // namespace plimsoll::report
