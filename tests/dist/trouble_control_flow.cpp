// What user code may do with units: call them twice, branch, recompute, evaluate, read a child's weight.
#include <fmt/format.h>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/run/checkpoint.hpp"

#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

void for_stages(const std::function<void(int stage, const std::string& what)>& body) {
  for (int stage = 0; stage <= 3; ++stage) body(stage, fmt::format("stage {}", stage));
}

// --- branches -------------------------------------------------------------------------------------

struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    a = register_module("a", torch::nn::Linear(3, 3));
    b = register_module("b", torch::nn::Linear(3, 3));
    set_values(*this);
  }
  at::Tensor loss(int rank) {
    torch::nn::Linear& taken = rank == 0 ? a : b;
    return taken->forward(rows({2, 3}, rank)).square().sum();
  }
  torch::nn::Linear a{nullptr}, b{nullptr};
};
TORCH_MODULE(Branches);

void branches_in_one_unit(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    Branches plain, model;
    ShardedModule sharded(model, world, at_stage(stage));
    sharded.initialise();
    sharded.run([&] { return model->loss(world.rank()); }).backward();
    require_gradients(
        sharded, mean_gradients(*plain, world.size(), [&](int r, int) { return plain->loss(r); }),
        what);
  });
}

void branches_in_two_units(Communicator& world) {
  for (int stage : {2, 3}) {
    const auto body = [&](Communicator& threads) {
      Branches model;
      ShardedModule sharded(model, threads, at_stage(stage));
      const WrappedUnit a = sharded.wrap(model->a);
      const WrappedUnit b = sharded.wrap(model->b);
      sharded.initialise();
      const at::Tensor x = rows({2, 3}, threads.rank());
      sharded.run([&] { return (threads.rank() == 0 ? a : b)(x).square().sum(); }).backward();
    };
    require_world_refuses(world, body, {"[comm] rank 1", "unit=b", "unit=a"});
  }
}

// A unit that no rank uses in this step, and a parameter that none uses.
void optional_branch(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    Branches plain, model;
    ShardedModule sharded(model, world, at_stage(stage));
    const WrappedUnit a = sharded.wrap(model->a);
    const WrappedUnit b = sharded.wrap(model->b);
    sharded.initialise();
    ShardOptimizer optimizer(sharded.sharder(), Optimizer::kAdamW, {});
    for (int step = 0; step < 3; ++step) {
      const bool both = step != 1;
      const auto loss = [&](const auto& first, const auto& second, int rank) {
        const at::Tensor x = first(rows({2, 3}, rank));
        return (both ? second(x) : x).square().sum();
      };
      sharded.zero_grad();
      sharded.run([&] { return loss(a, b, world.rank()); }).backward();
      if (step == 1) {
        const auto plain_loss = [&](int r, int) {
          return loss([&](const at::Tensor& x) { return plain->a->forward(x); },
                      [&](const at::Tensor& x) { return plain->b->forward(x); }, r);
        };
        require_gradients(sharded, mean_gradients(*plain, world.size(), plain_loss), what);
      }
      if (step == 2) optimizer.step({});
    }
  });
}

// --- several passes -------------------------------------------------------------------------------

void two_forwards_two_backwards(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    ShardedTiny tiny(world, at_stage(stage));
    const at::Tensor first = tiny.run(world.rank(), 0);
    const at::Tensor second = tiny.run(world.rank(), 1);
    first.backward();
    second.backward();
    require_gradients(tiny.sharded, tiny.expected(2), what, 2);
  });
}

void side_output(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    ShardedTiny tiny(world, at_stage(stage));
    at::Tensor inner;
    tiny.sharded.run([&] {
      inner = tiny.loss(world.rank());
      return inner * 1.0;
    });
    inner.backward();  // not of what run() returned
    require_gradients(tiny.sharded, tiny.expected(), what);
  });
}

// --- recomputation --------------------------------------------------------------------------------

at::Tensor twice(const TinyModelImpl::Call& f, const at::Tensor& x) { return f(f(x)); }

