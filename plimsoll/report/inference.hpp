// What inference needs: weights, the cache of keys and values, bounds of prefill and of a step of
// generation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/devices.hpp"
#include "plimsoll/plan/inference.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

struct InferencePart {
  std::string name;  // prefill, decode, without a cache
  plan::InferencePass pass;
  std::int64_t tokens = 0;                   // that it yields or reads
  std::optional<plan::RooflinePoint> bound;  // none without a device's figures
};

struct Inference {
  plan::ModelShape shape;
  plan::InferenceJob job;
  std::string weight_dtype;
  std::string kv_dtype;
  hardware::Arithmetic arithmetic = hardware::Arithmetic::kBf16;
  formats::DevicePtr device;
  std::optional<std::int64_t> reserve;
  std::vector<std::string> assumptions;

  std::int64_t weights = 0;  // bytes
  plan::KvCache cache;
  std::vector<InferencePart> parts;
  // Rows of the batch whose caches fit beside the weights; none without a device.
  std::optional<std::int64_t> largest_batch;
};
// Fills what follows from the fields above `weights`.
void compute(Inference& inference);

std::string inference_text(const Inference& inference, const TextStyle& style);
Json inference_json(const Inference& inference);  // schema plimsoll.infer/1

}  // namespace plimsoll::report
