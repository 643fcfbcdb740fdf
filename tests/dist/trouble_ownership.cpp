// Who owns which element: ties, tiny and empty parameters, replicas.
#include <fmt/format.h>

#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

// A head that has the embedding's weight as a parameter of its own name.
struct HeadImpl : torch::nn::Module {
  explicit HeadImpl(const at::Tensor& tied) { weight = register_parameter("weight", tied); }
  at::Tensor weight;
};
TORCH_MODULE(Head);

struct TiedImpl : torch::nn::Module {
  explicit TiedImpl(std::int64_t vocabulary = 5) {
    tokens = register_module("tokens", torch::nn::Embedding(vocabulary, 3));
    head = register_module("head", Head(tokens->weight));
    set_value("tied", tokens->weight);
  }
  at::Tensor loss(int rank, int micro_batch) {
    const std::int64_t vocabulary = tokens->weight.size(0);
    const at::Tensor ids = at::arange(6) % vocabulary;
    const at::Tensor x = tokens->forward((ids + rank + micro_batch) % vocabulary);
    const at::Tensor logits = at::linear(x, head->weight);
    return at::cross_entropy_loss(logits.to(at::kFloat), (ids + 2 * rank) % vocabulary);
  }
  torch::nn::Embedding tokens{nullptr};
  Head head{nullptr};
};
TORCH_MODULE(Tied);

void tie_across_units(Communicator& world) {
  Tied model;
  ShardedModule sharded(model, world);
  sharded.wrap(model->head.ptr(), [](const at::Tensor& x) { return x; });
  require_refused([&] { sharded.initialise(); },
                  {"tokens.weight (unit root)", "head.weight (unit head)", "are one tensor"});
}

void tie_in_one_unit(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    Tied plain, model;
    ShardedModule sharded(model, world, at_stage(stage));
    sharded.initialise();
    ShardOptimizer sgd(sharded.sharder(), Optimizer::kSgd, {.learning_rate = 0.5});
    const Gradients expected =
        mean_gradients(*plain, world.size(), [&](int r, int m) { return plain->loss(r, m); });
    sharded.run([&] { return model->loss(world.rank(), 0); }).backward();
    const std::string what = fmt::format("stage {}", stage);
    require(same_bits(sharded.gradient("tokens.weight"), sharded.gradient("head.weight")),
            what + ": one tensor has two gradients");
    require_gradients(sharded, {{"tokens.weight", expected.at("tokens.weight")}}, what);
    sgd.step({});
    sharded.gather();
    const at::Tensor moved = model->tokens->weight.detach() - plain->tokens->weight.detach();
    sharded.release();
    require(moved.abs().sum(1).min().item<double>() > 0, what + ": a row was not trained");
  }
}

// Local sums of 16-bit gradients count a tied tensor once, too.
void tie_with_local_sums(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    Tied plain, model;
    plain->to(at::kBFloat16);
    ZeroSettings settings = at_stage(stage);
    settings.compute = at::kBFloat16;
    settings.master = at::kFloat;
    settings.reduce_each = false;
    ShardedModule sharded(model, world, settings);
    sharded.initialise();
    for (int m = 0; m < 2; ++m) {
      sharded.run([&] { return model->loss(world.rank(), m); }, m == 1).backward();
    }
    const Gradients expected = mean_gradients(
        *plain, world.size(), [&](int r, int m) { return plain->loss(r, m); }, 2, true);
    require_gradients(sharded, {{"head.weight", expected.at("tokens.weight")}},
                      fmt::format("stage {}", stage), 2);
  }
}

void shared_memory(Communicator& world) {
  struct TwoViews : torch::nn::Module {
    TwoViews() {
      a = register_parameter("a", at::ones({3}));
      b = register_parameter("b", a.detach());
    }
    at::Tensor a, b;
  };
  ShardedModule sharded(std::make_shared<TwoViews>(), world);
  require_refused([&] { sharded.initialise(); }, {"'a' and 'b'", "two tensors over one memory"});
}

void no_false_ties(Communicator& world) {
  for (int i = 0; i < 50; ++i) {
    torch::nn::Sequential model(torch::nn::Linear(2, 3), torch::nn::Linear(3, 2));
    ShardedModule sharded(model.ptr(), world);
    sharded.wrap(model[0], [](const at::Tensor& x) { return x; });
    sharded.initialise();
  }
}

void one_element(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    ShardedTiny tiny(world, at_stage(stage));
    tiny.run(world.rank()).backward();
    const std::string name = "block1.scale";
    const Gradients expected = tiny.expected();
    require(expected.at(name).item<double>() != 0, "the case tests nothing");
    require_gradients(tiny.sharded, {{name, expected.at(name)}}, fmt::format("stage {}", stage));
  }
}

void replicas(Communicator& world) {
  ShardedTiny tiny(world, at_stage(0));
  ShardOptimizer optimizer(tiny.sharded.sharder(), Optimizer::kAdamW, {});
  tiny.run(world.rank()).backward();
  optimizer.step({});
  for (const at::Tensor& p : tiny.model->parameters()) {
    at::Tensor first = p.detach().clone();
    world.broadcast({first.data_ptr(), first.numel(), comm::DType::kFloat32}, 0).wait();
    require(same_bits(first, p.detach()), "replicas have drifted");
  }
}

