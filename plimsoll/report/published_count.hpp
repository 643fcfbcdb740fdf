// Why a published parameter count differs from ours: the difference taken apart into named terms.
//
// A bare number is explained by the ways in which people count differently: ties counted twice, a
// padded vocabulary, buffers, a forgotten embedding or norm, a rounded total. The fewest terms that
// give the difference exactly are taken; what no term explains is said. A weights file is compared
// tensor by tensor, so that nothing can stay unexplained.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/formats/safetensors.hpp"
#include "plimsoll/report/counting_habits.hpp"

namespace plimsoll::report {

struct PublishedCount {
  std::string file;  // empty: a number was given
  std::int64_t published = 0;
  std::int64_t difference = 0;  // published - calculated
  std::vector<DifferencePart> parts;
  std::int64_t unexplained = 0;  // difference - sum of parts
};

// Explains a number that somebody published for a model with `calculated` parameters.
PublishedCount explain_number(const formats::CountedModel& model, std::int64_t calculated,
                              std::int64_t published);

// The same for weights that have no model: only rounding can be named.
PublishedCount explain_number(std::int64_t calculated, std::int64_t published);

// Compares a model's parameters with the tensors of weights files: by name, then a layer's experts
// together (files often hold one tensor an expert), then by shape.
PublishedCount explain_weights(const formats::CountedModel& model,
                               std::span<const formats::TensorEntry> tensors, std::string file);

}  // namespace plimsoll::report