void checkpoint_around_units(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    ShardedTiny tiny(world, at_stage(stage));
    for (auto* model : {&tiny.plain, &tiny.model}) {
      for (auto& call : (*model)->calls) {
        const auto body = [inner = call](const at::Tensor& x) { return twice(inner, x); };
        call = [body](const at::Tensor& x) { return engine::checkpoint(body, x, true); };
      }
    }
    tiny.run(world.rank()).backward();
    require_gradients(tiny.sharded, tiny.expected(), what);
    require(tiny.sharded.sharder().schedule().gathered() == 0, what + ": a unit stays gathered");
  });
}

void checkpoint_inside_units(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    ShardedTiny tiny(world, at_stage(stage));
    TinyModel model(tiny.shape);
    set_values(*model);
    ShardedModule sharded(model, world, at_stage(stage));
    for (std::size_t i = 0; i < model->blocks.size(); ++i) {
      const auto inner = [block = model->blocks[i]](const at::Tensor& x) mutable {
        return block->forward(x);
      };
      const auto call = sharded.wrap(model->blocks[i].ptr(), [inner](const at::Tensor& x) {
        return engine::checkpoint(inner, x, true);
      });
      model->calls[i] = [call](const at::Tensor& x) { return twice(call, x); };
      const TinyModelImpl::Call plain = tiny.plain->calls[i];
      tiny.plain->calls[i] = [plain](const at::Tensor& x) { return twice(plain, x); };
    }
    sharded.initialise();
    const Batch batch = batch_of(tiny.shape, 0, 0, world.rank());
    sharded.run([&] { return model->loss(batch.ids, batch.targets); }).backward();
    require_gradients(sharded, tiny.expected(), what);
  });
}

// A loop of backward passes inside a unit's backward: rows of x one by one, nothing kept between.
struct Tiled : torch::autograd::Function<Tiled> {
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*makes the result need a gradient*/,
                            const Body& body) {
    context->save_for_backward({x});
    context->saved_data["body"] = reinterpret_cast<std::int64_t>(new Body(body));
    return body(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    const std::unique_ptr<Body> body(reinterpret_cast<Body*>(context->saved_data["body"].toInt()));
    const at::AutoGradMode grad(true);
    std::vector<at::Tensor> parts;
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      const at::Tensor tile = x.narrow(0, row, 1).detach().requires_grad_();
      (*body)(tile).backward(gradients[0].narrow(0, row, 1));
      parts.push_back(tile.grad());
    }
    return {at::cat(parts), at::Tensor(), at::Tensor()};
  }
};

void partial_backwards(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    ShardedTiny tiny(world, at_stage(stage));
    TinyModel model(tiny.shape);
    set_values(*model);
    ShardedModule sharded(model, world, at_stage(stage));
    const auto tiled = [](const TinyBlock& block) {
      return [block](const at::Tensor& x) {
        const Tiled::Body body = [inner = block](const at::Tensor& tile) mutable {
          return inner->forward(tile);
        };
        return Tiled::apply(x, block->scale, body);
      };
    };
    for (std::size_t i = 0; i < model->blocks.size(); ++i) {
      model->calls[i] = sharded.wrap(model->blocks[i].ptr(), tiled(model->blocks[i]));
      tiny.plain->calls[i] = tiled(tiny.plain->blocks[i]);
    }
    sharded.initialise();
    const Batch batch = batch_of(tiny.shape, 0, 0, world.rank());
    for (int pass = 0; pass < 2; ++pass) {
      sharded.zero_grad();
      sharded.run([&] { return model->loss(batch.ids, batch.targets); }).backward();
      require_gradients(sharded, tiny.expected(), what);
    }
  });
}

// --- direct reads ---------------------------------------------------------------------------------

