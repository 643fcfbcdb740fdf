// Pieces that the readers of model types share. A reader is a list of keys: it takes what the class
// of transformers holds (class_config.hpp) and says what it means as sizes and architecture.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "plimsoll/formats/config_reader.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::formats {

// Which config key a field of the spec came from, so that validate()'s complaint names the key.
using FieldKeys = std::span<const std::pair<std::string_view, std::string_view>>;

struct ModelType {
  std::string_view name;
  network::NetworkSpec (*read)(ConfigReader&);
  FieldKeys keys;
};

// By kin: llama and what differs from it in a few values; gemma and cohere; GPTs; falcon and bloom;
// encoders.
std::span<const ModelType> llama_types();
std::span<const ModelType> gemma_types();
std::span<const ModelType> gpt_types();
std::span<const ModelType> falcon_types();
std::span<const ModelType> bert_types();

// Keys of classes that name sizes as llama's does.
FieldKeys llama_keys();

// vocab_size, hidden_size, num_hidden_layers, heads, intermediate_size, max_position_embeddings,
// tie_word_embeddings and attention_dropout, into a spec of family `decoder`.
network::NetworkSpec read_common_sizes(ConfigReader& reader);

// num_attention_heads, num_key_value_heads and head_dim. A class may lack the last two: then there
// are as many key/value heads, of the width's share.
void read_heads(ConfigReader& reader, network::NetworkSpec& spec);

// Sets the activation and whether its result is squared.
void read_activation(ConfigReader& reader, network::NetworkSpec& spec, std::string_view key);

// Theta of all layers, or of the kinds of layers that have their own, and the turned part of a head.
// Needs head_dim and layers; read_layer_types() before it where a class has them.
void read_rotary(ConfigReader& reader, network::NetworkSpec& spec);

// The same window for every layer, when sliding_window is set and shorter than the positions.
void read_window(ConfigReader& reader, network::NetworkSpec& spec);

// layer_types: layers of sliding attention get the window.
void read_layer_types(ConfigReader& reader, network::NetworkSpec& spec);

// Whether there are so few layers that facts can be kept of each; validate() refuses more.
bool has_layer_facts(const network::NetworkSpec& spec);

// Is this layer one of sliding attention?
bool slides(ConfigReader& reader, std::int64_t layer);

// The largest of several probabilities becomes config_dropout.
void read_dropouts(ConfigReader& reader, network::NetworkSpec& spec,
                   std::initializer_list<const char*> keys);

// A LayerNorm with this key's epsilon.
void use_layer_norm(network::NetworkSpec& spec, double eps, bool bias = true);

}  // namespace plimsoll::formats
