// Interprets a network: one loop for the planner and for the engine, so that values die at the same
// place in both.
//
// A Backend has:
//   using Tensor = ...;                       // a handle; default constructed = no value
//   bool has(const Tensor&) const;            // is there a value
//   void enter(const Operation&);             // before each operation
//   void call(const Operation&, std::vector<Tensor>& values);   // reads inputs, writes outputs
//   Tensor checkpoint(const Region&, std::function<Tensor(const Tensor&)> body, Tensor input);
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "plimsoll/network/network.hpp"

namespace plimsoll::network {

template <class Backend>
class Execution {
 public:
  using Tensor = typename Backend::Tensor;
  using Values = std::vector<Tensor>;  // by ValueId

  // `values` holds parameters, inputs and buffers. All three and this object must outlive every
  // backward pass of what is executed: reruns of checkpointed regions use them again.
  Execution(const Network& network, Backend& backend, Values& values)
      : network_(network), backend_(backend), values_(values) {}

  // Runs operations [first, last); a region runs whole.
  void run(std::size_t first, std::size_t last) {
    std::size_t i = first;
    while (i < last) {
      const std::int32_t region = network_.operations[i].region;
      if (region < 0) {
        step(i, kNoValue);
        ++i;
      } else {
        run_region(network_.regions[static_cast<std::size_t>(region)]);
        i = network_.regions[static_cast<std::size_t>(region)].last;
      }
    }
  }

  // What user code still holds when its forward function returns.
  void drop_kept() {
    for (ValueId v : network_.kept) values_[v] = Tensor();
  }

 private:
  void step(std::size_t i, ValueId survivor) {
    const Operation& op = network_.operations[i];
    backend_.enter(op);
    if (op.kind != OpKind::kHold) backend_.call(op, values_);
    for (ValueId v : network_.dying[i]) {
      if (v != survivor) values_[v] = Tensor();
    }
  }

  void run_region(const Region& region) {
    auto closure = std::make_shared<Closure>();
    for (ValueId v : region.held) closure->held.emplace_back(v, values_[v]);
    const auto body = [this, &region, closure](const Tensor& input) {
      return run_body(region, *closure, input);
    };
    Tensor input = std::exchange(values_[region.input], Tensor());
    values_[region.output] = backend_.checkpoint(region, body, std::move(input));
  }

  struct Closure {
    std::vector<std::pair<ValueId, Tensor>> held;  // its share of user code's values
    bool ran = false;                              // further runs are reruns
  };

  // Lets go of what a run of a region put among the values, also when a rerun is stopped early.
  class RegionScope {
   public:
    RegionScope(Execution& execution, const Region& region, Closure& closure)
        : execution_(execution), region_(region), rerun_(std::exchange(closure.ran, true)) {
      for (const auto& [v, tensor] : closure.held) {
        if (execution.backend_.has(execution.values_[v])) continue;
        execution.values_[v] = tensor;
        lent_.push_back(v);
      }
    }
    RegionScope(const RegionScope&) = delete;
    RegionScope& operator=(const RegionScope&) = delete;
    ~RegionScope() {
      for (ValueId v : lent_) execution_.values_[v] = Tensor();
      if (rerun_) execution_.drop_of_rerun(region_);
    }

   private:
    Execution& execution_;
    const Region& region_;
    const bool rerun_;
    std::vector<ValueId> lent_;
  };

  Tensor run_body(const Region& region, Closure& closure, const Tensor& input) {
    const RegionScope scope(*this, region, closure);
    values_[region.input] = input;
    for (std::size_t i = region.first; i < region.last; ++i) step(i, region.output);
    return std::exchange(values_[region.output], Tensor());
  }

  // User code that would use these later ran long ago.
  void drop_of_rerun(const Region& region) {
    values_[region.input] = Tensor();
    for (std::size_t i = region.first; i < region.last; ++i) {
      for (ValueId v : network_.operations[i].outputs) values_[v] = Tensor();
    }
  }

  const Network& network_;
  Backend& backend_;
  Values& values_;
};

}  // namespace plimsoll::network
