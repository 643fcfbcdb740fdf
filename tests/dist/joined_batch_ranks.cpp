// Oracle 2: ranks against one process that takes their rows as one batch, and against the recorded runs
// of PyTorch (truth/reference_losses.json).
//   engine_ranks joined_batch_ranks R [large]
// Exit 0 when everything is close enough; `large`: the 10M models.
//
// Sums over rows are rounded in another order, so tensors are compared by max|difference| / max|reference|.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/dist/engine_ranks.hpp"
#include "tests/dist/trouble.hpp"
#include "tests/engine/closed_form_run.hpp"

namespace plimsoll::tests {
namespace {

using nlohmann::json;

struct Tolerance {
  double loss, gradient, parameter, recorded;
};
// fp32: AdamW divides by the root of tiny second moments, so parameters are compared in fp64 alone.
// `recorded`: what the recorded runs' README allows for another library.
constexpr Tolerance kFp64{1e-14, 1e-12, 2e-12, 1e-9};
constexpr Tolerance kFp32{1e-6, 1e-4, INFINITY, 3e-6};

void require_close(double seen, double expected, double tolerance, const std::string& what) {
  const double off = std::abs(seen - expected) / std::abs(expected);
  require(off <= tolerance, fmt::format("{}: {} against {}, relative difference {:.2g} > {}", what,
                                        seen, expected, off, tolerance));
}

void require_close(const at::Tensor& seen, const at::Tensor& expected, double tolerance,
                   const std::string& what) {
  const double scale = expected.abs().max().item<double>();
  const double off = (seen - expected).abs().max().item<double>();
  require(off <= tolerance * scale, fmt::format("{}: {:.2g} of {:.2g}, expected at most {}", what,
                                                off / scale, scale, tolerance));
}

double mean_over_ranks(Communicator& world, double value) {
  return sum_over_ranks(world, value) / world.size();
}

// --- networks -----------------------------------------------------------------------------------

void compare_step(ClosedFormRun& shared, ClosedFormRun* one, const Tolerance& tolerance,
                  bool parameters, const std::string& what) {
  for (const std::string& name : shared.parameter_names()) {
    const at::Tensor gradient = shared.gradient(name);
    const at::Tensor value = parameters ? shared.parameter(name) : at::Tensor();
    if (one == nullptr) continue;
    require_close(gradient, one->gradient(name), tolerance.gradient,
                  what + ", gradient of " + name);
    if (!parameters) continue;
    require_close(value, one->parameter(name), tolerance.parameter, what + ", parameter " + name);
  }
}

void recorded_case(Communicator& world, const std::string& name, const json& expected, int stage) {
  const std::string what = fmt::format("{}, stage {}", name, stage);
  const json& config = expected["config"];
  const Tolerance& tolerance = config["dtype"] == "fp64" ? kFp64 : kFp32;
  ClosedFormRun shared(config, {&world, static_cast<Stage>(stage)});
  std::optional<ClosedFormRun> one;
  if (world.rank() == 0) one.emplace(config);
  const std::size_t steps = expected["losses"].size();
  for (std::size_t step = 0; step < steps; ++step) {
    const std::string where = fmt::format("{}, step {}", what, step);
    const double loss = mean_over_ranks(world, shared.step());
    const double norm = shared.gradient_norm();
    if (one) {
      require_close(loss, one->step(), tolerance.loss, where + ", loss");
      require_close(loss, expected["losses"][step].get<double>(), tolerance.recorded,
                    where + ", recorded loss");
      require_close(norm, expected["grad_norms"][step].get<double>(), tolerance.recorded,
                    where + ", norm");
    }
    // Rounding that steps have added up is no longer that of one gradient.
    if (step == 0 || step + 1 == steps) {
      compare_step(shared, one ? &*one : nullptr, tolerance, step + 1 == steps, where);
    }
  }
}

int recorded_cases(Communicator& world, bool large) {
  const json cases =
      json::parse(std::ifstream(PLIMSOLL_TRUTH_DIR "/reference_losses.json"))["cases"];
  int count = 0;
  for (const auto& [name, expected] : cases.items()) {
    const bool is_large = expected["params"].get<std::int64_t>() > 1'000'000;
    if (is_large != large) continue;
    recorded_case(world, name, expected, (count + world.size()) % 4);
    world.barrier().wait();
    ++count;
  }
  return count;
}

// --- modules ------------------------------------------------------------------------------------

at::Tensor joined_loss(TinyModel& model, int ranks, int step) {
  std::vector<at::Tensor> ids, targets;
  for (int r = 0; r < ranks; ++r) {
    const Batch batch = batch_of({}, step, 0, r);
    ids.push_back(batch.ids);
    targets.push_back(batch.targets);
  }
  return model->loss(at::cat(ids), at::cat(targets));
}

void module_case(Communicator& world, at::ScalarType type, int stage) {
  const Tolerance& tolerance = type == at::kDouble ? kFp64 : kFp32;
  const std::string what = fmt::format("module, {}, stage {}", c10::toString(type), stage);
  TinyModel plain((TinyShape())), model((TinyShape()));
  for (auto* m : {&plain, &model}) {
    set_values(**m);
    (*m)->to(type);
  }
  ZeroSettings settings = at_stage(stage);
  settings.moment = type;
  ShardedModule sharded(model, world, settings);
  for (std::size_t i = 0; i < model->blocks.size(); ++i) {
    model->calls[i] = sharded.wrap(model->blocks[i]);
  }
  sharded.initialise();
  ShardOptimizer optimizer(sharded.sharder(), Optimizer::kSgdMomentum, {.learning_rate = 0.05});
  std::vector<at::Tensor> momenta(plain->parameters().size());
  for (int step = 0; step < 5; ++step) {
    const Batch batch = batch_of({}, step, 0, world.rank());
    const at::Tensor loss = sharded.run([&] { return model->loss(batch.ids, batch.targets); });
    loss.backward();
    plain->zero_grad();
    const at::Tensor expected = joined_loss(plain, world.size(), step);
    expected.backward();
    const std::string where = fmt::format("{}, step {}", what, step);
    require_close(mean_over_ranks(world, loss.item<double>()), expected.item<double>(),
                  tolerance.loss, where + ", loss");
    for (const auto& item : plain->named_parameters()) {
      require_close(sharded.gradient(item.key()), item.value().grad(), tolerance.gradient,
                    where + ", gradient of " + item.key());
    }
    optimizer.step({});
    sharded.zero_grad();
    const std::vector<at::Tensor> parameters = plain->parameters();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!momenta[p].defined()) momenta[p] = at::zeros_like(parameters[p]).detach();
      engine::sgd_step({parameters[p].detach(), parameters[p].grad(), momenta[p], {}, {}},
                       {.learning_rate = 0.05}, 1.0);
    }
  }
  sharded.gather();
  const auto parameters = plain->named_parameters();
  for (const auto& item : model->named_parameters()) {
    require_close(item.value().detach(), parameters[item.key()].detach(), tolerance.parameter,
                  what + ", parameter " + item.key());
  }
  sharded.release();
}

int check_joined_batches(Communicator& world, bool large) {
  at::set_num_threads(1);
  int count = recorded_cases(world, large);
  for (int stage = 0; stage <= 3 && !large; ++stage) {
    for (at::ScalarType type : {at::kFloat, at::kDouble}) {
      module_case(world, type, stage);
      ++count;
    }
  }
  if (world.rank() == 0) fmt::print("{} cases close at {} ranks\n", count, world.size());
  return count > 0 ? 0 : 1;
}

}  // namespace

int joined_batch_ranks(int argc, char** argv) {
  use_kernels_of_the_record();
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  const bool large = argc > 3 && std::string_view(argv[3]) == "large";
  return plimsoll::launch(argc, argv, ranks,
                          [&](Communicator& world) { return check_joined_batches(world, large); });
}

}  // namespace plimsoll::tests
