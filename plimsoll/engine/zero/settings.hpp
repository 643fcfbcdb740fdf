// What a sharded run is told once. The same on all ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/engine/torch.hpp"
#include "plimsoll/shard/memory.hpp"
#include "plimsoll/shard/schedule.hpp"

namespace plimsoll::engine::zero {

struct Settings {
  at::Device device = at::kCPU;  // where it runs; kMeta: a dry run, no memory and no arithmetic
  shard::Stage stage = shard::Stage::kParameters;
  std::int32_t prefetch = 1;
  bool reshard_root = false;
  bool reduce_each = true;  // micro-batches are reduced one by one; false: once a step
  // 16-bit gradients of several micro-batches that are not reduced one by one add up in fp32.
  bool accumulate_wide = true;
  // What parameters become (modules alone; networks are built in their type); none: what they are.
  std::optional<at::ScalarType> compute;
  // Masters of 16-bit parameters, updated by the optimizer; none: parameters are their own.
  std::optional<at::ScalarType> master;
  // Modules: 16-bit parameters may be their own masters, although small updates of them are lost.
  bool narrow_masters = false;
  at::ScalarType moment = at::kFloat;
  int moments = 2;  // per parameter: adamw 2, sgd-momentum and lion 1, sgd 0
};

// Sums of gradients over ranks: fp64 for fp64, else fp32.
inline at::ScalarType sum_type(at::ScalarType parameter) {
  return parameter == at::kDouble ? at::kDouble : at::kFloat;
}

// The bytes behind it, for a group of this type.
inline shard::Arithmetic arithmetic(const Settings& settings, at::ScalarType parameter,
                                    std::int32_t ranks) {
  shard::Arithmetic result;
  if (settings.master)
    result.master = static_cast<std::int64_t>(c10::elementSize(*settings.master));
  result.sum = static_cast<std::int64_t>(c10::elementSize(sum_type(parameter)));
  result.moment = static_cast<std::int64_t>(c10::elementSize(settings.moment));
  result.moments = settings.moments;
  const bool sharded = shard::shards(settings.stage, ranks);
  const bool narrow = static_cast<std::int64_t>(c10::elementSize(parameter)) < result.sum;
  result.local_sums = settings.accumulate_wide && narrow && !(sharded && settings.reduce_each);
  return result;
}

}  // namespace plimsoll::engine::zero
