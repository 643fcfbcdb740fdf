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

#include "plimsoll/formats/safetensors.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::report {

// Part of published - calculated.
struct DifferencePart {
  std::string name;
  std::string formula;  // may be empty
  std::int64_t count = 0;
};

struct PublishedCount {
  std::string file;  // empty: a number was given
  std::int64_t published = 0;
  std::int64_t difference = 0;  // published - calculated
  std::vector<DifferencePart> parts;
  std::int64_t unexplained = 0;  // difference - sum of parts
};

// Explains a number that somebody published for a model with `calculated` parameters.
PublishedCount explain_number(const network::NetworkSpec& spec, std::int64_t calculated,
                              std::int64_t published);

// The same for weights that have no spec: only rounding can be named.
PublishedCount explain_number(std::int64_t calculated, std::int64_t published);

// Compares a network's parameters with the tensors of weights files, by name and then by shape.
PublishedCount explain_weights(const network::Network& network,
                               std::span<const formats::TensorEntry> tensors, std::string file);

}  // namespace plimsoll::report
