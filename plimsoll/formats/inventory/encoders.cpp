// BERT and its relatives as masked language models, DeBERTa as a classifier.
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/class_keys.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"
#include "plimsoll/formats/inventory/labels.hpp"
#include "plimsoll/formats/rope_parameters.hpp"

namespace plimsoll::formats {
namespace {

struct Encoder {
  std::int64_t vocabulary = 1;    // V
  std::int64_t width = 1;         // D
  std::int64_t layers = 1;        // L
  std::int64_t feed_forward = 1;  // F
  std::int64_t positions = 1;     // T
};

Encoder read_encoder(ConfigReader& reader) {
  Encoder s;
  s.vocabulary = reader.size("vocab_size");
  s.width = reader.size("hidden_size");
  s.layers = reader.layers("num_hidden_layers");
  s.feed_forward = reader.size("intermediate_size");
  s.positions = reader.size("max_position_embeddings");
  if (s.width % reader.size("num_attention_heads") != 0) {
    reader.refuse_key("num_attention_heads",
                      fmt::format("does not divide hidden_size {}", s.width));
  }
  return s;
}

void bert_embeddings(ConfigReader& reader, InventoryBuilder& g, const Encoder& s,
                     std::int64_t width) {
  g.embedding("word_embeddings", s.vocabulary, width, ParameterRole::kTokenEmbedding);
  g.embedding("position_embeddings", s.positions, width, ParameterRole::kPositionEmbedding);
  g.embedding("token_type_embeddings", reader.size("type_vocab_size"), width,
              ParameterRole::kOtherEmbedding);
  g.norm("LayerNorm", width, true);
  g.buffer("position_ids", {1, s.positions});
  g.buffer("token_type_ids", {1, s.positions});
}

// `query`, `key` and `value` are what the linears are called.
void bert_layer(InventoryBuilder& g, const Encoder& s, std::string_view query, std::string_view key,
                std::string_view value) {
  g.role(ParameterRole::kAttention);
  for (const std::string_view name : {query, key, value}) {
    g.linear(fmt::format("attention.self.{}", name), s.width, s.width, true);
  }
  g.linear("attention.output.dense", s.width, s.width, true);
  g.norm("attention.output.LayerNorm", s.width, true);
  g.role(ParameterRole::kMlp);
  g.linear("intermediate.dense", s.feed_forward, s.width, true);
  g.linear("output.dense", s.width, s.feed_forward, true);
  g.norm("output.LayerNorm", s.width, true);
}

// A head of one linear and a norm before the (tied) vocabulary matrix, and a bias with two names.
struct MaskedHead {
  std::string_view bias;
  std::string_view dense;
  std::string_view norm;
  std::string_view decoder;
  std::string_view embedding;
};

void write_masked_head(ConfigReader& reader, InventoryBuilder& g, const Encoder& s,
                       std::int64_t width, const MaskedHead& head) {
  g.enter("");
  g.role(ParameterRole::kHead);
  g.tensor(head.bias, {s.vocabulary});
  g.linear(head.dense, width, s.width, true);
  g.norm(head.norm, width, true);
  const std::string matrix = fmt::format("{}.weight", head.decoder);
  const std::string second_bias = fmt::format("{}.bias", head.decoder);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie(fmt::format("{}.weight", head.embedding), matrix);
    g.tie(head.bias, second_bias);
  } else {
    g.tensor(matrix, {s.vocabulary, width});
    g.tensor(second_bias, {s.vocabulary});
  }
}

void refuse_decoder(ConfigReader& reader) {
  if (reader.flag("add_cross_attention")) {
    reader.refuse_key("add_cross_attention",
                      "true, expected false: cross-attention is not counted");
  }
}

void write_bert(ConfigReader& reader, InventoryBuilder& g, const std::string& name,
                const MaskedHead& head) {
  const Encoder s = read_encoder(reader);
  refuse_decoder(reader);
  g.enter(name + ".embeddings.");
  bert_embeddings(reader, g, s, s.width);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("{}.encoder.layer.{}.", name, i), i);
    bert_layer(g, s, "query", "key", "value");
  }
  write_masked_head(reader, g, s, s.width, head);
}

void bert(ConfigReader& reader, InventoryBuilder& g) {
  write_bert(reader, g, "bert",
             {"cls.predictions.bias", "cls.predictions.transform.dense",
              "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
              "bert.embeddings.word_embeddings"});
}

void roberta(ConfigReader& reader, InventoryBuilder& g) {
  write_bert(reader, g, "roberta",
             {"lm_head.bias", "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder",
              "roberta.embeddings.word_embeddings"});
}

