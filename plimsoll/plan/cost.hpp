// What one micro-batch costs: FLOPs and bytes by kind of operation and pass, and the least time a
// device needs for them.
//
// FLOPs are those of products; norms, activations and sums have none by convention, but their bytes
// count. Bytes: every tensor of an operation read or written once. Times are bounds from theoretical
// peaks: a run is slower.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/hardware/device.hpp"
#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/plan/model_shape.hpp"

namespace plimsoll::plan {

// FLOPs of attention's two products by convention; all other products are the same in each.
struct ConventionFlops {
  std::int64_t full = 0;          // the whole square of queries and keys
  std::int64_t causal_half = 0;   // half of it
  std::int64_t causal_exact = 0;  // the pairs that causality and windows leave

  ConventionFlops& operator+=(const ConventionFlops& other);
};

struct CostRow {
  std::string operation;  // "scores and values"
  std::string pass;       // forward, backward input, backward weight, backward
  std::string formula;    // of its FLOPs, in letters; "" when it has none
  ConventionFlops flops;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;

  std::int64_t bytes() const { return checked_add(bytes_read, bytes_written); }
  double intensity() const;  // FLOPs (exact) per byte
};

// The sizes of a pass.
struct CostSizes {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t item = 2;          // bytes of a weight or activation
  std::int64_t loss_item = 4;     // bytes of a logit in the loss
  bool scores_in_memory = false;  // attention writes its square (kernel math)
};
CostSizes cost_sizes(const Job& job);

// Forward and backward of one micro-batch, all layers of a kind in one row.
std::vector<CostRow> training_rows(const ModelShape& model, const CostSizes& sizes);

// The optimizer's pass over weights, gradients and states.
CostRow optimizer_row(const ModelShape& model, const Job& job);

ConventionFlops sum_flops(const std::vector<CostRow>& rows, std::string_view pass_prefix);

// --- roofline

hardware::Arithmetic arithmetic_of(network::DType dtype);

struct RooflinePoint {
  double seconds = 0;
  bool by_compute = false;  // else by memory
};
// None when the device's peak for this arithmetic or its bandwidth is unknown.
std::optional<RooflinePoint> roofline(const hardware::Device& device,
                                      hardware::Arithmetic arithmetic, double flops, double bytes);

// FLOPs per byte from which on the device's arithmetic is the bound.
std::optional<double> ridge(const hardware::Device& device, hardware::Arithmetic arithmetic);

struct TimeBound {
  double seconds = 0;
  double compute_seconds = 0;  // of the rows that arithmetic bounds
  double memory_seconds = 0;   // of those that bandwidth bounds
  std::string_view by() const { return compute_seconds >= memory_seconds ? "compute" : "memory"; }
};
// The sum over rows, one operation after the other.
std::optional<TimeBound> time_bound(const std::vector<CostRow>& rows,
                                    const hardware::Device& device,
                                    hardware::Arithmetic arithmetic);

// A training step of one rank: every micro-batch, what checkpoints recompute, the optimizer's pass;
// no communication. None without a device or without its figures.
std::optional<TimeBound> step_time(const network::NetworkSpec& spec, const Job& job);

// Rows of forward that a checkpoint policy runs again in backward.
std::vector<CostRow> recomputed_rows(const std::vector<CostRow>& rows, network::Checkpoint policy);

// --- conventions

// FLOPs per token of training by one way of counting.
struct TokenConvention {
  std::string name;
  std::string formula;
  double flops_per_token = 0;
};
// 6N, 6 (active - looked up) + causal attention of layers without windows, and the counts by row:
// full, causal half, causal exact.
std::vector<TokenConvention> token_conventions(const ModelShape& model, std::int64_t tokens);

// 6 (active - looked up parameters) + 6 (T / 2) N (key + value) per layer; layers with a window are
// left out when `windows` is false, as published tables do.
double training_flops_per_token(const ModelShape& model, std::int64_t tokens, bool windows);

// T from which attention's square costs more than all other products of the layers, with the whole
// square counted: 8 D when F = 4 D, D = N H, N = K and the MLP is gated.
double attention_crossover(const ModelShape& model);

// --- mixtures of experts

struct ExpertFacts {
  std::int64_t layers = 0;            // that have experts
  std::int64_t experts = 0;           // E
  std::int64_t per_token = 0;         // k
  double sparsity = 0;                // E / k
  std::int64_t all_to_all_bytes = 0;  // of one exchange of one layer: B T k D values, all ranks
  std::int64_t exchanges = 0;         // in a training step: two forward, two backward per layer
};
std::optional<ExpertFacts> expert_facts(const ModelShape& model, const CostSizes& sizes);

}  // namespace plimsoll::plan
