// Sharded training of your own torch::nn::Module: ZeRO stages 0 to 3 over the ranks of a host.
//
//   plimsoll::launch(argc, argv, R, fn)   first in main: starts R ranks of this program
//   plimsoll::fully_shard(model, world)   wrap blocks, initialise, call, backward, step
//
// Manuals: engine/zero/fully_shard.hpp (how to use it, what is refused), engine/zero/settings.hpp,
// engine/zero/shard_optimizer.hpp, engine/zero/launch.hpp, comm/launch.hpp, comm/communicator.hpp.
#pragma once

#include "plimsoll/engine/dry/meta_mode.hpp"
#include "plimsoll/engine/zero/fully_shard.hpp"
#include "plimsoll/engine/zero/launch.hpp"
#include "plimsoll/engine/zero/shard_optimizer.hpp"

namespace plimsoll {

using comm::Communicator;
using comm::LaunchOptions;
using engine::on_meta;
using engine::OptimizerSettings;
using engine::zero::fully_shard;
using engine::zero::launch;
using engine::zero::ShardedModule;
using engine::zero::ShardOptimizer;
using engine::zero::WrappedUnit;
using ZeroSettings = engine::zero::Settings;
using plan::Optimizer;
using shard::Stage;

}  // namespace plimsoll
