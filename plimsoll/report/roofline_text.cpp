#include "plimsoll/report/roofline_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {

std::string bound_by(const plan::RooflinePoint& point) {
  return point.by_compute ? "compute" : "memory";
}

void add_point(Json& row, const std::optional<plan::RooflinePoint>& point) {
  row["seconds"] = point ? Json(point->seconds) : Json(nullptr);
  row["bound_by"] = point ? Json(bound_by(*point)) : Json(nullptr);
}

std::string device_roof(const hardware::Device* device, hardware::Arithmetic arithmetic,
                        const TextStyle& style) {
  if (device == nullptr) return "";
  const auto point = plan::ridge(*device, arithmetic);
  if (!point) {
    const std::string unknown =
        device->bandwidth.value ? fmt::format("its peak in {}", name(arithmetic)) : "its speed";
    return fmt::format("  {}: {} is not known, so there are no times\n", visible(device->name),
                       unknown);
  }
  const std::string text = fmt::format(
      "{}: {} {}, {}; below {:.1f} FLOP/B memory is the bound. Bounds from theoretical peaks.",
      visible(device->name), with_prefix(*device->peak(arithmetic).matmul(), "FLOP/s"),
      name(arithmetic), with_prefix(*device->bandwidth.value, "B/s"), *point);
  return "  " + wrapped(text, 2, 4, style.width) + "\n";
}

}  // namespace plimsoll::report
