#include "tests/differential/family_configs.hpp"

#include <map>

namespace plimsoll::tests {
namespace {

using nlohmann::json;
using I = std::int64_t;

json window(Chooser& choose) { return choose.chance(20) ? json() : json(choose.of<I>({1, 3, 40})); }

// Sizes as most classes name them; grouped heads, and heads that do not add up to the width.
json llama_sizes(Chooser& choose, std::initializer_list<I> head_dims = {2, 4, 8}) {
  json c;
  const I kv_heads = choose.of<I>({1, 2});
  const I heads = kv_heads * choose.of<I>({1, 2, 3});
  c["num_key_value_heads"] = kv_heads;
  c["num_attention_heads"] = heads;
  c["head_dim"] = choose.of<I>(head_dims);
  c["hidden_size"] = heads * choose.of<I>({2, 4, 6});
  c["intermediate_size"] = choose.of<I>({3, 16});
  c["num_hidden_layers"] = choose.of<I>({1, 2, 4});
  c["vocab_size"] = choose.of<I>({5, 33});
  c["max_position_embeddings"] = choose.of<I>({1, 2, 5, 9, 33});
  c["tie_word_embeddings"] = choose.chance(50);
  return c;
}

// Heads that add up to the width, as many of keys as of queries.
json gpt_sizes(Chooser& choose, std::initializer_list<I> head_dims = {8, 16}) {
  json c = llama_sizes(choose);
  const I heads = choose.of<I>({1, 2, 3});
  c.erase("head_dim");
  c["num_attention_heads"] = c["num_key_value_heads"] = heads;
  c["hidden_size"] = heads * choose.of<I>(head_dims);
  c["hidden_act"] = choose.of({"gelu", "gelu_new", "relu"});
  return c;
}

json with_biases(Chooser& choose) {
  json c = llama_sizes(choose);
  c["attention_bias"] = choose.chance(50);
  c["mlp_bias"] = choose.chance(50);
  return c;
}

json windowed(Chooser& choose) {
  json c = llama_sizes(choose);
  c["sliding_window"] = window(choose);
  return c;
}

json qwen(Chooser& choose) {
  json c = windowed(choose);
  c["use_sliding_window"] = choose.chance(60);
  c["max_window_layers"] = choose.of<I>({0, 1});
  c["attention_bias"] = choose.chance(40);
  return c;
}

json arcee(Chooser& choose) {
  json c = with_biases(choose);
  c["hidden_act"] = "relu2";
  return c;
}

json granite(Chooser& choose) {
  json c = with_biases(choose);
  c["embedding_multiplier"] = 12.0;
  c["residual_multiplier"] = choose.of({1.0, 0.25});
  c["attention_multiplier"] = 0.125;
  c["logits_scaling"] = choose.of({1.0, 8.0});
  return c;
}

json smollm3(Chooser& choose) {
  json c = with_biases(choose);
  c["no_rope_layer_interval"] = choose.of<I>({2, 4});
  c["use_sliding_window"] = choose.chance(50);
  if (c["use_sliding_window"]) c["sliding_window"] = choose.of<I>({3, 40});
  return c;
}

json olmo(Chooser& choose) {
  json c = llama_sizes(choose);
  c["attention_bias"] = choose.chance(30);
  if (choose.chance(60)) c["clip_qkv"] = 0.01;
  return c;
}

json olmo3(Chooser& choose) {
  json c = llama_sizes(choose);
  c["sliding_window"] = choose.of<I>({1, 3, 40});
  return c;
}

json exaone4(Chooser& choose) {
  json c = windowed(choose);
  c["sliding_window_pattern"] = 2;
  return c;
}

json phi3(Chooser& choose) {
  json c = llama_sizes(choose, {8, 16});
  c.erase("head_dim");
  c["hidden_size"] = c["num_attention_heads"].get<I>() * choose.of<I>({8, 16});
  c["sliding_window"] = window(choose);
  if (choose.chance(40)) c["partial_rotary_factor"] = 0.5;
  return c;
}

json glm(Chooser& choose) {
  json c = llama_sizes(choose, {4, 8});
  c["attention_bias"] = choose.chance(50);
  return c;
}

json gemma(Chooser& choose) {
  json c = llama_sizes(choose);
  c["attention_bias"] = choose.chance(30);
  return c;
}

json gemma2(Chooser& choose) {
  json c = gemma(choose);
  c["query_pre_attn_scalar"] = 16;
  c["sliding_window"] = choose.of<I>({1, 3, 40});
  c["attn_logit_softcapping"] = choose.chance(60) ? json(50.0) : json();
  c["final_logit_softcapping"] = choose.chance(60) ? json(30.0) : json();
  return c;
}

json gemma3(Chooser& choose) {
  json c = gemma(choose);
  c["query_pre_attn_scalar"] = 16;
  c["sliding_window"] = choose.of<I>({1, 3, 40});
  c["sliding_window_pattern"] = choose.of<I>({2, 6});
  return c;
}

json cohere(Chooser& choose) {
  json c = llama_sizes(choose);
  c["attention_bias"] = choose.chance(30);
  c["logit_scale"] = choose.of({0.25, 1.0});
  return c;
}

json cohere2(Chooser& choose) {
  json c = cohere(choose);
  c["sliding_window"] = choose.of<I>({1, 3, 40});
  c["sliding_window_pattern"] = 2;
  return c;
}

json gpt_neox(Chooser& choose) {
  json c = gpt_sizes(choose);
  c.erase("num_key_value_heads");
  c["rotary_pct"] = choose.of({0.25, 1.0});
  c["use_parallel_residual"] = choose.chance(60);
  c["attention_bias"] = choose.chance(70);
  return c;
}

json phi(Chooser& choose) {
  json c = gpt_sizes(choose);
  c["qk_layernorm"] = choose.chance(50);
  if (choose.chance(50)) c["num_key_value_heads"] = 1;
  return c;
}

json persimmon(Chooser& choose) {
  json c = gpt_sizes(choose);
  c.erase("num_key_value_heads");
  c["qk_layernorm"] = choose.chance(50);
  c["hidden_act"] = "relu2";
  return c;
}

json stablelm(Chooser& choose) {
  json c = gpt_sizes(choose);
  c["hidden_act"] = "silu";
  c["num_attention_heads"] = choose.of<I>({1, 2, 6});
  c["num_key_value_heads"] = 1;
  c["hidden_size"] = c["num_attention_heads"].get<I>() * 8;
  c["qk_layernorm"] = choose.chance(60);
  c["use_qkv_bias"] = choose.chance(50);
  c["use_parallel_residual"] = choose.chance(50);
  return c;
}

json starcoder2(Chooser& choose) {
  json c = llama_sizes(choose);
  c["hidden_act"] = "gelu_pytorch_tanh";
  c["use_bias"] = choose.chance(70);
  c["sliding_window"] = window(choose);
  return c;
}

json nemotron(Chooser& choose) {
  json c = llama_sizes(choose, {8, 16});
  c["hidden_act"] = "relu2";
  c["attention_bias"] = choose.chance(50);
  c["mlp_bias"] = choose.chance(50);
  return c;
}

json opt(Chooser& choose) {
  json c = gpt_sizes(choose, {1, 4, 5});
  c.erase("num_key_value_heads");
  c["ffn_dim"] = c["intermediate_size"];
  c["activation_function"] = choose.of({"relu", "gelu"});
  c["enable_bias"] = choose.chance(70);
  c["layer_norm_elementwise_affine"] = choose.chance(70);
  c["do_layer_norm_before"] = choose.chance(60);
  if (choose.chance(40)) c["word_embed_proj_dim"] = 6;
  return c;
}

json biogpt(Chooser& choose) {
  json c = gpt_sizes(choose, {1, 4, 5});
  c.erase("num_key_value_heads");
  c["scale_embedding"] = choose.chance(50);
  return c;
}

json bloom(Chooser& choose) {
  const json sizes = gpt_sizes(choose, {1, 4, 5});
  json c;
  c["hidden_size"] = sizes["hidden_size"];
  c["n_head"] = sizes["num_attention_heads"];
  c["n_layer"] = sizes["num_hidden_layers"];
  c["vocab_size"] = sizes["vocab_size"];
  c["seq_length"] = sizes["max_position_embeddings"];
  return c;
}

json falcon(Chooser& choose) {
  json c = gpt_sizes(choose, {2, 4});
  c.erase("num_key_value_heads");
  c["hidden_size"] = 24;
  c["num_attention_heads"] = choose.of<I>({4, 6});
  c["activation"] = "gelu";
  c["new_decoder_architecture"] = choose.chance(40);
  c["num_kv_heads"] = choose.of<I>({1, 2});
  if (choose.chance(30)) c["num_ln_in_parallel_attn"] = 1;
  c["multi_query"] = choose.chance(50);
  c["parallel_attn"] = choose.chance(50);
  c["bias"] = choose.chance(50);
  c["alibi"] = choose.chance(40);
  return c;
}

json gpt2_like(Chooser& choose) {
  const json sizes = gpt_sizes(choose);
  json c;
  c["n_embd"] = sizes["hidden_size"];
  c["n_head"] = sizes["num_attention_heads"];
  c["n_layer"] = sizes["num_hidden_layers"];
  c["n_positions"] = sizes["max_position_embeddings"];
  c["vocab_size"] = sizes["vocab_size"];
  c["tie_word_embeddings"] = sizes["tie_word_embeddings"];
  return c;
}

json gptj(Chooser& choose) {
  json c = gpt2_like(choose);
  c["rotary_dim"] = choose.of<I>({4, 8});
  return c;
}

json gpt_bigcode(Chooser& choose) {
  json c = gpt2_like(choose);
  c["multi_query"] = choose.chance(60);
  return c;
}

json bert(Chooser& choose) {
  json c = gpt_sizes(choose, {1, 4, 5});
  c.erase("num_key_value_heads");
  c["max_position_embeddings"] = c["max_position_embeddings"].get<I>() + 2;
  c["type_vocab_size"] = choose.of<I>({1, 2});
  return c;
}

// An untied head is refused.
json roberta(Chooser& choose) {
  json c = bert(choose);
  c["tie_word_embeddings"] = true;
  return c;
}

using Maker = json (*)(Chooser&);
json plain(Chooser& choose) { return llama_sizes(choose); }

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> kMakers = {
      {"arcee", arcee},
      {"bert", bert},
      {"biogpt", biogpt},
      {"bloom", bloom},
      {"codegen", gptj},
      {"cohere", cohere},
      {"cohere2", cohere2},
      {"exaone4", exaone4},
      {"falcon", falcon},
      {"gemma", gemma},
      {"gemma2", gemma2},
      {"gemma3_text", gemma3},
      {"glm", glm},
      {"glm4", glm},
      {"gpt2", gpt2_like},
      {"gpt_bigcode", gpt_bigcode},
      {"gpt_neox", gpt_neox},
      {"gptj", gptj},
      {"granite", granite},
      {"hunyuan_v1_dense", with_biases},
      {"llama", with_biases},
      {"ministral3", windowed},
      {"mistral", windowed},
      {"nemotron", nemotron},
      {"olmo", olmo},
      {"olmo2", plain},
      {"olmo3", olmo3},
      {"opt", opt},
      {"persimmon", persimmon},
      {"phi", phi},
      {"phi3", phi3},
      {"qwen2", qwen},
      {"qwen3", qwen},
      {"roberta", roberta},
      {"smollm3", smollm3},
      {"stablelm", stablelm},
      {"starcoder2", starcoder2},
  };
  return kMakers;
}

}  // namespace

std::vector<std::string> family_types() {
  std::vector<std::string> types;
  for (const auto& [type, maker] : makers()) types.push_back(type);
  return types;
}

json random_config(const std::string& model_type, Chooser& choose) {
  json config = makers().at(model_type)(choose);
  config["model_type"] = model_type;
  return config;
}

}  // namespace plimsoll::tests
