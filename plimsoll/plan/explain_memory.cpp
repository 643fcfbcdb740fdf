#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/plan/explain.hpp"
#include "plimsoll/plan/inference.hpp"
#include "plimsoll/timeline/alive_tags.hpp"

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

// "2 x (24 layers x 8,192 tokens x 2,048 bytes + ...)", a product for each kind of layers.
std::string cache_numbers(const Plan& plan) {
  InferenceJob job;
  job.kv_item = network::size_of(plan.job.cache_dtype());
  job.context = plan.job.sequence;
  std::string numbers;
  for (const CacheLine& line : kv_cache(shape_of(plan.spec), job).lines) {
    const std::int64_t kept = line.window > 0 ? std::min(line.window, job.context) : job.context;
    numbers += fmt::format("{}{} layers x {} tokens x {} bytes", numbers.empty() ? "" : " + ",
                           line.layers, grouped(kept), grouped(line.bytes_per_token));
  }
  return fmt::format("{} x ({})", plan.job.batch, numbers);
}

// Of inference, which has no gradients and no optimizer.
void explain_inference_posts(const Plan& plan, Terms& terms) {
  const InferencePosts& posts = *plan.inference;
  const timeline::PhaseFigures& pass = plan.steady.phases.at(0);
  const auto add = [&](const std::string& name, const char* formula, const std::string& numbers,
                       std::int64_t value) {
    std::string place = "/posts/" + name;
    std::replace(place.begin(), place.end(), '.', '/');
    terms.push_back({"posts." + name, formula, numbers, value, "bytes",
                     "the walk: one forward pass without gradients", Evidence::kSource, place});
  };
  const std::int64_t e = network::size_of(plan.job.recipe().compute);
  add("P", "Psi weight", fmt::format("{} x {}", grouped(plan.parameters.all), e),
      plan.posts.parameters);
  for (const char* none : {"G", "O.moments", "O.step_counters", "O.loss_scaler", "A"}) {
    add(none, "inference has none", "0", 0);
  }
  add("kv_cache", "B x sum over layers of min(S, window) e K (H key + H value)",
      cache_numbers(plan), posts.kv_cache);
  add("inputs", "token ids, tables of positions, masks", "allocated before the pass", posts.inputs);
  add("transients", "highest bytes alive during the pass - those when it begins",
      fmt::format("{} - {}", grouped(pass.peak), grouped(pass.start)), posts.transients);
  add("logits", "bytes alive when the pass ends - those when it begins",
      fmt::format("{} - {}", grouped(pass.end), grouped(pass.start)), posts.logits);
}

void explain_posts(const Plan& plan, Terms& terms) {
  if (plan.inference) return explain_inference_posts(plan, terms);
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
  terms.push_back({"posts.O.loss_scaler", "scale and growth tracker of recipe fp16, 4 bytes each",
                   recipe.loss_scaler ? "2 x 4" : "0 x 4", plan.posts.loss_scaler, "bytes",
                   "torch/amp/grad_scaler.py", Evidence::kSource, "/posts/O/loss_scaler"});
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
  for (const timeline::AliveTag& tag : timeline::alive_tags(step.peak)) {
    alive += fmt::format("{}{} {}", alive.empty() ? "" : " + ", grouped(tag.bytes),
                         timeline::name(tag.tag));
  }
  const std::string source = "the walk: allocations minus releases, in order";
  terms.push_back({base + ".peak", "maximum over instants of the bytes alive", alive,
                   step.peak.bytes, "bytes", source, Evidence::kSource, path + "/peak/bytes"});
  const std::vector<timeline::AliveTag> tags = timeline::alive_tags(step.peak);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    terms.push_back({fmt::format("{}.alive.{}", base, timeline::name(tags[i].tag)),
                     "blocks of this tag that are alive at this step's peak",
                     fmt::format("in {}, at {}", timeline::name(step.peak.phase.phase),
                                 step.peak_operation.empty() ? "its begin" : step.peak_operation),
                     tags[i].bytes, "bytes", source, Evidence::kSource,
                     fmt::format("{}/peak/alive/{}/bytes", path, i)});
  }
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

