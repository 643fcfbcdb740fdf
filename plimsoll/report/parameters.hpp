// How many parameters a model has, term by term, and why a published count differs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/formats/safetensors.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/report/json.hpp"
#include "plimsoll/report/published_count.hpp"

namespace plimsoll::report {

// Of a model, or of weights files: those have no terms, and their ties and buffers are unknown.
struct Parameters {
  std::string title;
  std::int64_t count = 0;  // elements, ties counted once; packed dtypes not counted
  std::int64_t tensors = 0;
  std::optional<std::int64_t> ties_counted;
  std::optional<std::int64_t> active;              // what one token's forward pass uses
  std::optional<std::int64_t> persistent_buffers;  // elements that a state dict holds beside them
  std::optional<std::int64_t> other_buffers;       // elements that live in memory alone
  std::vector<std::vector<std::string>> tied;      // names of one and the same parameter
  // By formula where the model's network is known, else by role, with the shapes that are summed.
  std::vector<network::ParameterTerm> terms;
  bool by_role = false;
  std::vector<formats::DtypeCount> dtypes;  // weights files only
  std::optional<PublishedCount> against;
  // With adapters or frozen parts: of the run's network, whose `all` counts adapters besides.
  std::optional<network::ParameterCount> learning;
  std::vector<std::string> assumptions;
};

Parameters parameters_of(const formats::CountedModel& model);
Parameters parameters_of(const network::NetworkSpec& spec);  // by formula, without names
Parameters parameters_of(std::string title, const std::vector<formats::TensorEntry>& tensors);

std::string parameters_text(const Parameters& parameters, const TextStyle& style);
Json parameters_json(const Parameters& parameters);  // schema plimsoll.params/1

}  // namespace plimsoll::report