void direct_call(Communicator& world) {
  ShardedTiny tiny(world, at_stage(3));
  const at::Tensor x = rows({1, 4, 5}, 0);
  const std::initializer_list<const char*> parts = {"[zero]", "unit 'block1' is sharded", "Hint"};
  require_refused([&] { tiny.model->blocks[1]->forward(x); }, parts);
  require_refused([&] { tiny.model->blocks[1]->up->forward(x); }, parts);
  require_refused([&] { (tiny.model->blocks[1]->scale + 1).item<float>(); }, parts);
  require_refused([&] { tiny.model->norm->forward(x); }, {"unit 'root' is sharded"});
  require_refused(
      [&] { tiny.sharded.run([&] { return tiny.model->blocks[1]->forward(x).sum(); }); }, parts);
  tiny.run(world.rank()).backward();  // and goes on
  require_gradients(tiny.sharded, tiny.expected(), "after the refusals");
}

void weight_of_a_child(Communicator& world) {
  TinyModel model((TinyShape()));
  ShardedModule sharded(model, world);
  const WrappedUnit tokens = sharded.wrap(
      model->tokens.ptr(), [&](const at::Tensor& ids) { return model->tokens->forward(ids); });
  sharded.initialise();
  const Batch batch = batch_of(TinyShape(), 0, 0, world.rank());
  require_refused(
      [&] {
        sharded.run([&] { return at::linear(tokens(batch.ids), model->tokens->weight).sum(); });
      },
      {"unit 'tokens' is sharded", "be one unit"});
}

void stock_optimizer(Communicator& world) {
  for (int stage = world.size() > 1 ? 0 : 1; stage <= 3; ++stage) {
    ShardedTiny tiny(world, at_stage(stage));
    torch::optim::SGD stock(tiny.model->parameters(), 0.1);
    tiny.run(world.rank()).backward();
    // At stage 3 the first thing that is read and not there is the parameter, not its gradient.
    const char* const reason = stage == 3 ? "is sharded" : "ShardOptimizer";
    const std::initializer_list<const char*> parts = {"is sharded", reason};
    require_refused([&] { stock.step(); }, parts);
    require_refused([&] { torch::nn::utils::clip_grad_norm_(tiny.model->parameters(), 1.0); },
                    parts);
    tiny.sharded.zero_grad();
    tiny.run(world.rank()).backward();
    require_gradients(tiny.sharded, tiny.expected(), "after the refusals");
  }
}

void evaluation(Communicator& world) {
  for_stages([&](int stage, const std::string& what) {
    ShardedTiny tiny(world, at_stage(stage));
    const std::int64_t before = engine::total(engine::live_bytes());
    for (int i = 0; i < 3; ++i) {
      const at::NoGradGuard no_grad;
      tiny.run(world.rank(), i);
    }
    require(engine::total(engine::live_bytes()) == before, what + ": evaluation left bytes behind");
    require(tiny.sharded.sharder().schedule().gathered() == 0, what + ": a unit stays gathered");
  });
}

}  // namespace

std::vector<Trouble> control_flow_troubles() {
  return {
      {"trouble 11: other branches on other ranks, in one unit: zeros are contributed",
       branches_in_one_unit},
      {"trouble 11: other branches on other ranks, in two units, are refused, naming both",
       branches_in_two_units},
      {"trouble 11: a unit that is not used in every step", optional_branch},
      {"trouble 15: two forwards, then two backwards", two_forwards_two_backwards},
      {"trouble 15: a backward pass of something else than run() returned", side_output},
      {"trouble 17: checkpointing around units, each called twice", checkpoint_around_units},
      {"trouble 17: checkpointing inside units, each called twice", checkpoint_inside_units},
      {"trouble 19: calling an inner module directly is refused, naming its unit", direct_call},
      {"trouble 19: a stock optimizer over a sharded module is refused", stock_optimizer},
      {"trouble 20: reading a child's weight is refused, naming its unit", weight_of_a_child},
      {"trouble 21: evaluation leaves nothing gathered and no bytes behind", evaluation},
      {"trouble 52: a loop of backward passes inside a unit", partial_backwards},
  };
}

}  // namespace plimsoll::tests
