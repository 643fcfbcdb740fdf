// NetworkSpec: what a config says about a model, in one vocabulary for all families.
//
// Letters: D width, F feed-forward width, L layers, N query heads, K key/value heads, H head size,
// V vocabulary, T positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/architecture.hpp"
#include "plimsoll/network/operation.hpp"

namespace plimsoll::network {

enum class Family : std::uint8_t {
  kMiniGpt,  // inline: pre-norm GPT, fused qkv, no biases, tied head
  kGpt2,     // learned positions, LayerNorm, biases, tied head
  kLlama,    // RMSNorm, rotary positions, grouped heads, gated MLP (llama, mistral)
  kCnn,      // 3x3 convolutions
  kDecoder,  // any other causal language model: NetworkSpec::architecture says what it is
  kEncoder,  // bert and its relatives, trained on masked tokens
};
std::string_view name(Family family);

// Whose code runs the model.
enum class Semantics : std::uint8_t {
  kPlimsoll,     // this engine's operations
  kHuggingFace,  // the composite operations, casts and copies of transformers
};
std::string_view name(Semantics semantics);

struct NetworkSpec {
  Family family = Family::kLlama;
  std::string model_type;  // "llama", "gpt2", ...: as the config says
  std::string title;       // what the user called it

  std::int64_t width = 0;         // D
  std::int64_t layers = 0;        // L
  std::int64_t heads = 0;         // N
  std::int64_t kv_heads = 0;      // K
  std::int64_t head_dim = 0;      // H
  std::int64_t feed_forward = 0;  // F
  std::int64_t vocabulary = 0;    // V
  std::int64_t positions = 0;     // T: learned positions, or what the config says a model can read
  bool tied_head = true;
  bool attention_bias = false;  // biases of q, k, v and the output projection
  bool mlp_bias = false;        // biases of the MLP's linears
  OpKind activation = OpKind::kGelu;
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  double config_dropout = 0;  // what the config asks for; jobs say what is used

  Architecture architecture;            // of transformers; the default is llama's
  std::vector<LayerFacts> layer_facts;  // by layer; empty: all layers are alike
  // Facts of one layer, its theta resolved.
  LayerFacts layer(std::int64_t index) const;

  // cnn
  std::vector<std::int64_t> channels;
  std::int64_t image = 0;
  std::int64_t classes = 0;
  bool batch_norm = false;
  bool conv_bias = true;
  bool relu_in_place = false;
  bool pool_last = false;

  std::vector<std::string> assumptions;  // defaults taken because the config is silent

  bool operator==(const NetworkSpec&) const = default;
};

// Sizes positive, heads dividing, ...: the first problem as an Error whose `where` is the field.
Result<void> validate(const NetworkSpec& spec);

// Elements of parameters that have two names in the state dict: what counting ties twice adds.
std::int64_t tied_elements(const NetworkSpec& spec);

// One family of parameters, for people: how many, and by which formula.
struct ParameterTerm {
  std::string name;
  std::string formula;      // in the letters above
  std::string substituted;  // with numbers
  std::int64_t count = 0;
};

// The parameter count term by term; the sum is the exact number of elements, ties counted once.
std::vector<ParameterTerm> parameter_terms(const NetworkSpec& spec);

}  // namespace plimsoll::network
