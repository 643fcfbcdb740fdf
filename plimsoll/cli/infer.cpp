// plimsoll infer MODEL: weights, cache of keys and values, prefill and decode.
#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/formats/load_shape.hpp"
#include "plimsoll/report/inference.hpp"
#include "plimsoll/report/math_product.hpp"

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::int64_t kStandardTokens = 4096;

// Reads options one by one and keeps the first problem.
class InferenceReader {
 public:
  explicit InferenceReader(const Given& given) : given_(given) {}

  Result<report::Inference> read() {
    auto model = formats::load_shape(given_.positional);
    if (!model) return tl::unexpected(model.error());
    inference_.shape = std::move(model->shape);
    inference_.assumptions = std::move(model->assumptions);
    read_formats();
    read_sizes(model->spec.has_value());
    read_device();
    if (error_) return tl::unexpected<Error>(*error_);
    return std::move(inference_);
  }

 private:
  void refuse(Error error) {
    if (!error_) error_ = std::move(error);
  }

  void assume(const std::string& line) { inference_.assumptions.push_back(line); }

  std::int64_t whole(const std::string& option, std::int64_t standard) {
    const std::string* text = given_.find(option);
    if (text == nullptr) {
      assume(fmt::format("{} {}: not given", option.substr(2), standard));
      return standard;
    }
    const auto value = parse_whole(option, *text, 1, kMost);
    if (!value) refuse(value.error());
    return value.value_or(standard);
  }

  report::NumberFormat format(const std::string& option, const std::string& standard) {
    const std::string* text = given_.find(option);
    if (text == nullptr) assume(fmt::format("{} {}: not given", option.substr(2), standard));
    const std::string wanted = text == nullptr ? standard : *text;
    std::vector<std::string> names;
    for (const report::NumberFormat& one : report::number_formats()) {
      if (one.name == wanted) return one;
      names.emplace_back(one.name);
    }
    refuse({option, fmt::format("{}, expected {}", in_quotes(wanted), fmt::join(names, ", ")), ""});
    return report::number_formats().front();
  }

  void read_formats() {
    const report::NumberFormat weights = format("--dtype", "bf16");
    // int8 weights are unpacked: products run in 16 bits.
    const bool packed = weights.name == "int8";
    if (packed) assume("dtype int8: weights are stored so, products run in bf16");
    inference_.arithmetic = packed ? hardware::Arithmetic::kBf16 : weights.arithmetic;
    inference_.weight_dtype = weights.name;
    inference_.job.weight_item = weights.bytes;
    const std::string standard = weights.bytes >= 2 ? std::string(weights.name) : "bf16";
    const report::NumberFormat cache = format("--kv-dtype", standard);
    inference_.kv_dtype = cache.name;
    inference_.job.kv_item = cache.bytes;
  }

  void read_sizes(bool knows_positions) {
    plan::InferenceJob& job = inference_.job;
    job.batch = whole("--batch", 1);
    const std::int64_t positions = inference_.shape.positions;
    job.prompt =
        whole("--seq", positions > 0 ? std::min(positions, kStandardTokens) : kStandardTokens);
    job.context = whole("--context", job.prompt);
    const std::int64_t longest = std::max(job.prompt, job.context);
    if (knows_positions && positions > 0 && longest > positions) {
      assume(fmt::format("{} tokens: more than the {} positions that the config states", longest,
                         positions));
    }
  }

  void read_device() {
    const std::string* text = given_.find("--device");
    if (text != nullptr && *text != "none") {
      auto device = parse_device("--device", *text);
      if (device) inference_.device = *std::move(device);
      if (!device) refuse(device.error());
    }
    const std::string* reserve = given_.find("--reserve");
    if (reserve == nullptr) return;
    const auto bytes =
        *reserve == "0" ? Result<std::int64_t>(0) : parse_size("--reserve", *reserve);
    if (!bytes) return refuse(bytes.error());
    if (!inference_.device && *bytes > 0) {
      return refuse({"--reserve", "is of a device, expected --device", ""});
    }
    inference_.reserve = *bytes;
  }

  const Given& given_;
  report::Inference inference_;
  std::optional<Error> error_;
};

Result<Output> run_infer(const Given& given, const TextStyle& style) {
  auto inference = InferenceReader(given).read();
  if (!inference) return tl::unexpected(inference.error());
  report::compute(*inference);
  if (given.has("--json")) return Output{report::json_text(report::inference_json(*inference))};
  return Output{report::inference_text(*inference, style)};
}

}  // namespace

Command infer_command() {
  return {{"infer",
           "weights, KV cache, prefill and decode bounds",
           "MODEL",
           {{"--batch", "N", "rows (1)"},
            {"--seq", "N", "tokens of the prompt (the model's positions, at most 4096)"},
            {"--context", "N", "tokens in the cache when a step begins (the prompt's)"},
            {"--dtype", "DTYPE", "of weights: fp64, fp32, bf16, fp16, fp8, int8 (bf16)"},
            {"--kv-dtype", "DTYPE", "of the cache (the weights'; bf16 when they have 8 bits)"},
            {"--device", "NAME", "a name of `plimsoll devices`, or a size such as 24GiB (none)"},
            {"--reserve", "SIZE", "kept free on the device for its context (the device's)"},
            {"--json", "", "JSON of schema plimsoll.infer/1"}}},
          run_infer};
}

}  // namespace plimsoll::cli