// All layers of a group are one and the same.
void albert(ConfigReader& reader, InventoryBuilder& g) {
  const Encoder s = read_encoder(reader);
  const std::int64_t embedded = reader.size("embedding_size");
  const std::int64_t groups = reader.layers("num_hidden_groups");
  const std::int64_t inner = reader.layers("inner_group_num");
  if (groups * inner > kMostDerivedLayers) {
    reader.refuse_key("inner_group_num", fmt::format("{} layers in each of {} groups, expected at "
                                                     "most {} in all",
                                                     inner, groups, kMostDerivedLayers));
    return;
  }
  g.enter("albert.embeddings.");
  bert_embeddings(reader, g, s, embedded);
  g.enter("albert.encoder.");
  g.role(ParameterRole::kOtherEmbedding);
  g.linear("embedding_hidden_mapping_in", s.width, embedded, true);
  for (std::int64_t i = 0; i < groups; ++i) {
    for (std::int64_t j = 0; j < inner; ++j) {
      g.enter(fmt::format("albert.encoder.albert_layer_groups.{}.albert_layers.{}.", i, j), i);
      g.norm("full_layer_layer_norm", s.width, true);
      g.role(ParameterRole::kAttention);
      for (const char* name : {"query", "key", "value", "dense"}) {
        g.linear(fmt::format("attention.{}", name), s.width, s.width, true);
      }
      g.norm("attention.LayerNorm", s.width, true);
      g.role(ParameterRole::kMlp);
      g.linear("ffn", s.feed_forward, s.width, true);
      g.linear("ffn_output", s.width, s.feed_forward, true);
    }
  }
  write_masked_head(reader, g, s, embedded,
                    {"predictions.bias", "predictions.dense", "predictions.LayerNorm",
                     "predictions.decoder", "albert.embeddings.word_embeddings"});
}

void distilbert(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("dim");
  const std::int64_t layers = reader.layers("n_layers");
  const std::int64_t inner = reader.size("hidden_dim");
  const std::int64_t positions = reader.size("max_position_embeddings");
  if (width % reader.size("n_heads") != 0) {
    reader.refuse_key("n_heads", fmt::format("does not divide dim {}", width));
  }
  g.enter("distilbert.embeddings.");
  g.embedding("word_embeddings", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.embedding("position_embeddings", positions, width, ParameterRole::kPositionEmbedding);
  g.norm("LayerNorm", width, true);
  g.buffer("position_ids", {1, positions});
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("distilbert.transformer.layer.{}.", i), i);
    g.role(ParameterRole::kAttention);
    for (const char* name : {"q_lin", "k_lin", "v_lin", "out_lin"}) {
      g.linear(fmt::format("attention.{}", name), width, width, true);
    }
    g.norm("sa_layer_norm", width, true);
    g.role(ParameterRole::kMlp);
    g.linear("ffn.lin1", inner, width, true);
    g.linear("ffn.lin2", width, inner, true);
    g.norm("output_layer_norm", width, true);
  }
  g.enter("");
  g.role(ParameterRole::kHead);
  g.linear("vocab_transform", width, width, true);
  g.norm("vocab_layer_norm", width, true);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie("distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight");
  } else {
    g.tensor("vocab_projector.weight", {vocabulary, width});
  }
  g.tensor("vocab_projector.bias", {vocabulary});
}

// --- DeBERTa: relative positions instead of learned ones

bool lists(ConfigReader& reader, std::string_view key, std::string_view entry) {
  const nlohmann::json* value = reader.complete(key);
  if (value == nullptr) return false;
  if (value->is_string()) return value->get<std::string>().find(entry) != std::string::npos;
  return std::find(value->begin(), value->end(), nlohmann::json(entry)) != value->end();
}

// Keys that the class knows without having a default for them.
std::int64_t extra_size(ConfigReader& reader, std::string_view key, std::int64_t otherwise) {
  const nlohmann::json* value = reader.complete(key);
  if (value == nullptr || !value->is_number_integer() || *value <= 0) return otherwise;
  return reader.size_or(key, otherwise);
}

void relative_positions(ConfigReader& reader, InventoryBuilder& g, const Encoder& s) {
  if (!reader.flag("relative_attention")) return;
  const nlohmann::json* most = reader.complete("max_relative_positions");
  const bool given = most != nullptr && most->is_number_integer() && *most > 0;
  const std::int64_t span = given ? reader.derived_size("max_relative_positions") : s.positions;
  const std::int64_t rows = extra_size(reader, "position_buckets", span);
  g.embedding("rel_embeddings", checked_mul(2, rows), s.width, ParameterRole::kPositionEmbedding);
}

void deberta_layer(ConfigReader& reader, InventoryBuilder& g, const Encoder& s) {
  bert_layer(g, s, "query_proj", "key_proj", "value_proj");
  const nlohmann::json* shared = reader.complete("share_att_key");
  if (!reader.flag("relative_attention") || (shared != nullptr && *shared == true)) return;
  g.role(ParameterRole::kAttention);
  if (lists(reader, "pos_att_type", "c2p")) {
    g.linear("attention.self.pos_key_proj", s.width, s.width, true);
  }
  if (lists(reader, "pos_att_type", "p2c")) {
    g.linear("attention.self.pos_query_proj", s.width, s.width, true);
  }
}

