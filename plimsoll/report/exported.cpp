#include "plimsoll/report/exported.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {

std::string export_text(const Export& done, const TextStyle& style) {
  const checkpoint::Exported& e = done.exported;
  std::string text =
      fmt::format("{}: step {} of {}\n", visible(done.out), e.step, visible(e.checkpoint));
  Table table({{"", Align::kLeft}, {"", Align::kWrap}});
  table.row({"model.safetensors",
             fmt::format("{} tensors, {} parameters, {}, {} bytes", grouped(e.tensors),
                         grouped(e.parameters), e.dtype, grouped(e.bytes))});
  if (e.zeros > 0) {
    table.row({"", fmt::format("{} of them are zeros: biases that transformers has and this model "
                               "does without",
                               grouped(e.zeros))});
  }
  table.row({"config.json", "what transformers builds the same function from"});
  for (const checkpoint::Skipped& skipped : done.skipped) {
    table.row({"skipped", visible(skipped.folder + ": " + skipped.reason)});
  }
  return text + table.text(style);
}

Json export_json(const Export& done) {
  const checkpoint::Exported& e = done.exported;
  Json json;
  json["schema"] = "plimsoll.export/1";
  json["out"] = done.out;
  json["checkpoint"] = e.checkpoint;
  json["step"] = e.step;
  json["tensors"] = e.tensors;
  json["parameters"] = e.parameters;
  json["zeros"] = e.zeros;
  json["dtype"] = e.dtype;
  json["bytes"] = e.bytes;
  json["skipped"] = Json::array();
  for (const checkpoint::Skipped& skipped : done.skipped) {
    json["skipped"].push_back({{"folder", skipped.folder}, {"reason", skipped.reason}});
  }
  return json;
}

}  // namespace plimsoll::report
