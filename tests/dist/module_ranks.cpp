// Ranks that shard a user's module and compare with one process, bit for bit (oracle 1).
//   engine_ranks module_ranks R [all]
// Exit 0 when everything agrees; `all`: every combination, not every pair.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "plimsoll/engine/run/checkpoint.hpp"
#include "plimsoll/zero.hpp"

#include "tests/dist/engine_ranks.hpp"
#include "tests/dist/module_cases.hpp"
#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

constexpr int kSteps = 5;

TinyModel make_model(const ModuleCase& c) {
  at::manual_seed(11);
  TinyModel model(c.shape);
  model->to(c.type);
  for (TinyModel::Impl::Call& call : model->calls) {
    if (!c.checkpoint) break;
    call = [inner = call](const at::Tensor& x) {
      return engine::checkpoint(inner, x, /*keep_random_state=*/true);
    };
  }
  return model;
}

void seed_rank(int step, int micro_batch, int rank) {
  at::manual_seed(static_cast<std::uint64_t>(7 + step + 50 * micro_batch + 1000 * rank));
}

struct TrainedModule {
  std::vector<double> losses;  // by step: sum over micro-batches and ranks, in rank order
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;  // mean, of the last step
  std::vector<double> norms;
};

TrainedModule trained_on_ranks(const ModuleCase& c, Communicator& world) {
  TinyModel model = make_model(c);
  zero::Settings settings;
  settings.stage = c.stage;
  settings.prefetch = c.prefetch;
  settings.reduce_each = c.reduce_each;
  settings.reshard_root = c.reshard_root;
  settings.moment = c.type;
  settings.moments = plan::moments(c.optimizer);
  if (c.mixed) {
    settings.compute = at::kBFloat16;
    settings.master = at::kFloat;
  }
  ShardedModule module = fully_shard(model, world, settings);
  for (std::size_t i = 0; i < model->blocks.size(); ++i) {
    model->calls[i] = module.wrap(model->blocks[i].ptr(), model->calls[i]);
  }
  module.initialise();
  ShardOptimizer optimizer(module.sharder(), c.optimizer, OptimizerSettings{});
  TrainedModule trained;
  for (int step = 0; step < kSteps; ++step) {
    double losses = 0;
    for (int m = 0; m < c.micro_batches; ++m) {
      seed_rank(step, m, world.rank());
      const Batch batch = batch_of(c.shape, step, m, world.rank());
      at::Tensor loss = module.run([&] { return model->loss(batch.ids, batch.targets); },
                                   m + 1 == c.micro_batches);
      loss.backward();
      losses += loss.item<double>();
    }
    trained.losses.push_back(sum_over_ranks(world, losses));
    if (step + 1 == kSteps) {
      for (const auto& item : model->named_parameters()) {
        trained.gradients.push_back(module.gradient(item.key(), c.micro_batches));
      }
    }
    zero::StepOptions options;
    options.micro_batches = c.micro_batches;
    options.clip = c.clip;
    options.norm = true;
    trained.norms.push_back(optimizer.step(options).gradient_norm);
    module.zero_grad();
  }
  module.gather();
  for (const at::Tensor& p : model->parameters()) trained.parameters.push_back(p.detach().clone());
  module.release();
  return trained;
}

// One process that takes the ranks' rows as micro-batches in rank order and adds as the run does.
class OneProcess {
 public:
  OneProcess(const ModuleCase& c, int ranks) : case_(c), ranks_(ranks), model_(make_model(c)) {
    for (const at::Tensor& p : model_->parameters()) {
      const at::Tensor master = p.detach().clone();
      masters_.push_back(master);
      const int moments = plan::moments(c.optimizer);
      first_.push_back(moments > 0 ? at::zeros_like(master) : at::Tensor());
      second_.push_back(moments > 1 ? at::zeros_like(master) : at::Tensor());
    }
    if (c.mixed) model_->to(at::kBFloat16);
  }

