// Norms, orders of sums, precision, random numbers.
#include <chrono>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "plimsoll/comm/decorator.hpp"
#include "plimsoll/comm/recording.hpp"
#include "plimsoll/engine/run/checkpoint.hpp"

#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

double norm_of(const Gradients& gradients) {
  double squares = 0;
  for (const auto& [name, gradient] : gradients) {
    squares += gradient.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

void norms(Communicator& world) {
  double first = -1;
  for (int stage = 0; stage <= 3; ++stage) {
    ShardedTiny tiny(world, at_stage(stage));
    ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kSgd, {});
    const double expected = norm_of(tiny.expected());
    tiny.run(world.rank()).backward();
    const double norm = optimizer.step({.norm = true}).gradient_norm;
    require(std::abs(norm - expected) <= 1e-6 * expected,
            fmt::format("stage {}: norm {}, expected {}", stage, norm, expected));
    std::vector<double> all(static_cast<std::size_t>(world.size()));
    world.all_gather(comm::view(std::span<const double>(&norm, 1)), comm::view(std::span(all)))
        .wait();
    for (double other : all) require(other == norm, "ranks tell different norms");
    if (first < 0) first = norm;
    require(norm == first, fmt::format("stage {}: norm {}, stage 0: {}", stage, norm, first));
  }
}

// What clipping leaves has the norm that was asked for: measured by SGD's step at rate 1.
void clipped(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    ShardedTiny tiny(world, at_stage(stage));
    ShardOptimizer sgd(tiny.sharded.sharder(), Optimizer::kSgd,
                       {.learning_rate = 1, .weight_decay = 0});
    tiny.run(world.rank()).backward();
    constexpr double kClip = 0.01;
    require(sgd.step({.clip = kClip}).gradient_norm > kClip, "the case tests nothing");
    tiny.sharded.gather();
    Gradients moved;
    const auto before = tiny.plain->named_parameters();
    for (const auto& item : tiny.model->named_parameters()) {
      moved.emplace(item.key(), (before[item.key()] - item.value()).detach());
    }
    tiny.sharded.release();
    // Differences of weights around 0.4 in fp32 are good to 1e-8 each.
    require(std::abs(norm_of(moved) - kClip) < 1e-5 * kClip + 4e-7,
            fmt::format("stage {}: a step of norm {}", stage, norm_of(moved)));
  }
}

// --- timing ---------------------------------------------------------------------------------------

// Each rank is late by times of its own, at the call and at the wait of every collective.
class Jitter final : public comm::Decorator {
 public:
  using Decorator::Decorator;

 protected:
  comm::Work begin_call(const comm::Call& call) override {
    pause();
    comm::Work work = comm::begin(inner(), call);
    pause();
    return work;
  }
  std::unique_ptr<Decorator> around(Communicator& group) override {
    return std::make_unique<Jitter>(group);
  }

 private:
  void pause() {
    state_ = state_ * 6364136223846793005ULL + static_cast<std::uint64_t>(rank()) * 2 + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(state_ >> 57));  // below 128
  }
  std::uint64_t state_ = 1;
};

std::vector<at::Tensor> trained(Communicator& world, const ZeroSettings& settings, int steps) {
  ShardedTiny tiny(world, settings);
  ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
  for (int step = 0; step < steps; ++step) {
    tiny.run(world.rank(), step).backward();
    optimizer.step({});
    tiny.sharded.zero_grad();
  }
  tiny.sharded.gather();
  std::vector<at::Tensor> values;
  for (const at::Tensor& p : tiny.model->parameters()) values.push_back(p.detach().clone());
  tiny.sharded.release();
  return values;
}

void require_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                   const std::string& what) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    require(same_bits(a[i], b[i]), fmt::format("{}: parameter {} differs", what, i));
  }
}

void overlap(Communicator& world) {
  ZeroSettings settings = at_stage(3);
  settings.prefetch = 0;
  const auto expected = trained(world, settings, 50);
  for (int stage : {2, 3}) {
    settings.stage = static_cast<Stage>(stage);
    settings.prefetch = 2;
    Jitter jitter(world);
    require_equal(trained(jitter, settings, 50), expected, fmt::format("stage {}", stage));
  }
}

void unit_sizes(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    for (std::size_t wrapped : std::initializer_list<std::size_t>{0, 1, 3}) {
      ShardedTiny whole(world, at_stage(stage));
      TinyModel model((TinyShape()));
      set_values(*model);
      ShardedModule sharded(model, world, at_stage(stage));
      for (std::size_t i = 0; i < wrapped; ++i) {
        model->calls[i] = sharded.wrap(model->blocks[i]);
      }
      sharded.initialise();
      const Batch batch = batch_of(TinyShape(), 0, 0, world.rank());
      sharded.run([&] { return model->loss(batch.ids, batch.targets); }).backward();
      require_gradients(sharded, whole.expected(),
                        fmt::format("stage {}, {} units", stage, wrapped + 1));
    }
  }
}

