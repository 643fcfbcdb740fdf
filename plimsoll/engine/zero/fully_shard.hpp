// fully_shard: ZeRO stages 0 to 3 for your own torch::nn::Module.
//
//   int main(int argc, char** argv) {
//     return plimsoll::launch(argc, argv, 2, [](plimsoll::Communicator& world) {
//       auto model = plimsoll::on_meta([] { return Decoder(shape); });  // no rank holds all of it
//       plimsoll::ShardedModule sharded = plimsoll::fully_shard(model, world);
//       for (auto& block : model->blocks) model->calls.push_back(sharded.wrap(block));
//       sharded.initialise(fill);                                        // the rest is the root unit
//       plimsoll::ShardOptimizer optimizer(sharded.sharder(), plimsoll::Optimizer::kAdamW, {});
//       ...
//       at::Tensor loss = sharded.run([&] { return loss_of(model->forward(ids), targets); });
//       loss.backward();
//       optimizer.step({});
//       sharded.zero_grad();
//
// A C++ module's forward is an ordinary function, so a block has to be called through what wrap()
// gave: `blocks[i]->forward(x)` becomes `calls[i](x)`. Everything else of the model stays as it is.
//
// What is right, and what is refused by name:
//   - Reading a parameter whose unit is not gathered throws and names the unit (a direct call of an
//     inner module, a parent that reads its child's weight): never garbage.
//   - A stock optimizer over the module's parameters throws at its step: gradients are sharded. Use
//     ShardOptimizer.
//   - Parameters that a rank did not use in a pass count as zeros on it. Ranks that run units in
//     different order end with Mismatch where their collectives differ (stage 3).
//   - Tied parameters belong to one unit, or initialise() names both owners. So do two tensors over
//     one memory.
//   - 16-bit parameters need Settings::master, or initialise() refuses: small updates would be lost.
//   - Several forward passes before backward, one module called twice, checkpointing inside and around
//     units, backward passes inside a unit's backward (a loop over tiles) work.
//   - A step before the last micro-batch, or after a backward pass that threw, throws.
// Evaluate under torch::NoGradGuard: without it the root stays gathered until the next step.
//
// Per rank; every rank makes the same calls in the same order. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/comm/communicator.hpp"
#include "plimsoll/engine/torch.hpp"
#include "plimsoll/engine/zero/sharder.hpp"

namespace plimsoll::engine::zero {

class ShardedModule;

// A wrapped block: what to call instead of its forward.
class WrappedUnit {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  // Gathers the block, runs it, releases it; backward does likewise.
  at::Tensor operator()(const at::Tensor& input) const;

 private:
  friend class ShardedModule;
  struct Shared;
  WrappedUnit(std::shared_ptr<Shared> shared, std::size_t block)
      : shared_(std::move(shared)), block_(block) {}

  std::shared_ptr<Shared> shared_;
  std::size_t block_;
};

class ShardedModule {
 public:
  // `world` outlives it. Nothing happens to the module before initialise().
  ShardedModule(std::shared_ptr<torch::nn::Module> module, comm::Communicator& world,
                const Settings& settings = {});
  template <class Holder>
  requires requires(Holder& h) { h.ptr(); }
  ShardedModule(const Holder& module, comm::Communicator& world, const Settings& settings = {})
      : ShardedModule(std::static_pointer_cast<torch::nn::Module>(module.ptr()), world, settings) {}

  // Makes `block`, a part of the module, a unit of its own; before initialise().
  // std::invalid_argument: not a part of the module, wrapped before, or too late.
  WrappedUnit wrap(std::shared_ptr<torch::nn::Module> block, WrappedUnit::Forward forward);
  template <class Holder>
  requires requires(const Holder& h) { h.ptr(); }
  WrappedUnit wrap(const Holder& block) {
    return wrap(std::static_pointer_cast<torch::nn::Module>(block.ptr()),
                [inner = block](const at::Tensor& x) mutable { return inner->forward(x); });
  }

  // Shards the module. Values come from the module as it is, or, where parameters are on the meta
  // device, from `fill(name, tensor)`, which has to give the same on every rank. Buffers are those of
  // rank 0. Collective. std::invalid_argument for what is refused above. Beside its shards a rank holds at
  // most one unit and one parameter meanwhile.
  using Fill = std::function<void(const std::string& name, at::Tensor tensor)>;
  void initialise(const Fill& fill = nullptr);

  // Runs the module's forward (and the loss) as the root unit: parameters outside of wrapped blocks
  // are gathered. Calls of micro-batches that are not the last one of a step say so.
  at::Tensor run(const std::function<at::Tensor()>& forward, bool last_micro_batch = true);

  // Forgets the gradients of the step.
  void zero_grad();

  // Between the two all parameters can be read on every rank, at every stage. Collective.
  void gather();
  void release();
  // The mean gradient of a parameter over ranks and `micro_batches`, gathered from its owners; undefined
  // when there is none. Collective.
  at::Tensor gradient(const std::string& name, std::int32_t micro_batches = 1);

  Sharder& sharder();
  comm::Communicator& world() const;

 private:
  std::shared_ptr<WrappedUnit::Shared> shared_;
};

// The beginning of it all, under its usual name.
template <class Module>
ShardedModule fully_shard(const Module& module, comm::Communicator& world,
                          const Settings& settings = {}) {
  return ShardedModule(module, world, settings);
}

}  // namespace plimsoll::engine::zero
