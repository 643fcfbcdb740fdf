// Closed forms: what people compute on paper. All approximate; plans print their error against the
// ledger, and decide on the timeline.
//
// Letters: B batch, T tokens, D width, F feed-forward width, L layers, N heads, V vocabulary, e item
// size, Psi parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/network/network.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/ledger.hpp"

namespace plimsoll::plan {

// 12 L D^2 + V D: the usual estimate of a GPT's parameters. It forgets T D positions and (4 L + 2) D
// norm weights.
std::int64_t rough_gpt_parameters(std::int64_t width, std::int64_t layers, std::int64_t vocabulary);

// Bytes that the inline GPT saves per sample, as saved [Note: counting conventions], on the CPU:
//   k = L ((17 T D + 4 T) e + 4 N T) + (2 T D + 2 T) e + 2 T V e + 16 T
// On CUDA in fp32 the logsumexp has rows padded to 32 (source: the saved lists of the kernels).
std::int64_t saved_bytes_per_sample(const network::NetworkSpec& spec, std::int64_t tokens,
                                    network::DType dtype, network::Backend backend);

// c of A = A0 + c B T D L e: values (not bytes) per token, width and layer. k / (T D L e).
double activation_coefficient(const network::NetworkSpec& spec, std::int64_t tokens,
                              network::DType dtype, network::Backend backend);
// Its leading terms in words: "17 + 2/L + 2V/(L D)".
std::string activation_law(const network::NetworkSpec& spec, std::int64_t tokens,
                           network::Backend backend);

struct ClosedFormPosts {
  double parameters = 0;  // bytes
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;  // e Psi + c B T D L e: A0 counts the weights once more
  double total() const { return parameters + gradients + optimizer + activations; }
};
ClosedFormPosts closed_form_posts(std::int64_t parameter_count, double c, std::int64_t batch,
                                  std::int64_t tokens, std::int64_t width, std::int64_t layers,
                                  double item_size = 4);

// The closed form of a job, with the formula of each post in words.
struct ClosedForm {
  ClosedFormPosts posts;
  std::string parameters, gradients, optimizer, activations;  // formulas
  std::string compared_with;  // which counting convention its A is held against
  double error = 0;           // of its A, relative: -0.235 is 23.5 % below
};
// Without checkpointing A = e Psi + c B T D L e, against as_saved; with it A = kept B T D L e + logits,
// against distinct. Frozen parts and adapters change A in ways that these forms do not know. Not for
// image networks.
ClosedForm closed_form_of(const network::NetworkSpec& spec, const Job& job,
                          const network::ParameterCount& parameters, const Ledger& ledger);

// Largest batch with posts within `capacity` bytes; none when not even one sample fits. `count_A0`
// includes A0 = e Psi, which the memory notebook's own rule leaves out.
std::optional<std::int64_t> closed_form_largest_batch(double capacity, std::int64_t parameter_count,
                                                      double c, std::int64_t tokens,
                                                      std::int64_t width, std::int64_t layers,
                                                      bool count_A0);

}  // namespace plimsoll::plan