std::string instant_text(const std::optional<Instant>& at) {
  if (!at) return "";
  const std::string place =
      fmt::format("step {}, in {}", at->phase.step, timeline::name(at->phase.phase));
  return at->operation.empty() ? place : place + ", at " + at->operation;
}

void explain_workspaces(const Memory& memory, Terms& terms) {
  for (std::size_t i = 0; i < memory.lines.size(); ++i) {
    const MemoryLine& line = memory.lines[i];
    if (!line.size.bytes) continue;
    terms.push_back({"memory." + line.name, "memory that is no tensor of the model", line.source,
                     *line.size.bytes, "bytes", line.source, line.evidence,
                     fmt::format("/memory/lines/{}/bytes", i)});
  }
}

// Where and how a request failed.
void explain_failure(const Memory& memory, Terms& terms) {
  if (!memory.out_of_memory) return;
  const OutOfMemoryText& failed = *memory.out_of_memory;
  const auto add = [&](const char* name, const char* formula, std::int64_t bytes) {
    terms.push_back({std::string("memory.out_of_memory.") + name, formula, instant_text(failed.at),
                     bytes, "bytes", "rules of PyTorch's caching allocator", Evidence::kSource,
                     std::string("/memory/out_of_memory/") + name});
  };
  add("request", "the first request that no segment and no free memory can serve", failed.request);
  add("allocated", "bytes in blocks at that instant", failed.allocated);
  add("reserved", "bytes in segments at that instant, free ones given back", failed.reserved);
}

void explain_allocators(const Plan& plan, Terms& terms) {
  const Memory& memory = plan.memory;
  terms.push_back({"memory.requested", "the steady step's peak, before any allocator rounds",
                   grouped(plan.steady.peak.bytes), plan.steady.peak.bytes, "bytes",
                   "the walk: allocations minus releases, in order", Evidence::kSource,
                   "/memory/requested"});
  const bool cpu = plan.job.backend == Backend::kCpu;
  const std::string rules = cpu ? "the CPU allocator hands out what is asked for"
                                : "rules of PyTorch's caching allocator, each with its constant";
  const auto add = [&](const char* name, const char* formula, const std::string& numbers,
                       std::int64_t bytes) {
    terms.push_back({std::string("memory.") + name, formula, numbers, bytes, "bytes", rules,
                     Evidence::kSource, std::string("/memory/") + name});
  };
  if (memory.allocated.bytes) {
    add("allocated", "highest sum of blocks in the steady step, workspaces of libraries included",
        cpu ? grouped(memory.requested) : instant_text(memory.allocated_at),
        *memory.allocated.bytes);
  }
  if (memory.reserved.bytes) {
    add("reserved", "highest sum of segments in the whole run", instant_text(memory.reserved_at),
        *memory.reserved.bytes);
    add("unused_at_reserved_peak", "reserved - bytes in blocks at that instant",
        instant_text(memory.reserved_at), memory.unused_at_reserved_peak);
  }
  if (memory.device_used.bytes) {
    add("device_used", "reserved + context",
        fmt::format("{} + {}", grouped(*memory.reserved.bytes),
                    grouped(*memory.device_used.bytes - *memory.reserved.bytes)),
        *memory.device_used.bytes);
  }
  explain_workspaces(memory, terms);
  std::string assumed;
  for (const MemoryLine& line : memory.lines) {
    if (line.evidence != Evidence::kAssumed || !line.size.bytes) continue;
    assumed += (assumed.empty() ? "" : " + ") + grouped(*line.size.bytes);
  }
  terms.push_back({"memory.assumed_bytes", "sum of the lines of memory that are only assumed",
                   assumed, memory.assumed_bytes, "bytes", "the evidence of each line",
                   Evidence::kAssumed, "/memory/assumed_bytes"});
  explain_failure(memory, terms);
}

}  // namespace

void explain_memory(const Plan& plan, Terms& terms) {
  explain_posts(plan, terms);
  explain_tags(plan, terms);
  explain_ledger(plan, terms);
  explain_step("first", plan.first, terms);
  explain_step("steady", plan.steady, terms);
  explain_allocators(plan, terms);
}

}  // namespace plimsoll::plan
