#include "plimsoll/report/models.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.hpp"
#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/formats/builtin_models.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/report/parameters.hpp"

namespace plimsoll::report {
namespace {

constexpr const char* kInlineModels[] = {
    "minigpt:d=128,L=4,V=1000,s=64,heads=4",
    "cnn:channels=16-24-32,image=32,classes=10[,norm=batch][,bias=off][,relu=inplace][,pool=last]",
};

constexpr std::string_view kPublished = "published config of ";

// "published config of gpt2; what was left out" -> "gpt2".
std::string short_source(std::string_view source) {
  if (source.starts_with(kPublished)) source.remove_prefix(kPublished.size());
  return std::string(source.substr(0, source.find(';')));
}

}  // namespace

std::vector<KnownModel> known_models() {
  std::vector<KnownModel> models;
  for (const formats::BuiltinModel& builtin : formats::builtin_models()) {
    const std::string name(builtin.name);
    const auto spec = formats::read_config(builtin.config, name);
    check(spec.has_value(), "a built-in model does not load");
    models.push_back(
        {name, spec->model_type, parameters_of(*spec).count, spec->positions, builtin.source});
  }
  return models;
}

std::string models_text(const std::vector<KnownModel>& models, const TextStyle& style) {
  Table table({{"name", Align::kLeft},
               {"type", Align::kLeft},
               {"parameters"},
               {"", Align::kRight},
               {"positions"},
               {std::string(kPublished), Align::kWrap}},
              0);
  for (const KnownModel& model : models) {
    table.row({model.name, model.model_type, grouped(model.parameters),
               human_count(model.parameters), grouped(model.positions),
               short_source(model.source)});
  }
  std::string text = table.text(style) + "\nWritten on the command line:\n";
  for (const char* inline_model : kInlineModels) text += fmt::format("  {}\n", inline_model);
  return text;
}

Json models_json(const std::vector<KnownModel>& models) {
  Json json;
  json["schema"] = "plimsoll.models/1";
  json["models"] = Json::array();
  for (const KnownModel& model : models) {
    json["models"].push_back({{"name", model.name},
                              {"model_type", model.model_type},
                              {"parameters", model.parameters},
                              {"positions", model.positions},
                              {"source", model.source}});
  }
  json["inline"] = kInlineModels;
  return json;
}

}  // namespace plimsoll::report