void lonely_split(Communicator& world) {
  if (world.rank() == 0) {
    const auto body = [](Communicator& three) { three.split(three.rank() / 2); };
    for (const std::string& message : in_threads(3, body)) {
      require(message.find("alone in a group of size 1") != std::string::npos,
              "a split of size 1 was not refused: " + message);
    }
  }
  world.barrier().wait();
}

// --- parameters with few elements ----------------------------------------------------------------

// A linear layer without outputs in a block, and a block that has nothing else.
struct HollowImpl : torch::nn::Module {
  HollowImpl() {
    in = register_module("in", torch::nn::Linear(3, 3));
    hollow = register_module("hollow", torch::nn::Linear(3, 0));
    alone = register_module("alone", torch::nn::Sequential(torch::nn::Linear(3, 0)));
    set_values(*this);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = in->forward(x);
    return at::cat({y, hollow->forward(y)}, 1);
  }
  torch::nn::Linear in{nullptr};
  torch::nn::Linear hollow{nullptr};
  torch::nn::Sequential alone{nullptr};
};
TORCH_MODULE(Hollow);

void no_elements(Communicator& world) {
  for (int stage = 0; stage <= 3; ++stage) {
    Hollow plain, model;
    ShardedModule sharded(model, world, at_stage(stage));
    const auto alone = sharded.wrap(model->alone.ptr(), [&](const at::Tensor& x) {
      return at::cat({x, model->alone->forward(x)}, 1);
    });
    sharded.initialise();
    const auto plain_loss = [&](int r, int) {
      const at::Tensor y = plain->forward(rows({4, 3}, r));
      return at::cat({y, plain->alone->forward(y)}, 1).square().sum();
    };
    ShardOptimizer optimizer(sharded.sharder(), Optimizer::kAdamW, {});
    for (int step = 0; step < 2; ++step) {
      sharded.zero_grad();
      const at::Tensor x = rows({4, 3}, world.rank());
      sharded.run([&] { return alone(model->forward(x)).square().sum(); }).backward();
      if (step == 0) {
        require_gradients(sharded, mean_gradients(*plain, world.size(), plain_loss),
                          fmt::format("stage {}", stage));
      }
      optimizer.step({});
    }
  }
}

struct FewImpl : torch::nn::Module {
  FewImpl() {
    few = register_parameter("few", at::zeros({3, 1}));
    set_values(*this);
  }
  at::Tensor loss(int rank) { return (few * rows({3, 1}, rank)).square().sum(); }
  at::Tensor few;
};
TORCH_MODULE(Few);

at::Tensor stepped(Communicator& world, Few& model) {
  ShardedModule sharded(model, world);
  sharded.initialise();
  ShardOptimizer sgd(sharded.sharder(), Optimizer::kSgd, {.weight_decay = 0});
  sharded.run([&] { return model->loss(0); }).backward();
  sgd.step({});
  sharded.gather();
  at::Tensor values = model->few.detach().clone();
  sharded.release();
  return values;
}

// Every rank sees the same rows, so every number of ranks makes the same steps.
void three_rows(Communicator& world) {
  Few model;
  const at::Tensor first = stepped(world, model);
  require(!same_bits(first, Few()->few.detach()), "nothing was trained");
  if (world.rank() == 0) {
    for (int ranks : {2, 5}) {
      const auto body = [&](Communicator& threads) {
        Few again;
        const at::NoGradGuard no_grad;
        again->few.copy_(first);
        const at::AutoGradMode grad(true);
        const at::Tensor second = stepped(threads, again);
        Few plain;
        at::Tensor expected = first.clone().requires_grad_();
        (expected * rows({3, 1}, 0)).square().sum().backward();
        // Sums of equal gradients round: a few ulps per rank.
        require(at::allclose(second, expected.detach() - 1e-3 * expected.grad(), 1e-6, 1e-8),
                fmt::format("started on {} ranks: another step", threads.size()));
      };
      for (const std::string& message : in_threads(ranks, body)) require(message.empty(), message);
    }
  }
  world.barrier().wait();
}

}  // namespace

std::vector<Trouble> ownership_troubles() {
  return {
      {"trouble 1: a tied embedding and head in two units are refused, naming both",
       tie_across_units},
      {"trouble 1: a tie inside a unit trains every row of a vocabulary that R does not divide",
       tie_in_one_unit},
      {"trouble 1: a tie inside a unit, with local sums of 16-bit gradients", tie_with_local_sums},
      {"trouble 2: two tensors over one memory are refused, naming both", shared_memory},
      {"trouble 2: modules that come and go are never taken for ties", no_false_ties},
      {"trouble 3: a parameter of one element in an inner unit", one_element},
      {"trouble 4: stage 0 keeps replicas identical on different rows", replicas},
      {"trouble 4: a group of size 1 inside a larger world is refused", lonely_split},
      {"trouble 5: parameters, groups and units without elements", no_elements},
      {"trouble 6: fewer elements than ranks; the values start runs on 2 and 5 ranks", three_rows},
  };
}

}  // namespace plimsoll::tests
