// Encoders with decoders: BART, T5, Whisper.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"

namespace plimsoll::formats {
namespace {

// --- BART and Whisper: self_attn, encoder_attn, fc1, fc2

struct Stack {
  std::string name;  // "model.encoder."
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t inner = 1;
  bool crosses = false;  // attends to the encoder as well
  bool key_bias = true;
};

void bart_attention(InventoryBuilder& g, std::string_view name, const Stack& s) {
  g.role(ParameterRole::kAttention);
  for (const char* part : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
    const bool bias = s.key_bias || std::string_view(part) != "k_proj";
    g.linear(fmt::format("{}.{}", name, part), s.width, s.width, bias);
  }
  g.norm(fmt::format("{}_layer_norm", name), s.width, true);
}

void bart_layers(InventoryBuilder& g, const Stack& s) {
  for (std::int64_t i = 0; i < s.layers; ++i) {
    g.enter(fmt::format("{}layers.{}.", s.name, i), i);
    bart_attention(g, "self_attn", s);
    if (s.crosses) bart_attention(g, "encoder_attn", s);
    g.role(ParameterRole::kMlp);
    g.linear("fc1", s.inner, s.width, true);
    g.linear("fc2", s.width, s.inner, true);
    g.norm("final_layer_norm", s.width, true);
  }
}

Stack read_stack(ConfigReader& reader, const std::string& side, std::int64_t width) {
  Stack s;
  s.name = fmt::format("model.{}.", side);
  s.width = width;
  s.layers = reader.layers(side + "_layers");
  s.inner = reader.size(side + "_ffn_dim");
  s.crosses = side == "decoder";
  const std::string heads = side + "_attention_heads";
  if (width % reader.size(heads) != 0) {
    reader.refuse_key(heads, fmt::format("does not divide d_model {}", width));
  }
  return s;
}

void bart_side(InventoryBuilder& g, const Stack& s, std::int64_t rows) {
  g.enter(s.name);
  g.embedding("embed_positions", rows, s.width, ParameterRole::kPositionEmbedding);
  g.norm("layernorm_embedding", s.width, true);
  bart_layers(g, s);
}

void bart(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("d_model");
  const std::int64_t rows = checked_add(reader.size("max_position_embeddings"), 2);
  g.enter("model.");
  g.embedding("shared", vocabulary, width, ParameterRole::kTokenEmbedding);
  bart_side(g, read_stack(reader, "encoder", width), rows);
  bart_side(g, read_stack(reader, "decoder", width), rows);
  g.enter("");
  g.buffer("final_logits_bias", {1, vocabulary}, /*persistent=*/true);
  if (reader.noted_flag("tie_word_embeddings")) {
    for (const char* name : {"model.encoder.embed_tokens.weight",
                             "model.decoder.embed_tokens.weight", "lm_head.weight"}) {
      g.tie("model.shared.weight", name);
    }
    return;
  }
  g.embedding("model.encoder.embed_tokens", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.embedding("model.decoder.embed_tokens", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.role(ParameterRole::kHead);
  g.linear("lm_head", vocabulary, width);
}

void whisper(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  const std::int64_t width = reader.size("d_model");
  Stack encoder = read_stack(reader, "encoder", width);
  Stack decoder = read_stack(reader, "decoder", width);
  encoder.key_bias = decoder.key_bias = false;
  g.enter(encoder.name);
  g.role(ParameterRole::kOtherEmbedding);
  g.convolution("conv1", {width, reader.size("num_mel_bins"), 3}, true);
  g.convolution("conv2", {width, width, 3}, true);
  g.embedding("embed_positions", reader.size("max_source_positions"), width,
              ParameterRole::kPositionEmbedding);
  bart_layers(g, encoder);
  g.enter(encoder.name);
  g.norm("layer_norm", width, true);
  g.enter(decoder.name);
  g.embedding("embed_tokens", vocabulary, width, ParameterRole::kTokenEmbedding);
  g.embedding("embed_positions", reader.size("max_target_positions"), width,
              ParameterRole::kPositionEmbedding);
  bart_layers(g, decoder);
  g.enter(decoder.name);
  g.norm("layer_norm", width, true);
  g.enter("");
  g.role(ParameterRole::kHead);
  if (reader.noted_flag("tie_word_embeddings")) {
    g.tie("model.decoder.embed_tokens.weight", "proj_out.weight");
  } else {
    g.linear("proj_out", vocabulary, width);
  }
}

// --- T5: blocks of sublayers, relative positions in the first block of each side

struct T5 {
  std::int64_t width = 1;         // D
  std::int64_t inner = 1;         // heads * head size
  std::int64_t heads = 1;         // N
  std::int64_t buckets = 1;       // of relative positions
  std::int64_t feed_forward = 1;  // F
  bool gated = false;
};

void t5_attention(InventoryBuilder& g, const T5& s, std::string_view layer, std::string_view kind,
                  bool positions) {
  const std::string name = fmt::format("{}.{}", layer, kind);
  g.role(ParameterRole::kAttention);
  g.linear(name + ".q", s.inner, s.width);
  g.linear(name + ".k", s.inner, s.width);
  g.linear(name + ".v", s.inner, s.width);
  g.linear(name + ".o", s.width, s.inner);
  if (positions) {
    g.embedding(name + ".relative_attention_bias", s.buckets, s.heads,
                ParameterRole::kPositionEmbedding);
  }
  g.norm(fmt::format("{}.layer_norm", layer), s.width);
}

void t5_mlp(InventoryBuilder& g, const T5& s, const std::string& layer) {
  g.role(ParameterRole::kMlp);
  if (s.gated) {
    g.linear(layer + ".DenseReluDense.wi_0", s.feed_forward, s.width);
    g.linear(layer + ".DenseReluDense.wi_1", s.feed_forward, s.width);
  } else {
    g.linear(layer + ".DenseReluDense.wi", s.feed_forward, s.width);
  }
  g.linear(layer + ".DenseReluDense.wo", s.width, s.feed_forward);
  g.norm(layer + ".layer_norm", s.width);
}

void t5_side(InventoryBuilder& g, const T5& s, const std::string& side, std::int64_t layers) {
  const bool crosses = side == "decoder";
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("{}.block.{}.", side, i), i);
    t5_attention(g, s, "layer.0", "SelfAttention", i == 0);
    if (crosses) t5_attention(g, s, "layer.1", "EncDecAttention", false);
    t5_mlp(g, s, crosses ? "layer.2" : "layer.1");
  }
  g.enter(side + ".");
  g.norm("final_layer_norm", s.width);
}

void t5(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t vocabulary = reader.size("vocab_size");
  T5 s;
  s.width = reader.size("d_model");
  s.heads = reader.size("num_heads");
  s.inner = checked_mul(s.heads, reader.size("d_kv"));
  s.buckets = reader.size("relative_attention_num_buckets");
  s.feed_forward = reader.size("d_ff");
  s.gated = reader.flag("is_gated_act");
  g.enter("");
  g.embedding("shared", vocabulary, s.width, ParameterRole::kTokenEmbedding);
  t5_side(g, s, "encoder", reader.layers("num_layers"));
  t5_side(g, s, "decoder", reader.layers("num_decoder_layers"));
  for (const char* name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}) {
    g.tie("shared.weight", name);
  }
  if (reader.flag("tie_word_embeddings")) {
    g.tie("shared.weight", "lm_head.weight");
    return;
  }
  g.enter("");
  g.role(ParameterRole::kHead);
  g.linear("lm_head", vocabulary, s.width);
  reader.assume(
      "tie_word_embeddings: false, counted with a head of its own as checkpoints of T5 1.1 "
      "hold it (transformers 5 ties a new model's head all the same)");
}

constexpr std::array<InventoryFamily, 3> kFamilies = {{
    {"bart", bart, "BartForConditionalGeneration"},
    {"t5", t5, "T5ForConditionalGeneration"},
    {"whisper", whisper, "WhisperForConditionalGeneration"},
}};

}  // namespace

const InventoryFamily* find_sequence_to_sequence(std::string_view model_type) {
  return find_in(kFamilies, model_type);
}

}  // namespace plimsoll::formats
