// BERT and RoBERTa, trained on masked tokens.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "plimsoll/formats/config_parts.hpp"

namespace plimsoll::formats {
namespace {

using network::NetworkSpec;

NetworkSpec read_bert(ConfigReader& reader) {
  NetworkSpec spec;
  spec.family = network::Family::kEncoder;
  spec.architecture = network::bert_architecture();
  spec.vocabulary = reader.size("vocab_size");
  spec.width = reader.size("hidden_size");
  spec.layers = reader.size("num_hidden_layers");
  spec.heads = spec.kv_heads = reader.size("num_attention_heads");
  spec.head_dim = spec.width / spec.heads;
  if (spec.width % spec.heads != 0) {
    reader.refuse("/num_attention_heads", "does not divide hidden_size");
  }
  spec.feed_forward = reader.size("intermediate_size");
  spec.positions = reader.size("max_position_embeddings");
  spec.architecture.token_types = reader.size("type_vocab_size");
  spec.tied_head = reader.noted_flag("tie_word_embeddings");
  read_activation(reader, spec, "hidden_act");
  spec.norm_eps = reader.positive("layer_norm_eps");
  spec.attention_bias = spec.mlp_bias = true;
  for (const char* key : {"hidden_dropout_prob", "attention_probs_dropout_prob"}) {
    spec.config_dropout = std::max(spec.config_dropout, reader.probability(key));
  }
  if (reader.flag("is_decoder") || reader.flag("add_cross_attention")) {
    reader.refuse("/is_decoder", "true, expected an encoder trained on masked tokens");
  }
  reader.assume("targets: every token, as if all were masked");
  return spec;
}

// Positions begin behind the padding token's row.
NetworkSpec read_roberta(ConfigReader& reader) {
  NetworkSpec spec = read_bert(reader);
  const bool padded = reader.complete("pad_token_id") != nullptr;
  const std::int64_t rows_before = padded ? reader.count("pad_token_id") + 1 : 1;
  spec.architecture.position_offset = rows_before;
  spec.positions = std::max<std::int64_t>(spec.positions - rows_before, 1);
  if (!spec.tied_head) {
    reader.refuse(
        "/tie_word_embeddings",
        "false, expected true: an untied head has a bias that nothing reads, which is not "
        "planned");
  }
  return spec;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kBertKeys = {{
    {"width", "hidden_size"},
    {"layers", "num_hidden_layers"},
    {"heads", "num_attention_heads"},
    {"head_dim", "num_attention_heads"},
    {"feed_forward", "intermediate_size"},
    {"vocabulary", "vocab_size"},
    {"positions", "max_position_embeddings"},
    {"activation", "hidden_act"},
    {"norm_eps", "layer_norm_eps"},
    {"token_types", "type_vocab_size"},
}};

}  // namespace

std::span<const ModelType> bert_types() {
  static const std::array<ModelType, 2> kTypes = {{
      {"bert", read_bert, kBertKeys},
      {"roberta", read_roberta, kBertKeys},
  }};
  return kTypes;
}

}  // namespace plimsoll::formats
