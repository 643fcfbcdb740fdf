#include "plimsoll/report/json.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll::report {

std::string json_text(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

Json number_or_null(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace plimsoll::report
