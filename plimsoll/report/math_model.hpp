// What a model costs to train: products and bytes by operation and pass, conventions side by side,
// roofline, utilisation, experts, model states by recipe, and the tensors behind activation formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/load_shape.hpp"
#include "plimsoll/plan/cost.hpp"
#include "plimsoll/plan/layer_tensors.hpp"
#include "plimsoll/plan/model_states.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

// What a layer keeps under one checkpoint policy.
struct LayerCopies {
  std::string policy;
  std::vector<plan::LayerTensor> tensors;
  double copies = 0;  // of B T D e
};

struct StatesLine {
  std::string recipe;
  std::string meaning;
  std::vector<double> totals;  // bytes per rank in stages 0 to 3
};

// Model FLOPs per second over the device's peak: MFU. With what is computed again: HFU.
struct Utilisation {
  std::string convention;
  double fraction = 0;
};

struct ModelMath {
  plan::ModelShape shape;
  plan::Job job;
  std::vector<plan::CostRow> rows;  // forward, backward, the optimizer's pass
  std::vector<plan::TokenConvention> conventions;
  plan::ConventionFlops training;  // of one micro-batch, forward and backward
  double crossover = 0;            // tokens from which attention's square costs more than the rest
  std::optional<plan::ExpertFacts> experts;
  std::optional<plan::TimeBound> bound;
  double tokens_per_second = 0;  // per device, as given; 0: not given
  std::vector<Utilisation> utilisation;
  std::int64_t states_ranks = 0;
  std::vector<StatesLine> states;
  std::vector<LayerCopies> activations;  // empty for models without a timeline
};
// `tokens_per_second` of one device, 0 when unknown. HFU counts what checkpoints recompute; what a
// flash kernel computes again inside is in neither.
ModelMath model_math(const formats::LoadedShape& model, const plan::Job& job,
                     double tokens_per_second);

std::string model_math_text(const ModelMath& math, const TextStyle& style);
Json model_math_json(const ModelMath& math);  // schema plimsoll.math/1

}  // namespace plimsoll::report
