#include "plimsoll/report/math_product.hpp"

#include <array>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"
#include "plimsoll/plan/cost.hpp"
#include "plimsoll/report/roofline_text.hpp"

namespace plimsoll::report {
namespace {

using plan::ProductPass;

constexpr std::array<std::int64_t, 4> kScales = {1, 2, 4, 16};

std::optional<plan::RooflinePoint> point_of(const ProductMath& math, const ProductPass& pass) {
  if (!math.device) return std::nullopt;
  return plan::roofline(*math.device, math.format.arithmetic, static_cast<double>(pass.flops),
                        static_cast<double>(pass.bytes(math.format.bytes)));
}

// The intensity of forward with all sizes scaled; none where 64 bits end.
std::optional<ProductPass> scaled_forward(const ProductMath& math, std::int64_t scale) {
  try {
    return plan::product_passes(math.kind, math.sizes, scale).front();
  } catch (const OverflowError&) {
    return std::nullopt;
  }
}

// From here on a line has no room for all digits.
constexpr std::int64_t kUnreadable = 1'000'000'000'000'000;

std::string flops_text(std::int64_t flops) {
  return flops < kUnreadable ? grouped(flops) : human(Flops{flops});
}

std::string bytes_text(std::int64_t bytes) {
  return bytes < kUnreadable ? grouped(bytes) : human(Bytes{bytes});
}

std::string pass_table(const ProductMath& math, const TextStyle& style) {
  Table table({{"pass", Align::kLeft},
               {"FLOPs"},
               {"read"},
               {"written"},
               {"FLOP/B"},
               {math.device ? "at least" : ""},
               {"", Align::kLeft}});
  for (const ProductPass& pass : plan::product_passes(math.kind, math.sizes)) {
    const auto point = point_of(math, pass);
    table.row({pass.pass, flops_text(pass.flops),
               bytes_text(checked_mul(pass.elements_read, math.format.bytes)),
               bytes_text(checked_mul(pass.elements_written, math.format.bytes)),
               fmt::format("{:.3f}", pass.intensity(math.format.bytes)),
               point ? with_prefix(point->seconds, "s") : "", point ? bound_by(*point) : ""});
  }
  return table.text(style);
}

std::string growth_table(const ProductMath& math, const TextStyle& style) {
  Table table({{"all sizes", Align::kLeft}, {"FLOPs"}, {"bytes"}, {"FLOP/B"}});
  for (const std::int64_t scale : kScales) {
    const auto pass = scaled_forward(math, scale);
    if (!pass) continue;
    table.row({fmt::format("x {}", scale), flops_text(pass->flops),
               bytes_text(pass->bytes(math.format.bytes)),
               fmt::format("{:.3f}", pass->intensity(math.format.bytes))});
  }
  return table.text(style);
}

std::string sizes_text(const ProductMath& math) {
  std::string text;
  for (const std::int64_t size : math.sizes) text += " " + grouped(size);
  return text;
}

Json pass_json(const ProductMath& math, const ProductPass& pass) {
  const auto point = point_of(math, pass);
  Json row;
  row["operation"] = name(math.kind);
  row["pass"] = pass.pass;
  row["formula"] = pass.formula;
  row["flops"] = pass.flops;
  row["bytes"] = pass.bytes(math.format.bytes);
  row["bytes_read"] = checked_mul(pass.elements_read, math.format.bytes);
  row["bytes_written"] = checked_mul(pass.elements_written, math.format.bytes);
  row["intensity"] = pass.intensity(math.format.bytes);
  add_point(row, point);
  return row;
}

}  // namespace

std::span<const NumberFormat> number_formats() {
  using hardware::Arithmetic;
  static constexpr std::array<NumberFormat, 6> kFormats = {{{"fp64", 8, Arithmetic::kFp64},
                                                            {"fp32", 4, Arithmetic::kFp32},
                                                            {"bf16", 2, Arithmetic::kBf16},
                                                            {"fp16", 2, Arithmetic::kFp16},
                                                            {"fp8", 1, Arithmetic::kFp8},
                                                            {"int8", 1, Arithmetic::kInt8}}};
  return kFormats;
}

std::string product_text(const ProductMath& math, const TextStyle& style) {
  const auto passes = plan::product_passes(math.kind, math.sizes);
  const std::string head =
      fmt::format("{} {} ={} in {}: {} FLOPs, {} elements read, {} written", name(math.kind),
                  size_names(math.kind), sizes_text(math), math.format.name, passes[0].formula,
                  passes[0].read_formula, passes[0].written_formula);
  std::string text = wrapped(head, 0, 2, style.width) + "\n";
  text += pass_table(math, style);
  text += device_roof(math.device.get(), math.format.arithmetic, style);
  text += "\n" + bold("Intensity of forward", style) + ", which " + std::string(growth(math.kind)) +
          "\n";
  return text + growth_table(math, style);
}

Json product_json(const ProductMath& math) {
  Json json;
  json["schema"] = "plimsoll.math/1";
  json["what"] = name(math.kind);
  json["sizes"] = math.sizes;
  json["dtype"] = math.format.name;
  json["device"] = math.device ? Json(math.device->name) : Json(nullptr);
  json["rows"] = Json::array();
  for (const ProductPass& pass : plan::product_passes(math.kind, math.sizes)) {
    json["rows"].push_back(pass_json(math, pass));
  }
  json["growth"] = {{"says", growth(math.kind)}, {"rows", Json::array()}};
  for (const std::int64_t scale : kScales) {
    const auto pass = scaled_forward(math, scale);
    if (!pass) continue;
    json["growth"]["rows"].push_back(
        {{"scale", scale}, {"intensity", pass->intensity(math.format.bytes)}});
  }
  return json;
}

}  // namespace plimsoll::report