void deberta_embeddings(ConfigReader& reader, InventoryBuilder& g, const Encoder& s) {
  const std::int64_t width = extra_size(reader, "embedding_size", s.width);
  const std::int64_t types = reader.count("type_vocab_size");
  g.enter("deberta.embeddings.");
  g.embedding("word_embeddings", s.vocabulary, width, ParameterRole::kTokenEmbedding);
  if (reader.flag("position_biased_input")) {
    g.embedding("position_embeddings", s.positions, width, ParameterRole::kPositionEmbedding);
  }
  if (types > 0) {
    g.embedding("token_type_embeddings", types, width, ParameterRole::kOtherEmbedding);
  }
  g.role(ParameterRole::kOtherEmbedding);
  if (width != s.width) g.linear("embed_proj", s.width, width);
  g.norm("LayerNorm", s.width, true);
  g.buffer("position_ids", {1, s.positions});
}

void deberta(ConfigReader& reader, InventoryBuilder& g) {
  const Encoder s = read_encoder(reader);
  if (const std::int64_t kernel = extra_size(reader, "conv_kernel_size", 0); kernel > 0) {
    reader.refuse_key("conv_kernel_size", fmt::format("{}, expected 0: not counted", kernel));
  }
  deberta_embeddings(reader, g, s);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("deberta.encoder.layer.{}.", i), i);
    deberta_layer(reader, g, s);
  }
  g.enter("deberta.encoder.");
  relative_positions(reader, g, s);
  if (lists(reader, "norm_rel_ebd", "layer_norm")) g.norm("LayerNorm", s.width, true);
  const std::int64_t pooled = reader.derived_size("pooler_hidden_size");
  g.enter("");
  g.role(ParameterRole::kHead);
  g.linear("pooler.dense", pooled, pooled, true);
  g.linear("classifier", label_count(reader), pooled, true);
}

// --- ModernBERT

void modern_rotary(ConfigReader& reader, InventoryBuilder& g, std::int64_t head_dim) {
  const auto* settings = reader.complete("rope_parameters");
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    if (settings == nullptr || !settings->contains(kind) || !lists(reader, "layer_types", kind)) {
      continue;
    }
    g.buffer(fmt::format("rotary_emb.{}_inv_freq", kind), {(head_dim + 1) / 2});
    g.buffer(fmt::format("rotary_emb.{}_original_inv_freq", kind), {(head_dim + 1) / 2});
  }
}

void modernbert(ConfigReader& reader, InventoryBuilder& g) {
  Encoder s;
  s.vocabulary = reader.size("vocab_size");
  s.width = reader.size("hidden_size");
  s.layers = reader.layers("num_hidden_layers");
  s.feed_forward = reader.size("intermediate_size");
  const std::int64_t heads = reader.size("num_attention_heads");
  const bool norm_bias = reader.flag("norm_bias");
  const bool attention_bias = reader.flag("attention_bias");
  const bool mlp_bias = reader.flag("mlp_bias");
  if (s.width % heads != 0) {
    reader.refuse_key("num_attention_heads",
                      fmt::format("does not divide hidden_size {}", s.width));
  }
  g.enter("model.embeddings.");
  g.embedding("tok_embeddings", s.vocabulary, s.width, ParameterRole::kTokenEmbedding);
  g.norm("norm", s.width, norm_bias);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("model.layers.{}.", i), i);
    if (i > 0) g.norm("attn_norm", s.width, norm_bias);
    g.role(ParameterRole::kAttention);
    g.linear("attn.Wqkv", checked_mul(3, s.width), s.width, attention_bias);
    g.linear("attn.Wo", s.width, s.width, attention_bias);
    g.norm("mlp_norm", s.width, norm_bias);
    g.role(ParameterRole::kMlp);
    g.linear("mlp.Wi", checked_mul(2, s.feed_forward), s.width, mlp_bias);
    g.linear("mlp.Wo", s.width, s.feed_forward, mlp_bias);
  }
  g.enter("model.");
  g.norm("final_norm", s.width, norm_bias);
  modern_rotary(reader, g, s.width / heads);
  g.enter("");
  g.role(ParameterRole::kHead);
  g.linear("head.dense", s.width, s.width, reader.flag("classifier_bias"));
  g.norm("head.norm", s.width, norm_bias);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie("model.embeddings.tok_embeddings.weight", "decoder.weight");
  } else {
    g.tensor("decoder.weight", {s.vocabulary, s.width});
  }
  if (reader.flag("decoder_bias")) g.tensor("decoder.bias", {s.vocabulary});
}

constexpr std::array<InventoryFamily, 6> kEncoders = {{
    {"albert", albert, "AlbertForMaskedLM"},
    {"bert", bert, "BertForMaskedLM"},
    {"deberta-v2", deberta, "DebertaV2ForSequenceClassification"},
    {"distilbert", distilbert, "DistilBertForMaskedLM"},
    {"modernbert", modernbert, "ModernBertForMaskedLM"},
    {"roberta", roberta, "RobertaForMaskedLM"},
}};

}  // namespace

const InventoryFamily* find_encoder(std::string_view model_type) {
  return find_in(kEncoders, model_type);
}

}  // namespace plimsoll::formats
