// Products as numbers: FLOPs, bytes, intensity, how it grows, and the roofline of a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/devices.hpp"
#include "plimsoll/plan/products.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

// A number format of operands: more than tensors of a job can have.
struct NumberFormat {
  std::string_view name;  // "bf16"
  std::int64_t bytes = 2;
  hardware::Arithmetic arithmetic = hardware::Arithmetic::kBf16;
};
std::span<const NumberFormat> number_formats();

struct ProductMath {
  plan::ProductKind kind = plan::ProductKind::kDot;
  std::vector<std::int64_t> sizes;
  NumberFormat format;
  formats::DevicePtr device;  // null: no times
};

std::string product_text(const ProductMath& math, const TextStyle& style);
Json product_json(const ProductMath& math);  // schema plimsoll.math/1

}  // namespace plimsoll::report
