// [Note: Partition invariance]: however the elements of a parameter are shared out, every optimizer
// leaves the same bits, whatever the types.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/engine/optim/kernels.hpp"
#include "plimsoll/engine/torch.hpp"
#include "plimsoll/plan/job.hpp"

#include "tests/property/dice.hpp"

namespace plimsoll {
namespace {

using engine::OptimizerRange;
using plan::Optimizer;

struct Types {
  at::ScalarType weights, gradient, moment;
  bool copy;
};

void step(const OptimizerRange& range, Optimizer kind, std::int64_t number) {
  const engine::OptimizerSettings settings{.learning_rate = 0.03, .weight_decay = 0.1};
  constexpr double kScale = 1.0 / 3;
  switch (kind) {
    case Optimizer::kAdamW:
      return engine::adamw_step(range, settings, number, kScale);
    case Optimizer::kSgd:
    case Optimizer::kSgdMomentum:
      return engine::sgd_step(range, settings, kScale);
    case Optimizer::kLion:
      return engine::lion_step(range, settings, kScale);
    case Optimizer::kAdafactor:
    case Optimizer::kAdamW8bit:
      throw std::logic_error("no kernel of the engine");
  }
}

// `size` elements from `begin` on; what is undefined stays so.
at::Tensor cut(const at::Tensor& t, std::int64_t begin, std::int64_t size) {
  return t.defined() ? t.narrow(0, begin, size) : t;
}

struct State {
  State(const Types& types, Optimizer kind, std::int64_t n) {
    const int moments = plan::moments(kind);
    range.weights = at::randn({n}).to(types.weights);
    range.gradient = at::randn({n}).mul(at::randn({n}).exp()).to(types.gradient);
    // Rows that were never read have no gradient at all.
    range.gradient.narrow(0, n / 3, n / 7).zero_();
    if (moments > 0) range.first = at::zeros({n}, types.moment);
    if (moments > 1) range.second = at::zeros({n}, types.moment);
    if (types.copy) range.copy = range.weights.to(at::kBFloat16);
  }
  State(const State& other) {
    const auto copied = [](const at::Tensor& t) { return t.defined() ? t.clone() : t; };
    range = {copied(other.range.weights), other.range.gradient, copied(other.range.first),
             copied(other.range.second), copied(other.range.copy)};
  }
  OptimizerRange part(std::int64_t begin, std::int64_t end) const {
    const std::int64_t size = end - begin;
    return {cut(range.weights, begin, size), cut(range.gradient, begin, size),
            cut(range.first, begin, size), cut(range.second, begin, size),
            cut(range.copy, begin, size)};
  }
  OptimizerRange range;
};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return !a.defined() || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

// Ends of up to 9 parts of [0, n), any of which may be short.
std::vector<std::int64_t> random_ends(test::Dice& dice, std::int64_t n) {
  std::vector<std::int64_t> ends{n};
  const std::int64_t cuts = dice.between(1, 8);
  for (std::int64_t i = 0; i < cuts; ++i) ends.push_back(dice.between(0, n));
  std::sort(ends.begin(), ends.end());
  return ends;
}

}  // namespace

TEST_CASE("any partition of an optimizer step gives the same bits") {
  at::set_num_threads(1);
  at::manual_seed(3);
  test::Dice dice(17);
  for (Optimizer kind :
       {Optimizer::kAdamW, Optimizer::kSgd, Optimizer::kSgdMomentum, Optimizer::kLion}) {
    for (const Types& types : {Types{at::kFloat, at::kFloat, at::kFloat, false},
                               Types{at::kDouble, at::kDouble, at::kDouble, false},
                               Types{at::kFloat, at::kFloat, at::kFloat, true},
                               Types{at::kFloat, at::kBFloat16, at::kFloat, true},
                               Types{at::kFloat, at::kFloat, at::kBFloat16, true},
                               Types{at::kBFloat16, at::kFloat, at::kBFloat16, false}}) {
      for (int round = 0; round < 20; ++round) {
        const State whole(types, kind, dice.between(1, 3000));
        const State parts = whole;
        for (std::int64_t number = 1; number <= 3; ++number) {
          step(whole.range, kind, number);
          std::int64_t begin = 0;
          for (std::int64_t end : random_ends(dice, whole.range.weights.numel())) {
            if (end > begin) step(parts.part(begin, end), kind, number);
            begin = end;
          }
        }
        CAPTURE(plan::name(kind));
        CAPTURE(c10::toString(types.weights));
        CAPTURE(whole.range.weights.numel());
        REQUIRE(same_bits(whole.range.weights, parts.range.weights));
        REQUIRE(same_bits(whole.range.first, parts.range.first));
        REQUIRE(same_bits(whole.range.second, parts.range.second));
        REQUIRE(same_bits(whole.range.copy, parts.range.copy));
      }
    }
  }
}

}  // namespace plimsoll
