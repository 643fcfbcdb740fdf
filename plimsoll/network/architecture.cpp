#include "plimsoll/network/architecture.hpp"

namespace plimsoll::network {

Architecture gpt_architecture() {
  Architecture a;
  a.positions = Positions::kLearned;
  a.norm = NormKind::kLayer;
  a.norm_bias = true;
  a.qkv = QkvLayout::kInOrder;
  a.gated = false;
  a.embedding_dropout = true;
  a.residual_dropout = true;
  return a;
}

Architecture bert_architecture() {
  Architecture a = gpt_architecture();
  a.causal = false;
  a.qkv = QkvLayout::kSeparate;
  a.embedding_norm = true;
  a.placement = NormPlacement::kPostResidual;
  a.final_norm = false;
  a.masked_head = true;
  return a;
}

}  // namespace plimsoll::network
