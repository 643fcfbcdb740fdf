// What the choices of a job are called, and what each optimizer keeps.
#include "plimsoll/plan/job.hpp"

namespace plimsoll::plan {

std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return "fp64";
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
    case Precision::kAutocast:
      return "autocast";
    case Precision::kMixed:
      return "mixed";
    case Precision::kZeroPaper:
      return "zero-paper";
    case Precision::kMegatron:
      return "megatron";
  }
  return "?";
}

bool is_formula(Precision precision) {
  return precision == Precision::kZeroPaper || precision == Precision::kMegatron;
}

std::string_view name(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return "adamw";
    case Optimizer::kSgd:
      return "sgd";
    case Optimizer::kSgdMomentum:
      return "sgd-momentum";
    case Optimizer::kLion:
      return "lion";
    case Optimizer::kAdafactor:
      return "adafactor";
    case Optimizer::kAdamW8bit:
      return "adamw-8bit";
  }
  return "?";
}

bool has_step_counters(Optimizer optimizer, OptimizerImpl impl) {
  const bool keeps = impl == OptimizerImpl::kTorchPython || impl == OptimizerImpl::kTorchFused;
  return keeps && (optimizer == Optimizer::kAdamW || optimizer == Optimizer::kAdafactor);
}

OptimizerImpl usual_implementation(Optimizer optimizer) {
  if (optimizer == Optimizer::kAdafactor) return OptimizerImpl::kTorchPython;
  if (optimizer == Optimizer::kAdamW8bit) return OptimizerImpl::kBitsAndBytes;
  return OptimizerImpl::kPlimsoll;
}

int moments(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kAdamW:
      return 2;
    case Optimizer::kSgd:
    case Optimizer::kAdafactor:
    case Optimizer::kAdamW8bit:
      return 0;
    case Optimizer::kSgdMomentum:
    case Optimizer::kLion:
      return 1;
  }
  return 0;
}

std::string_view name(OptimizerImpl impl) {
  switch (impl) {
    case OptimizerImpl::kPlimsoll:
      return "plimsoll";
    case OptimizerImpl::kTorchPython:
      return "torch-python";
    case OptimizerImpl::kTorchCpp:
      return "torch-cpp";
    case OptimizerImpl::kTorchFused:
      return "torch-fused";
    case OptimizerImpl::kBitsAndBytes:
      return "bitsandbytes";
  }
  return "?";
}

}  // namespace plimsoll::plan
