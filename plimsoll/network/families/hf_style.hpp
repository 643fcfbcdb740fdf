// How transformers 5.24 writes each model type's forward function, beyond its architecture: which
// casts, copies and single operations stand for a norm, a rotation, an attention.
//
// Source: the modeling files of transformers 5.24, checked against recorded runs (docs/accuracy.md).
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/network/spec.hpp"

namespace plimsoll::network::hf {

enum class NormStyle : std::uint8_t {
  kLibrary,      // one call of layer_norm
  kLlama,        // fp32 steps, cast back, times the weight
  kWeightFirst,  // fp32 steps, times the weight, cast back (olmo3)
  kOnePlus,      // fp32 steps, times 1 + weight in fp32, cast back (gemma)
  kPlain,        // layer_norm in fp32 without a weight (olmo)
  kOnePlusCall,  // layer_norm with the computed weight 1 + w (nemotron)
  kCohere,       // mean removed in fp32 steps
};

enum class LayerStyle : std::uint8_t {
  kSequential,  // y = x + attention(norm(x)); y + mlp(norm(y))
  kOutputNorm,  // y = x + norm(attention(x)); y + norm(mlp(y))
  kBothNorms,   // a norm before and after each branch
  kParallel,    // both branches read x
  kPostNorm,    // norm(x + branch(x))
  kBloom,
  kFalcon,
};

// Which of the three summands of a parallel layer meet first.
enum class ParallelSum : std::uint8_t { kResidualFirst, kBranchesFirst, kMlpFirst };

enum class QkNormPlace : std::uint8_t { kOnWhole, kOnRows, kOnHeads, kAfterRotary };

enum class SoftmaxStyle : std::uint8_t {
  kWide,        // scores are cast to fp32 for the softmax
  kOwn,         // in the scores' dtype
  kWideScores,  // queries and keys are cast to fp32 before the product (gptj)
};

enum class RotaryStyle : std::uint8_t {
  kHalves,          // cos and sin in the dtype of the hidden states
  kWideTables,      // cos and sin stay fp32, results are cast back (olmo)
  kNeighboursWide,  // queries and keys become fp32, neighbours are turned (cohere2)
  kGptj,            // neighbours, tables repeated in each layer, heads not yet transposed
};

// How the turned part of a head and the rest come together again.
enum class JoinStyle : std::uint8_t {
  kNone,         // all of the head is turned
  kTogether,     // queries and keys are turned, then both joined
  kOneByOne,     // queries turned and joined, then keys (phi3)
  kInAttention,  // as kTogether, by the attention's frame, which holds the parts (phi, stablelm)
};

// How one matrix's result becomes queries, keys and values.
enum class FusedStyle : std::uint8_t {
  kSplit,   // split, then heads (gpt2)
  kSlices,  // slices, then heads (phi3)
  kChunks,  // heads of 3 H, then chunks (gpt_neox)
  kSelect,  // heads of [3, H], then select (persimmon, bloom, falcon-rw)
};

// In which order a layer registers its parameters; the optimizer walks them so.
enum class ParameterOrder : std::uint8_t { kBranchesFirst, kNormsFirst, kOutputFirst };

struct Style {
  NormStyle norm = NormStyle::kLlama;
  LayerStyle layer = LayerStyle::kSequential;
  ParallelSum parallel_sum = ParallelSum::kResidualFirst;
  QkNormPlace qk_norm = QkNormPlace::kOnHeads;
  SoftmaxStyle softmax = SoftmaxStyle::kWide;
  RotaryStyle rotary = RotaryStyle::kHalves;
  JoinStyle join = JoinStyle::kNone;
  ParameterOrder order = ParameterOrder::kBranchesFirst;
  FusedStyle fused = FusedStyle::kSplit;
  bool branch_first = false;      // attention + x instead of x + attention
  bool names_branch = false;      // attention's result is a variable of its own (gpt2, stablelm)
  bool mlp_first = false;         // mlp + x instead of x + mlp
  bool copies_heads_back = true;  // eager attention makes its result contiguous (not gpt2)
  bool scaled_queries = false;    // queries are scaled before attention (opt)
  bool inline_mlp = false;        // the layer itself calls the MLP's linear layers (opt, biogpt)
  bool flat_mlp = false;          // the MLP reads [B T, D] (opt)
  bool column_weights = false;    // linear layers are addmm with [in, out] weights (gpt2)
  bool composed_gelu = false;     // gelu_new: the tanh formula in single operations
  bool scaled_embedding = false;  // by a buffer (gemma) or a number (biogpt)
  bool tables_by_kind = false;    // rotary tables of layers with a window are their own (gemma3)
  // Where job.dropout acts besides attention's probabilities.
  bool embedding_dropout = false;
  bool attention_dropout = false;
  bool activation_dropout = false;
  bool mlp_dropout = false;
  bool positional_mask = false;  // layers get the mask by position: checkpoint hooks see it (gpt2)
  bool separate_output = false;  // another module projects attention's result (bert)
  bool ids_per_row = false;      // position ids [B, T], counted with a mask (opt)
  bool position_ids = true;      // layers are handed position ids
  bool sdpa = true;              // transformers offers sdpa for this type
};

// What of this model hf semantics are not known for; empty: they are known.
std::string unknown_part(const NetworkSpec& spec);
// The model types for which it is, for people.
std::string known_types();

Style style_of(const NetworkSpec& spec);

}  // namespace plimsoll::network::hf
