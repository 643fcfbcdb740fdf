// Single operations of libtorch with a backward pass, to compare devices with each other.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::tests {

// Makes its inputs, runs the operation and its backward pass. `dtype` is that of the inputs.
struct OperationCase {
  std::string name;
  std::function<void(at::ScalarType dtype)> run;
};

inline at::Tensor leaf(at::IntArrayRef shape, at::ScalarType dtype) {
  return torch::ones(shape, dtype).requires_grad_();
}

inline at::Tensor ids(at::IntArrayRef shape) { return torch::zeros(shape, torch::kLong); }

inline at::Tensor mask(at::IntArrayRef shape) { return torch::ones(shape, torch::kBool); }

// A value in the middle of a graph: its gradient is not kept.
inline at::Tensor inner(at::IntArrayRef shape, at::ScalarType dtype) {
  return at::alias(leaf(shape, dtype));
}

// Backward from a gradient that the operation's formula reads as a whole tensor.
inline void backward(const at::Tensor& out) { out.backward(torch::ones_like(out)); }

using Unary = std::function<at::Tensor(const at::Tensor&)>;

inline OperationCase unary(std::string name, Unary function,
                           std::vector<std::int64_t> shape = {4, 6, 8}) {
  return {std::move(name), [=](at::ScalarType dtype) { backward(function(inner(shape, dtype))); }};
}

inline OperationCase image(std::string name, Unary function) {
  return unary(std::move(name), std::move(function), {2, 6, 8, 8});
}

// Cases whose events on meta are those of the CPU, at one thread and with reference kernels.
std::vector<OperationCase> elementwise_cases();
std::vector<OperationCase> reduction_cases();
std::vector<OperationCase> shape_cases();
std::vector<OperationCase> product_cases();
std::vector<OperationCase> image_cases();
std::vector<OperationCase> norm_cases();
std::vector<OperationCase> loss_cases();
std::vector<OperationCase> attention_cases();
std::vector<OperationCase> optimizer_cases();

// Cases that run on meta and leave nothing behind, but whose events differ, each with the cause.
std::vector<OperationCase> inexact_cases();

}  // namespace plimsoll::tests
