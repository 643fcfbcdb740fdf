// plimsoll math: FLOPs, bytes, intensity and rooflines of products and of whole models.
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/formats/load_shape.hpp"
#include "plimsoll/report/math_model.hpp"
#include "plimsoll/report/math_product.hpp"

namespace plimsoll::cli {
namespace {

using plan::ProductKind;

std::optional<ProductKind> product_kind(const std::string& word) {
  for (const ProductKind kind :
       {ProductKind::kDot, ProductKind::kMatvec, ProductKind::kMatmul, ProductKind::kBatched}) {
    if (name(kind) == word) return kind;
  }
  return std::nullopt;
}

// "N P M" -> 3.
std::size_t size_count(ProductKind kind) {
  const std::string_view names = size_names(kind);
  return (names.size() + 1) / 2;
}

Result<std::vector<std::int64_t>> read_sizes(ProductKind kind,
                                             const std::vector<std::string>& words) {
  const std::string where = fmt::format("math {}", name(kind));
  if (words.size() != size_count(kind)) {
    return fail(where, fmt::format("{} sizes given, expected {}: {}", words.size(),
                                   size_count(kind), size_names(kind)));
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string size(size_names(kind).substr(2 * i, 1));
    const auto value = parse_whole(where + " " + size, words[i], 1, std::int64_t{1} << 40);
    if (!value) return tl::unexpected(value.error());
    sizes.push_back(*value);
  }
  return sizes;
}

Result<report::NumberFormat> read_format(const Given& given) {
  const std::string* text = given.find("--dtype");
  const std::string wanted = text == nullptr ? "bf16" : *text;
  std::vector<std::string> names;
  for (const report::NumberFormat& format : report::number_formats()) {
    if (format.name == wanted) return format;
    names.emplace_back(format.name);
  }
  return fail("--dtype", fmt::format("{}, expected {}", in_quotes(wanted), fmt::join(names, ", ")));
}

// Options that describe a job mean nothing to a single product.
Result<void> refuse_job_options(const Given& given) {
  for (const auto& [option, value] : given.values) {
    if (option == "--dtype" || option == "--device" || option == "--json") continue;
    return fail(option, "describes a model's job, and means nothing to a single product");
  }
  return {};
}

Result<Output> run_product(ProductKind kind, const Given& given, const TextStyle& style) {
  if (auto ok = refuse_job_options(given); !ok) return tl::unexpected(ok.error());
  report::ProductMath math;
  math.kind = kind;
  auto sizes = read_sizes(kind, given.further);
  if (!sizes) return tl::unexpected(sizes.error());
  math.sizes = *std::move(sizes);
  const auto format = read_format(given);
  if (!format) return tl::unexpected(format.error());
  math.format = *format;
  if (const std::string* device = given.find("--device"); device != nullptr && *device != "none") {
    const auto found = parse_device("--device", *device);
    if (!found) return tl::unexpected(found.error());
    math.device = *found;
  }
  if (given.has("--json")) return Output{report::json_text(report::product_json(math))};
  return Output{report::product_text(math, style)};
}

Result<double> read_throughput(const Given& given) {
  const std::string* text = given.find("--tokens-per-second");
  return text == nullptr ? 0.0 : parse_positive("--tokens-per-second", *text);
}

Result<Output> run_model(const Given& given, const TextStyle& style) {
  if (!given.further.empty()) {
    return fail(
        "math",
        fmt::format("unexpected argument {}, expected one MODEL", in_quotes(given.further[0])),
        "sizes belong to dot, matvec, matmul and batched");
  }
  if (given.has("--dtype")) {
    return fail("--dtype", "belongs to single products",
                "--precision says what a model computes in");
  }
  for (const char* option : {"--lora", "--freeze"}) {
    if (!given.has(option)) continue;
    return fail(option, "is not known to math, which counts a training step of the whole model",
                "plimsoll plan counts the FLOPs of frozen parts and adapters");
  }
  const auto model = formats::load_shape(given.positional);
  if (!model) return tl::unexpected(model.error());
  const auto job = make_job(given, *model);
  if (!job) return tl::unexpected(job.error());
  const auto throughput = read_throughput(given);
  if (!throughput) return tl::unexpected(throughput.error());
  const report::ModelMath math = report::model_math(*model, *job, *throughput);
  if (given.has("--json")) return Output{report::json_text(report::model_math_json(math))};
  return Output{report::model_math_text(math, style)};
}

Result<Output> run_math(const Given& given, const TextStyle& style) {
  if (const auto kind = product_kind(given.positional)) return run_product(*kind, given, style);
  return run_model(given, style);
}

}  // namespace

Command math_command() {
  Syntax syntax{
      "math",
      "FLOPs, bytes and rooflines: dot P, matvec N P, matmul N P M, batched G M N K, MODEL",
      "WHAT",
      job_options(),
      {"[SIZE...]"}};
  syntax.options.push_back(
      {"--dtype", "DTYPE", "of a single product: fp64, fp32, bf16, fp16, fp8, int8 (bf16)"});
  syntax.options.push_back(
      {"--tokens-per-second", "X", "of one device, as measured: gives MFU and HFU"});
  syntax.options.push_back({"--json", "", "JSON of schema plimsoll.math/1"});
  return {std::move(syntax), run_math};
}

}  // namespace plimsoll::cli
