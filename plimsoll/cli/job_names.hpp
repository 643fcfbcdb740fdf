// The values that job options take, by name.
#pragma once

#include <optional>
#include <string_view>

#include "plimsoll/plan/job.hpp"

namespace plimsoll::cli {

template <class T>
struct Named {
  std::string_view name;
  T value;
};

inline constexpr Named<plan::Precision> kPrecisions[] = {
    {"fp64", plan::Precision::kFp64},
    {"fp32", plan::Precision::kFp32},
    {"bf16", plan::Precision::kBf16},
    {"fp16", plan::Precision::kFp16},
    {"mixed", plan::Precision::kMixed},
    {"autocast", plan::Precision::kAutocast},
    {"zero-paper", plan::Precision::kZeroPaper},
    {"megatron", plan::Precision::kMegatron}};

inline constexpr Named<plan::Optimizer> kOptimizers[] = {
    {"adamw", plan::Optimizer::kAdamW},
    {"sgd", plan::Optimizer::kSgd},
    {"sgd-momentum", plan::Optimizer::kSgdMomentum},
    {"lion", plan::Optimizer::kLion},
    {"adafactor", plan::Optimizer::kAdafactor},
    {"adamw-8bit", plan::Optimizer::kAdamW8bit}};

inline constexpr Named<plan::OptimizerImpl> kOptimizerImpls[] = {
    {"plimsoll", plan::OptimizerImpl::kPlimsoll},
    {"torch-python", plan::OptimizerImpl::kTorchPython},
    {"torch-cpp", plan::OptimizerImpl::kTorchCpp},
    {"torch-fused", plan::OptimizerImpl::kTorchFused},
    {"bitsandbytes", plan::OptimizerImpl::kBitsAndBytes}};

using MaybeKernel = std::optional<plan::AttentionKernel>;
inline constexpr Named<MaybeKernel> kAttentions[] = {
    {"auto", std::nullopt},
    {"flash", plan::AttentionKernel::kFlash},
    {"efficient", plan::AttentionKernel::kEfficient},
    {"math", plan::AttentionKernel::kMath},
    {"eager", plan::AttentionKernel::kEager}};

inline constexpr Named<plan::Checkpoint> kCheckpoints[] = {{"none", plan::Checkpoint::kNone},
                                                           {"block", plan::Checkpoint::kBlock},
                                                           {"matmuls", plan::Checkpoint::kMatmuls}};

inline constexpr Named<plan::Semantics> kSemantics[] = {{"plimsoll", plan::Semantics::kPlimsoll},
                                                        {"hf", plan::Semantics::kHuggingFace}};
inline constexpr Named<plan::Backend> kBackends[] = {{"cpu", plan::Backend::kCpu},
                                                     {"cuda", plan::Backend::kCuda}};
inline constexpr Named<bool> kTargets[] = {{"separate", false}, {"shared", true}};

inline constexpr Named<plan::DType> kDtypes[] = {{"fp64", plan::DType::kFloat64},
                                                 {"fp32", plan::DType::kFloat32},
                                                 {"bf16", plan::DType::kBFloat16},
                                                 {"fp16", plan::DType::kFloat16}};
inline constexpr Named<plan::MasterChoice> kMasters[] = {{"none", {std::nullopt}},
                                                         {"fp64", {plan::DType::kFloat64}},
                                                         {"fp32", {plan::DType::kFloat32}},
                                                         {"bf16", {plan::DType::kBFloat16}},
                                                         {"fp16", {plan::DType::kFloat16}}};

inline constexpr Named<plan::Mode> kModes[] = {{"train", plan::Mode::kTrain},
                                               {"prefill", plan::Mode::kPrefill},
                                               {"decode", plan::Mode::kDecode}};
inline constexpr Named<plan::DType> kCacheDtypes[] = {{"fp16", plan::DType::kFloat16},
                                                      {"bf16", plan::DType::kBFloat16},
                                                      {"fp32", plan::DType::kFloat32},
                                                      {"fp8", plan::DType::kFloat8},
                                                      {"int8", plan::DType::kInt8}};

}  // namespace plimsoll::cli
