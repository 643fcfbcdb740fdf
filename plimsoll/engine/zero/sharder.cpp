#include "plimsoll/engine/zero/sharder.hpp"

#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/library/gradient_hooks.hpp"
#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/engine/zero/blocks.hpp"
#include "plimsoll/engine/zero/squares.hpp"

namespace plimsoll::engine::zero {

using shard::ActionKind;
using shard::Stage;
using shard::UnitIndex;
using timeline::Tag;

namespace {

std::vector<shard::UnitTraits> traits(const shard::Units& units,
                                      const std::vector<shard::UnitLayout>& layouts) {
  std::vector<shard::UnitTraits> result;
  for (std::size_t u = 0; u < layouts.size(); ++u) {
    result.push_back({units.units[u].root, layouts[u].elements() == 0, layouts[u].has_trainable(),
                      layouts[u].has_frozen()});
  }
  return result;
}

shard::ScheduleOptions schedule_options(const Settings& s, std::int32_t ranks) {
  return {s.stage, ranks, s.prefetch, s.reshard_root, s.reduce_each};
}

}  // namespace

Sharder::Sharder(ShardedModel model, const Settings& settings, comm::Communicator& world,
                 const UnitShard::Fill& fill, Meter* meter)
    : model_(std::move(model)),
      settings_(settings),
      world_(world),
      meter_(meter),
      schedule_({}, schedule_options(settings, world.size())),
      accumulators_(model_.tensors.size()) {
  const std::vector<shard::UnitLayout> layouts =
      lay_out(model_.units, model_.parameters, world.size());
  schedule_ = shard::Schedule(traits(model_.units, layouts),
                              schedule_options(settings, world.size()), model_.order);
  for (std::size_t u = 0; u < layouts.size(); ++u) {
    const shard::Unit& unit = model_.units.units[u];
    units_.push_back(
        std::make_unique<UnitShard>(unit.name, layouts[u], model_.tensors, settings, world));
    operations_.push_back(fmt::format("unit {}", unit.name));
    std::int64_t count = 0;
    for (std::size_t p : unit.parameters) count += model_.parameters[p].trainable ? 1 : 0;
    if (!layouts[u].has_trainable()) count = 0;  // all of them without elements
    trainable_.push_back(count);
  }
  forget_pass();
  listed_.resize(model_.tensors.size());
  std::iota(listed_.begin(), listed_.end(), std::size_t{0});
  for (const shard::Unit& unit : model_.units.units) {
    for (const shard::Unit::Alias& tie : unit.aliases) listed_[tie.alias] = tie.listed;
  }
  for (const std::unique_ptr<UnitShard>& unit : units_) {
    if (settings_.stage == Stage::kNothing) {
      unit->adopt(fill);
    } else {
      unit->take_over(fill);
    }
  }
  watch_gradients();
}

Sharder::~Sharder() {
  for (std::size_t p = 0; p < model_.tensors.size(); ++p) {
    if (model_.parameters[p].trainable) forget_gradient(model_.tensors[p]);
  }
}

void Sharder::watch_gradients() {
  for (std::size_t p = 0; p < model_.tensors.size(); ++p) {
    if (!model_.parameters[p].trainable || listed_[p] != p) continue;
    on_gradient(model_.tensors[p], [this, p](const at::Tensor&) { gradient_arrived(p); });
  }
}

void Sharder::enter_pass() {
  if (schedule_.in_backward()) return;
  pass_ = running_pass();
  if (!pass_begins_) return;
  pass_begins_();
  carry_out(schedule_.backward_begins(root()));  // whatever came first, the root may be read
}

void Sharder::sum_locally(std::size_t p) {
  const at::Tensor& tensor = model_.tensors[p];
  if (!arithmetic(settings_, tensor.scalar_type(), world_.size()).local_sums) return;
  at::Tensor& gradient = tensor.mutable_grad();
  if (accumulators_[p].defined()) {
    add_gradient(accumulators_[p], gradient);
  } else {
    const TagScope tag(Tag::kGradients);
    accumulators_[p] = gradient.detach().to(sum_type(tensor.scalar_type()));
  }
  gradient.reset();
}

// A backward pass inside a node of this one (a loop of partial backwards) may bring the same gradient
// many times; such a unit is complete when the gradient of its input says so, or at the end.
void Sharder::gradient_arrived(std::size_t p) {
  enter_pass();
  const auto u = model_.units.unit_of[p];
  Arrivals& arrivals = arrivals_[u];
  if (trainable_[u] == 0) return;
  if (arrivals.complete) {
    throw std::logic_error(
        fmt::format("[zero] parameter '{}' got a gradient after those of its unit '{}' were summed "
                    "over the ranks, expected it before the gradient of the unit's input. Hint: a "
                    "backward() inside backward may use a parameter only as long as its unit runs",
                    model_.parameters[p].name, units_[u]->name()));
  }
  sum_locally(p);
  if (running_pass() != pass_) {
    arrivals.nested = true;
  } else if (--arrivals.missing == 0) {
    complete(static_cast<UnitIndex>(u));
  }
}

void Sharder::complete(UnitIndex u) {
  arrivals_[static_cast<std::size_t>(u)].complete = true;
  carry_out(schedule_.gradients_complete(u));
}

// --- events -------------------------------------------------------------------------------------

void Sharder::forward_begins(UnitIndex u, shard::Pass pass) {
  carry_out(schedule_.forward_begins(u, pass));
}
void Sharder::forward_ends(UnitIndex u) { carry_out(schedule_.forward_ends(u)); }

void Sharder::begin_micro_batch(bool last) {
  last_micro_batch_ = last;
  schedule_.begin_micro_batch(last);
}

void Sharder::backward_begins(UnitIndex u) {
  enter_pass();
  carry_out(schedule_.backward_begins(u));
}

void Sharder::backward_passed(UnitIndex u) {
  enter_pass();
  const Arrivals& arrivals = arrivals_[static_cast<std::size_t>(u)];
  if (arrivals.nested && !arrivals.complete) complete(u);
  carry_out(schedule_.backward_passed(u));
}

void Sharder::backward_ends() {
  carry_out(schedule_.backward_ends());
  unreduced_ = sharded() && !settings_.reduce_each && !last_micro_batch_;
  forget_pass();
}

void Sharder::abandon() {
  carry_out(schedule_.abandon());
  forget_pass();
  zero_grad();
}

void Sharder::forget_pass() {
  pass_ = -1;
  arrivals_.clear();
  for (const std::int64_t count : trainable_) arrivals_.push_back({count});
}

void Sharder::expect_reduced() const {
  if (schedule_.in_backward()) {
    throw std::logic_error(
        "[zero] step() after a backward pass that did not end, expected one that did. Hint: the "
        "gradients of a pass that threw are lost; run() the step again");
  }
  if (unreduced_) {
    throw std::logic_error(
        "[zero] step() before the last micro-batch, expected gradients that are summed over the "
        "ranks. Hint: run(forward, /*last_micro_batch=*/true) for the last one of a step");
  }
}

void Sharder::zero_grad() {
  unreduced_ = false;
  for (const std::unique_ptr<UnitShard>& unit : units_) unit->drop_sums();
  for (at::Tensor& accumulator : accumulators_) accumulator.reset();
  for (const at::Tensor& tensor : model_.tensors) tensor.mutable_grad().reset();
}

void Sharder::updated(UnitIndex u) { carry_out(schedule_.updated(u)); }

void Sharder::carry_out(shard::Actions actions) {
  if (actions.empty()) return;
  for (const shard::Action& action : actions) {
    if (meter_ != nullptr) meter_->operation(operations_[static_cast<std::size_t>(action.unit)]);
    carry_out(action);
  }
  if (meter_ != nullptr) meter_->operation("");
}

void Sharder::carry_out(const shard::Action& action) {
  UnitShard& unit = *units_[static_cast<std::size_t>(action.unit)];
  switch (action.kind) {
    case ActionKind::kGather:
      return unit.begin_gather(label(unit));
    case ActionKind::kWait:
      return unit.finish_gather();
    case ActionKind::kRelease:
      return unit.release();
    case ActionKind::kReduce:
      return unit.begin_reduction(accumulators_, label(unit));
    case ActionKind::kFinishReduce:
      return unit.finish_reduction();
    case ActionKind::kUpdate:
      return unit.update(label(unit));
  }
}

// --- the step -----------------------------------------------------------------------------------

// Where nothing is reduced gradients are still the parameters' own.
double Sharder::squared_norm_of_one_rank() const {
  double total = 0;
  for (UnitIndex u = 0; u < unit_count(); ++u) {
    for (const OwnedPiece& piece : owned(u)) {
      if (piece.gradient.defined()) total += sum_of_squares(piece.gradient);
    }
  }
  return total;
}

double Sharder::squared_norm_of_sums() {
  if (settings_.stage == Stage::kNothing && world_.size() == 1) return squared_norm_of_one_rank();
  const bool divided = settings_.stage != Stage::kNothing;
  std::vector<double> by_rank(static_cast<std::size_t>(world_.size()));
  for (std::int32_t r = 0; r < world_.size(); ++r) {
    if (divided && r != world_.rank()) continue;
    for (const std::unique_ptr<UnitShard>& unit : units_) {
      for (const at::Tensor& sums : unit->sums_of(r)) {
        by_rank[static_cast<std::size_t>(r)] += sum_of_squares(sums);
      }
    }
  }
  double total = 0;
  if (!divided) {
    for (double part : by_rank) total += part;
    return total;
  }
  const double own = by_rank[static_cast<std::size_t>(world_.rank())];
  const comm::ConstView input{&own, 1, comm::DType::kFloat64};
  world_.all_reduce(input, {&total, 1, comm::DType::kFloat64}, {"gradient norm", step_}).wait();
  return total;
}

// Owners write their pieces into zeros; the sum over ranks joins them exactly.
at::Tensor Sharder::gathered_sum(std::size_t parameter) {
  const std::size_t p = listed_.at(parameter);
  if (!model_.parameters[p].trainable) return {};
  const at::Tensor& tensor = model_.tensors[p];
  const at::TensorOptions options = tensor.options().dtype(sum_type(tensor.scalar_type()));
  at::Tensor whole = at::zeros({tensor.numel()}, options.requires_grad(false));
  bool have = false;
  for (const OwnedPiece& piece : owned(static_cast<UnitIndex>(model_.units.unit_of[p]))) {
    if (piece.parameter != p || !piece.gradient.defined()) continue;
    have = true;
    const shard::Range& range = piece.in_parameter;
    whole.narrow(0, range.begin, range.size()).copy_(piece.gradient);
  }
  have = have || unit(static_cast<UnitIndex>(model_.units.unit_of[p])).has_sums();
  if (!have || tensor.numel() == 0) return {};
  if (settings_.stage != Stage::kNothing) {
    world_.all_reduce(view_of(whole), view_of(whole), {model_.parameters[p].name, step_}).wait();
  }
  return whole.view(tensor.sizes());
}

std::vector<OwnedPiece> Sharder::held() const {
  std::vector<OwnedPiece> pieces;
  for (const std::unique_ptr<UnitShard>& unit : units_) {
    for (OwnedPiece& piece : unit->held()) pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::vector<OwnedPiece> Sharder::share() const {
  std::vector<OwnedPiece> pieces;
  for (const std::unique_ptr<UnitShard>& unit : units_) {
    for (OwnedPiece& piece : unit->share()) pieces.push_back(std::move(piece));
  }
  return pieces;
}

void Sharder::adopt_held() {
  for (UnitIndex u = 0; u < unit_count(); ++u) {
    units_[static_cast<std::size_t>(u)]->adopt_held();
    updated(u);
  }
}

void Sharder::gather_everything() {
  if (settings_.stage != Stage::kParameters) return;
  for (UnitIndex u = 0; u < unit_count(); ++u) {
    UnitShard& unit = *units_[static_cast<std::size_t>(u)];
    if (!outside_of_passes(u)) continue;
    unit.begin_gather(label(unit));
    unit.finish_gather();
  }
}

void Sharder::release_everything() {
  if (settings_.stage != Stage::kParameters) return;
  for (UnitIndex u = 0; u < unit_count(); ++u) {
    if (outside_of_passes(u)) units_[static_cast<std::size_t>(u)]->release();
  }
}

// Sharded as far as the schedule knows. A forward without backward may have left the root gathered.
bool Sharder::outside_of_passes(UnitIndex u) const {
  return unit(u).layout().elements() > 0 &&
         schedule_.storage(u) == shard::Schedule::Storage::kSharded;
}

}  // namespace plimsoll::engine::zero
