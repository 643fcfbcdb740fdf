// Ranks that do different things, and ranks that fail: named on every rank within the deadline.
#include <csignal>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/engine/data/rows.hpp"

#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

struct LayersImpl : torch::nn::Module {
  LayersImpl() {
    a = register_module("a", torch::nn::Linear(3, 3));
    b = register_module("b", torch::nn::Linear(3, 3));
    set_values(*this);
  }
  torch::nn::Linear a{nullptr}, b{nullptr};
};
TORCH_MODULE(Layers);

void swapped_order(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    const auto body = [&](Communicator& threads) {
      Layers model;
      ShardedModule sharded(model, threads, at_stage(stage));
      const WrappedUnit a = sharded.wrap(model->a);
      const WrappedUnit b = sharded.wrap(model->b);
      sharded.initialise();
      const at::Tensor x = rows({2, 3}, 0);
      sharded.run([&] { return (threads.rank() == 0 ? b(a(x)) : a(b(x))).square().sum(); })
          .backward();
    };
    require_world_refuses(world, body, {"[comm] rank 1", "unit=a", "unit=b"});
  }
}

// Rank 0 has a batch more than rank 1, which then leaves or goes on to something else.
void unequal_batches(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    const auto body = [&](Communicator& threads) {
      ShardedTiny tiny(threads, at_stage(stage));
      ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
      const int batches = threads.rank() == 0 ? 3 : 2;
      for (int i = 0; i < batches; ++i) {
        tiny.run(threads.rank(), i).backward();
        optimizer.step({});
        tiny.sharded.zero_grad();
      }
      threads.barrier({"end of the epoch"}).wait();
    };
    require_world_refuses(world, body, {"[comm] rank", "end of the epoch"});
  }
}

// Evaluation talks at stage 3 alone.
void unequal_evaluations(Communicator& world) {
  for (int stage : {2, 3}) {
    const auto body = [&](Communicator& threads) {
      ShardedTiny tiny(threads, at_stage(stage));
      for (int i = 0; i < 2 + threads.rank(); ++i) {
        const at::NoGradGuard no_grad;
        tiny.run(threads.rank(), i);
      }
      tiny.run(threads.rank()).backward();
      require_gradients(tiny.sharded, tiny.expected(), "after evaluations of unequal length");
    };
    if (stage == 3) {
      require_world_refuses(world, body, {"[comm] rank 1", "unit="});
      continue;
    }
    if (world.rank() == 0) {
      for (const std::string& message : in_threads(2, body)) require(message.empty(), message);
    }
    world.barrier().wait();
  }
}

// 7 rows on 2 ranks with batches of 2: epochs follow each other without a gap.
void seven_rows(Communicator&) {
  const engine::RowOrder order{7, 3, 2, 1, 2};
  std::vector<int> seen(7);
  std::int64_t count = 0;
  for (std::int64_t step = 0; step < 7; ++step) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      for (std::int64_t b = 0; b < 2; ++b, ++count) {
        ++seen[static_cast<std::size_t>(order.row(step * order.rows_per_step(), 0, rank, b))];
        if ((count + 1) % 7 != 0) continue;
        for (int times : seen) require(times == (count + 1) / 7, "a row was dropped or repeated");
      }
    }
  }
}

// --- failures -------------------------------------------------------------------------------------

enum class Place { kForward, kBackward, kStep };

// One step; `fail` is called by rank 1 at `place`.
void step_with(Communicator& world, int stage, Place place, const std::function<void()>& fail) {
  const bool fails = world.rank() == 1;
  ShardedTiny tiny(world, at_stage(stage));
  ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
  const auto inner = tiny.model->calls[1];
  tiny.model->calls[1] = [&, inner](const at::Tensor& x) {
    if (fails && place == Place::kForward) fail();
    const at::Tensor y = inner(x);
    if (fails && place == Place::kBackward) {
      y.register_hook([&](const at::Tensor&) { fail(); });
    }
    return y;
  };
  tiny.run(world.rank()).backward();
  if (fails && place == Place::kStep) fail();
  optimizer.step({.norm = true});
  world.barrier({"end of the step"}).wait();
}

void a_rank_throws(Communicator& world) {
  for (Place place : {Place::kForward, Place::kBackward, Place::kStep}) {
    for (int stage : {0, 2, 3}) {
      const auto body = [&](Communicator& threads) {
        step_with(threads, stage, place, [] { throw std::runtime_error("out of memory, say"); });
      };
      require_world_refuses(world, body, {"out of memory, say"});
    }
  }
}

void a_rank_stalls(Communicator& world) {
  for (Place place : {Place::kForward, Place::kBackward, Place::kStep}) {
    const auto body = [&](Communicator& threads) {
      step_with(threads, 3, place, [] { std::this_thread::sleep_for(comm::Milliseconds(1'200)); });
    };
    require_world_refuses(world, body, {"[comm] rank 1", "did not arrive"},
                          comm::Milliseconds(1'000));
  }
}

// --- arguments ------------------------------------------------------------------------------------

void refused_steps(Communicator& world) {
  ZeroSettings settings = at_stage(2);
  settings.reduce_each = false;
  ShardedTiny tiny(world, settings);
  ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
  tiny.run(world.rank(), 0, false).backward();
  require_refused([&] { optimizer.step({}); }, {"[zero] step() before the last micro-batch"});
  tiny.run(world.rank(), 1, true).backward();
  optimizer.step({.micro_batches = 2});
}

void step_after_a_throw(Communicator& world) {
  ShardedTiny tiny(world, at_stage(2));
  ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
  at::Tensor loss = tiny.run(world.rank());
  at::Tensor late = tiny.model->norm->weight;
  const auto hook = late.register_hook(
      [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("in backward"); });
  require_refused([&] { loss.backward(); }, {"in backward"});
  late.remove_hook(hook);
  require_refused([&] { optimizer.step({}); },
                  {"[zero] step() after a backward pass that did not"});
  tiny.run(world.rank()).backward();
  require_gradients(tiny.sharded, tiny.expected(), "after a pass that threw");
}

void empty_collectives(Communicator& world) {
  std::vector<float> some(static_cast<std::size_t>(world.size()));
  const comm::View none{some.data(), 0, comm::DType::kFloat32};
  require_refused([&] { world.all_gather(none, none).wait(); }, {"count"});
  require_refused([&] { world.reduce_scatter(none, none).wait(); }, {"count"});
  require_refused([&] { world.all_reduce(none, none).wait(); }, {"count"});
}

}  // namespace

int killed_step(Communicator& world, const std::string& place) {
  const Place where = place == "forward"    ? Place::kForward
                      : place == "backward" ? Place::kBackward
                                            : Place::kStep;
  step_with(world, 3, where, [] { std::raise(SIGKILL); });
  return 0;
}

std::vector<Trouble> collective_troubles() {
  return {
      {"trouble 12: two layers of one shape in another order on one rank are refused, naming both",
       swapped_order},
      {"trouble 14: more batches on one rank are refused", unequal_batches},
      {"trouble 14: evaluations of unequal length: right without collectives, refused with them",
       unequal_evaluations},
      {"trouble 14: rows that ranks and batches do not divide", seven_rows},
      {"trouble 28: a step before the last micro-batch is refused", refused_steps},
      {"trouble 28: a step after a pass that threw is refused, the next pass is right",
       step_after_a_throw},
      {"trouble 39: a rank throws in forward, backward and step", a_rank_throws},
      {"trouble 39: a rank stalls in forward, backward and step", a_rank_stalls},
      {"trouble 50: collectives of nothing are refused", empty_collectives},
  };
}

}  // namespace plimsoll::tests