void accumulation(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    for (int k = 1; k <= 4; ++k) {
      for (bool each : {true, false}) {
        ZeroSettings settings = at_stage(stage);
        settings.reduce_each = each;
        ShardedTiny tiny(world, settings);
        for (int m = 0; m < k; ++m) tiny.run(world.rank(), m, m + 1 == k).backward();
        require_gradients(tiny.sharded, tiny.expected(k, !each),
                          fmt::format("stage {}, {} micro-batches", stage, k), k);
      }
    }
  }
}

// --- precision ------------------------------------------------------------------------------------

ZeroSettings bf16(int stage, bool masters) {
  ZeroSettings settings = at_stage(stage);
  settings.compute = at::kBFloat16;
  if (masters) settings.master = at::kFloat;
  return settings;
}

void small_updates(Communicator& world) {
  require_refused([&] { ShardedTiny(world, bf16(3, false)); }, {"BFloat16 without a master"});
  ShardedTiny tiny(world, bf16(3, true));
  ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW,
                           {.learning_rate = 1e-4, .weight_decay = 0});
  const auto values = [&] {
    tiny.sharded.gather();
    at::Tensor scale = tiny.model->blocks[0]->scale.detach().clone();
    tiny.sharded.release();
    return scale;
  };
  const at::Tensor before = values();
  for (int step = 0; step < 100; ++step) {
    tiny.run(world.rank(), step).backward();
    optimizer.step({});
    tiny.sharded.zero_grad();
  }
  require(!same_bits(before, values()), "100 small updates moved nothing");
}

void travels_as_16_bits(Communicator& world) {
  for (int stage = 1; stage <= 3; ++stage) {
    comm::Recording recording(world);
    ShardedTiny tiny(recording, bf16(stage, true));
    TinyModel plain(tiny.shape);
    set_values(*plain);
    plain->to(at::kBFloat16);
    const at::Tensor loss = tiny.run(world.rank());
    recording.reset();
    loss.backward();
    std::int64_t expected = 0;
    const zero::Sharder& sharder = tiny.sharded.sharder();
    for (shard::UnitIndex u = 0; u < sharder.unit_count(); ++u) {
      expected += shard::reduce_traffic(sharder.unit(u).layout(), static_cast<Stage>(stage), {});
    }
    const auto& reduced = recording.traffic().of(comm::Kind::kReduceScatter);
    require(reduced.bytes == expected,
            fmt::format("{} bytes of gradients, expected {}", reduced.bytes, expected));
    const auto loss_of = [&](int r, int) {
      const Batch batch = batch_of(tiny.shape, 0, 0, r);
      return plain->loss(batch.ids, batch.targets);
    };
    require_gradients(tiny.sharded, mean_gradients(*plain, world.size(), loss_of),
                      fmt::format("stage {}: summed in fp32", stage));
  }
}

// --- random numbers -------------------------------------------------------------------------------

void dropout_again(Communicator& world) {
  TinyShape shape;
  shape.dropout = 0.5;
  for (int stage = 0; stage <= 3; ++stage) {
    std::vector<at::Tensor> first;
    for (bool checkpointed : {false, true}) {
      ShardedTiny tiny(world, at_stage(stage), shape);
      if (checkpointed) {
        for (auto& call : tiny.model->calls) {
          call = [inner = call](const at::Tensor& x) { return engine::checkpoint(inner, x, true); };
        }
      }
      at::manual_seed(static_cast<std::uint64_t>(5 + world.rank()));
      tiny.run(world.rank()).backward();
      std::vector<at::Tensor> gradients;
      for (const auto& item : tiny.model->named_parameters()) {
        gradients.push_back(tiny.sharded.gradient(item.key()));
      }
      if (first.empty()) first = gradients;
      require_equal(gradients, first, fmt::format("stage {}", stage));
    }
  }
}

}  // namespace

std::vector<Trouble> number_troubles() {
  return {
      {"trouble 22: clipping leaves the norm that was asked for", clipped},
      {"trouble 23 and 54: every rank and every stage tells the same norm, that of one process",
       norms},
      {"trouble 26: 50 steps with prefetch and late ranks give the bits of those without", overlap},
      {"trouble 27: the size of units changes no bit of a gradient", unit_sizes},
      {"trouble 28: 1 to 4 micro-batches, reduced each or once", accumulation},
      {"trouble 30: bf16 without masters is refused, with masters small updates add up",
       small_updates},
      {"trouble 32: dropout is the same when a block is computed again", dropout_again},
      {"trouble 49 and 56: bf16 gradients travel as 2 bytes and are summed in fp32",
       travels_as_16_bits},
  };
}

}  // namespace plimsoll::tests