  TrainedModule run() {
    TrainedModule trained;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<double> losses(static_cast<std::size_t>(ranks_));
      const std::vector<at::Tensor> sums =
          case_.reduce_each ? sums_each(step, losses) : sums_once(step, losses);
      double loss = 0;
      for (double l : losses) loss += l;
      trained.losses.push_back(loss);
      const double parts = static_cast<double>(ranks_) * case_.micro_batches;
      if (step + 1 == kSteps) {
        for (const at::Tensor& sum : sums) trained.gradients.push_back(sum.div(parts));
      }
      double squares = 0;
      for (const at::Tensor& sum : sums)
        squares += sum.to(at::kDouble).square().sum().item<double>();
      const double norm = static_cast<float>(std::sqrt(squares) / parts);
      trained.norms.push_back(norm);
      double scale = 1 / parts;
      if (case_.clip > 0 && norm > case_.clip) scale *= static_cast<float>(case_.clip / norm);
      update(sums, step + 1, scale);
    }
    for (const at::Tensor& p : model_->parameters()) trained.parameters.push_back(p.detach());
    return trained;
  }

 private:
  std::vector<at::Tensor> gradients(int step, int m, int rank, double& loss_sum) {
    seed_rank(step, m, rank);
    const Batch batch = batch_of(case_.shape, step, m, rank);
    at::Tensor loss = model_->loss(batch.ids, batch.targets);
    loss.backward();
    loss_sum += loss.item<double>();
    std::vector<at::Tensor> result;
    for (const at::Tensor& p : model_->parameters()) {
      result.push_back(p.grad().to(sum_type()));
      p.mutable_grad().reset();
    }
    return result;
  }

  // Each micro-batch over the ranks, then over micro-batches.
  std::vector<at::Tensor> sums_each(int step, std::vector<double>& losses) {
    std::vector<at::Tensor> total;
    for (int m = 0; m < case_.micro_batches; ++m) {
      std::vector<at::Tensor> sums;
      for (int r = 0; r < ranks_; ++r) {
        add(sums, gradients(step, m, r, losses[static_cast<std::size_t>(r)]));
      }
      add(total, sums);
    }
    return total;
  }

  // Each rank over its micro-batches, then over the ranks.
  std::vector<at::Tensor> sums_once(int step, std::vector<double>& losses) {
    std::vector<at::Tensor> total;
    for (int r = 0; r < ranks_; ++r) {
      std::vector<at::Tensor> sums;
      for (int m = 0; m < case_.micro_batches; ++m) {
        add(sums, gradients(step, m, r, losses[static_cast<std::size_t>(r)]));
      }
      add(total, sums);
    }
    return total;
  }

  static void add(std::vector<at::Tensor>& sums, const std::vector<at::Tensor>& more) {
    if (sums.empty()) {
      sums = more;
      return;
    }
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + more[i];
  }

  at::ScalarType sum_type() const { return case_.type == at::kDouble ? at::kDouble : at::kFloat; }

  void update(const std::vector<at::Tensor>& sums, int step, double scale) {
    const std::vector<at::Tensor> parameters = model_->parameters();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const at::NoGradGuard no_grad;
      const at::Tensor p = parameters[i].detach();
      const at::Tensor gradient = sums[i].contiguous();
      const at::Tensor copy = case_.mixed ? p : at::Tensor();
      const engine::OptimizerRange range{case_.mixed ? masters_[i] : p, gradient, first_[i],
                                         second_[i], copy};
      step_one(range, step, scale);
    }
  }

  void step_one(const engine::OptimizerRange& range, int step, double scale) const {
    switch (case_.optimizer) {
      case Optimizer::kAdamW:
        return engine::adamw_step(range, {}, step, scale);
      case Optimizer::kLion:
        return engine::lion_step(range, {}, scale);
      default:
        return engine::sgd_step(range, {}, scale);
    }
  }

  const ModuleCase case_;
  const int ranks_;
  TinyModel model_;
  std::vector<at::Tensor> masters_, first_, second_;
};

void expect(bool holds, const ModuleCase& c, const std::string& what) {
  if (!holds)
    throw std::runtime_error(fmt::format("{}: {} differs from one process", text_of(c), what));
}

void compare(const ModuleCase& c, const TrainedModule& run, const TrainedModule& oracle) {
  for (std::size_t s = 0; s < oracle.losses.size(); ++s) {
    expect(run.losses[s] == oracle.losses[s], c,
           fmt::format("loss of step {} ({} against {})", s, run.losses[s], oracle.losses[s]));
    expect(run.norms[s] == oracle.norms[s], c,
           fmt::format("norm of step {} ({} against {})", s, run.norms[s], oracle.norms[s]));
  }
  for (std::size_t i = 0; i < oracle.parameters.size(); ++i) {
    expect(same_bits(run.gradients[i], oracle.gradients[i]), c, fmt::format("gradient {}", i));
    expect(same_bits(run.parameters[i], oracle.parameters[i]), c, fmt::format("parameter {}", i));
  }
}

int check_modules(Communicator& world, bool all) {
  at::set_num_threads(1);
  constexpr std::size_t kPairwise = 30;  // for each of four numbers of ranks
  int count = 0;
  for (const ModuleCase& c : all ? all_cases() : pairwise_cases(world.size(), kPairwise)) {
    const TrainedModule run = trained_on_ranks(c, world);
    if (world.rank() == 0) compare(c, run, OneProcess(c, world.size()).run());
    world.barrier().wait();
    ++count;
  }
  if (world.rank() == 0) fmt::print("{} cases agree at {} ranks\n", count, world.size());
  return 0;
}

}  // namespace

int module_ranks(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  const bool all = argc > 3 && std::string_view(argv[3]) == "all";
  return plimsoll::launch(argc, argv, ranks,
                          [&](Communicator& world) { return check_modules(world, all); });
}

}  // namespace plimsoll::tests
