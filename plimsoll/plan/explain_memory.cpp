#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/explain.hpp"

namespace plimsoll::plan {
namespace {

using Terms = std::vector<Term>;

// The product when it gives the value; else the plan's own sum, which tensors of several dtypes or
// shards make.
std::string product_or_sum(const std::string& product, std::int64_t result, std::int64_t value,
                           std::int64_t tensors) {
  if (result == value) return product;
  return fmt::format("sum over {} tensors = {}", grouped(tensors), grouped(value));
}

std::string state_formula(const Plan& plan) {
  const std::string psi = plan.parameters.frozen() > 0 ? "Psi_trainable" : "Psi";
  switch (plan.job.optimizer) {
    case Optimizer::kAdafactor:
      return "of each matrix (rows + columns) e, of each vector n e (torch/optim/_adafactor.py)";
    case Optimizer::kAdamW8bit:
      return "of each tensor 2 n + 8 ceil(n / 256), below 4,096 elements 8 n, and two tables of "
             "1,024 "
             "(bitsandbytes/optim/optimizer.py)";
    default:
      return psi + " moments state";
  }
}

// Of a recipe that is formulas.
void explain_formula_posts(const Plan& plan, Terms& terms) {
  const ClosedForm& form = *plan.closed_form;
  const std::string numbers =
      fmt::format("Psi = {}, R = {}", grouped(plan.parameters.all), plan.job.ranks);
  const std::string source = fmt::format("the formulas of {}", name(plan.job.precision));
  const auto add = [&](const char* post, const std::string& formula, std::int64_t value,
                       const char* path) {
    terms.push_back({std::string("posts.") + post, formula, numbers, value, "bytes", source,
                     Evidence::kSource, path});
  };
  add("P", form.parameters, plan.posts.parameters, "/posts/P");
  add("G", form.gradients, plan.posts.gradients, "/posts/G");
  add("O.moments", form.optimizer, plan.posts.moments, "/posts/O/moments");
}

void explain_posts(const Plan& plan, Terms& terms) {
  const Recipe recipe = plan.job.recipe();
  const std::int64_t psi = plan.parameters.all;
  const std::int64_t learning = plan.parameters.trainable;
  const std::int64_t e = network::size_of(recipe.compute);
  const std::int64_t master = recipe.master ? network::size_of(*recipe.master) : 0;
  const std::int64_t gradient = network::size_of(recipe.accumulator.value_or(recipe.compute));
  const std::int64_t state = network::size_of(recipe.state);
  const auto add = [&](const char* name, const char* formula, const std::string& product,
                       std::int64_t result, std::int64_t value, const char* path) {
    terms.push_back({std::string("posts.") + name, formula,
                     product_or_sum(product, result, value, plan.parameters.tensors), value,
                     "bytes", "alive when the optimizer of the steady step begins",
                     Evidence::kSource, path});
  };
  const bool frozen = learning < psi;
  const std::string weights =
      frozen ? fmt::format("{} x {} + {} x {}", grouped(psi), e, grouped(learning), master)
             : fmt::format("{} x ({} + {})", grouped(psi), e, master);
  if (plan.posts.by_formula) return explain_formula_posts(plan, terms);
  add("P", frozen ? "Psi weight + Psi_trainable master" : "Psi (weight + master)", weights,
      checked_add(checked_mul(psi, e), checked_mul(learning, master)), plan.posts.parameters,
      "/posts/P");
  add("G", frozen ? "Psi_trainable gradient" : "Psi gradient",
      fmt::format("{} x {}", grouped(learning), gradient), checked_mul(learning, gradient),
      plan.posts.gradients, "/posts/G");
  const int count = moments(plan.job.optimizer);
  add("O.moments", state_formula(plan).c_str(),
      fmt::format("{} x {} x {}", grouped(learning), count, state),
      checked_mul(learning, count * state), plan.posts.moments, "/posts/O/moments");
  const std::int64_t tensors = plan.posts.step_counters > 0 ? plan.parameters.trainable_tensors : 0;
  add("O.step_counters", "4 bytes per parameter tensor of optimizers that count steps in tensors",
      fmt::format("4 x {}", tensors), checked_mul(4, tensors), plan.posts.step_counters,
      "/posts/O/step_counters");
  terms.push_back(
      {"posts.A", "every storage that forward saved, once, without parameters and buffers",
       fmt::format("{} storages", grouped(plan.ledger.distinct.count)), plan.posts.activations,
       "bytes", "the ledger's count `distinct`", Evidence::kSource, "/posts/A"});
}

void explain_tags(const Plan& plan, Terms& terms) {
  const timeline::Peak& peak = plan.steady.peak;
  for (std::size_t i = 0; i < peak.alive.size(); ++i) {
    const std::string tag(timeline::name(static_cast<timeline::Tag>(i)));
    terms.push_back(
        {"tags." + tag, "blocks of this tag that are alive at the steady step's peak",
         fmt::format("in {}, at {}", timeline::name(peak.phase.phase), plan.steady.peak_operation),
         peak.alive[i], "bytes", "allocations minus releases of the walk up to there",
         Evidence::kSource, "/tags/" + tag});
  }
}

void explain_line(const char* name, const char* formula, const LedgerLine& line, const char* unit,
                  Terms& terms) {
  const std::string base = std::string("ledger.") + name;
  const std::string path = std::string("/ledger/") + name + "/";
  const std::string source = "what autograd saves during forward, tensor by tensor";
  terms.push_back({base + ".bytes", formula, fmt::format("{} {}", grouped(line.count), unit),
                   line.bytes, "bytes", source, Evidence::kSource, path + "bytes"});
  terms.push_back({base + "." + unit, formula, grouped(line.count), line.count, unit, source,
                   Evidence::kSource, path + unit});
}

void explain_ledger(const Plan& plan, Terms& terms) {
  explain_line("as_saved", "every save, parameters and their views included", plan.ledger.as_saved,
               "tensors", terms);
  explain_line("without_parameters", "as_saved minus parameters and buffers",
               plan.ledger.without_parameters, "tensors", terms);
  explain_line("distinct", "whole storages once, minus parameters and buffers",
               plan.ledger.distinct, "storages", terms);
  explain_line("distinct_hf", "distinct minus the model's inputs", plan.ledger.distinct_hf,
               "storages", terms);
}

void explain_step(const char* which, const StepTimeline& step, Terms& terms) {
  const std::string base = std::string("timeline.") + which;
  const std::string path = std::string("/timeline/") + which;
  std::string alive;
  for (std::size_t i = 0; i < step.peak.alive.size(); ++i) {
    if (step.peak.alive[i] == 0) continue;
    alive += fmt::format("{}{} {}", alive.empty() ? "" : " + ", grouped(step.peak.alive[i]),
                         timeline::name(static_cast<timeline::Tag>(i)));
  }
  const std::string source = "the walk: allocations minus releases, in order";
  terms.push_back({base + ".peak", "maximum over instants of the bytes alive", alive,
                   step.peak.bytes, "bytes", source, Evidence::kSource, path + "/peak/bytes"});
  for (std::size_t i = 0; i < step.phases.size(); ++i) {
    const timeline::PhaseFigures& phase = step.phases[i];
    const std::string name =
        fmt::format("{}.{}.{}", base, timeline::name(phase.key.phase), phase.key.micro_batch);
    const auto add = [&](const char* what, const char* formula, std::int64_t value) {
      terms.push_back({name + "." + what, formula,
                       fmt::format("start {}, end {}, peak {}", grouped(phase.start),
                                   grouped(phase.end), grouped(phase.peak)),
                       value, "bytes", source, Evidence::kSource,
                       fmt::format("{}/phases/{}/{}", path, i, what)});
    };
    add("start", "bytes alive when the phase begins", phase.start);
    add("end", "bytes alive after the phase's last release", phase.end);
    add("peak", "highest bytes alive during the phase", phase.peak);
  }
}

}  // namespace

void explain_memory(const Plan& plan, Terms& terms) {
  explain_posts(plan, terms);
  explain_tags(plan, terms);
  explain_ledger(plan, terms);
  explain_step("first", plan.first, terms);
  explain_step("steady", plan.steady, terms);
  terms.push_back({"memory.requested", "the steady step's peak, before any allocator rounds",
                   grouped(plan.steady.peak.bytes), plan.steady.peak.bytes, "bytes",
                   "the walk: allocations minus releases, in order", Evidence::kSource,
                   "/memory/requested"});
}

}  // namespace plimsoll::plan
