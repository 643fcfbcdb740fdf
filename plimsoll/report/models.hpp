// The models that plimsoll knows by name, with their sources.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

struct KnownModel {
  std::string name;
  std::string model_type;
  std::int64_t parameters = 0;
  std::int64_t positions = 0;
  std::string source;
};
std::vector<KnownModel> known_models();

std::string models_text(const std::vector<KnownModel>& models, const TextStyle& style);
Json models_json(const std::vector<KnownModel>& models);  // schema plimsoll.models/1

}  // namespace plimsoll::report
