// What of a model learns: parts that are frozen, and low-rank adapters beside frozen matrices.
//
// An adapter of rank r beside a matrix W [out, in] is two linear layers without bias, A [r, in] and
// B [out, r]: y = x W^T (+ bias) + scale (x A^T) B^T. B starts as zeros. With adapters everything
// else of the model is frozen: it gets no gradient and no optimizer state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/network/spec.hpp"

namespace plimsoll::network {

// The matrices of a transformer's layer.
enum class Matrix : std::uint8_t { kQ, kK, kV, kQkv, kOutput, kGate, kUp, kGateUp, kDown };
std::string_view name(Matrix matrix);
// Those that the layers of this model have; none for image networks.
std::vector<Matrix> matrices_of(const NetworkSpec& spec);

struct Lora {
  std::int64_t rank = 0;
  double scale = 1;             // alpha / rank
  std::vector<Matrix> targets;  // of every layer
  bool has(Matrix matrix) const;
  bool operator==(const Lora&) const = default;
};

enum class FreezeKind : std::uint8_t {
  kEmbeddings,  // token, position and type tables, and their norm
  kLayers,      // layers first .. last
  kHead,        // the final norm and the head; of a tied head the norm alone
  kName,        // parameters whose name is `text`, in which * stands for any characters
};

struct FreezeRule {
  FreezeKind kind = FreezeKind::kName;
  std::int64_t first = 0;  // kLayers, both included
  std::int64_t last = 0;
  std::string text;  // as it was given
  bool operator==(const FreezeRule&) const = default;
};

struct Parameter;
// `place` is the label under which the parameter was made: "embeddings", "head", or its layer's.
bool matches(const FreezeRule& rule, const Parameter& parameter, std::string_view place);

// Whether `name` is `pattern`, in which * stands for any characters.
bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace plimsoll::network
