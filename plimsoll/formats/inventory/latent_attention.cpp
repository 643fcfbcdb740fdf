#include "plimsoll/formats/inventory/latent_attention.hpp"

#include "plimsoll/base/checked.hpp"

namespace plimsoll::formats {

LatentAttention::LatentAttention(ConfigReader& reader)
    : query_rank_(reader.optional_size("q_lora_rank")),
      rank_(reader.size("kv_lora_rank")),
      plain_(reader.size("qk_nope_head_dim")),
      rotary_(reader.size("qk_rope_head_dim")),
      value_(reader.size("v_head_dim")),
      bias_(reader.flag("attention_bias")) {}

void LatentAttention::write(Decoder& d) const {
  InventoryBuilder& g = d.g;
  const std::int64_t queries = checked_mul(d.heads, checked_add(plain_, rotary_));
  g.role(ParameterRole::kAttention);
  if (query_rank_) {
    g.linear("self_attn.q_a_proj", *query_rank_, d.width, bias_);
    g.norm("self_attn.q_a_layernorm", *query_rank_);
    g.linear("self_attn.q_b_proj", queries, *query_rank_);
  } else {
    g.linear("self_attn.q_proj", queries, d.width);
  }
  g.linear("self_attn.kv_a_proj_with_mqa", checked_add(rank_, rotary_), d.width, bias_);
  g.norm("self_attn.kv_a_layernorm", rank_);
  g.linear("self_attn.kv_b_proj", checked_mul(d.heads, checked_add(plain_, value_)), rank_);
  g.linear("self_attn.o_proj", d.width, checked_mul(d.heads, value_), bias_);
}

}  // namespace plimsoll::formats
