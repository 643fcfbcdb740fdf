#include "tests/dist/module_cases.hpp"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "tests/property/dice.hpp"

namespace plimsoll::tests {
namespace {

enum Factor : std::size_t {
  kStage,
  kPrecision,
  kDropout,
  kCheckpoint,
  kAccumulation,
  kClip,
  kOptimizer,
  kPrefetch,
  kRoot,
  kShape,
  kFactors,
};
constexpr std::array<int, kFactors> kChoices = {4, 3, 2, 2, 5, 2, 4, 3, 2, 3};
using Choice = std::array<int, kFactors>;

ModuleCase case_of(const Choice& choice) {
  ModuleCase c;
  c.stage = static_cast<Stage>(choice[kStage]);
  c.type = choice[kPrecision] == 1 ? at::kDouble : at::kFloat;
  c.mixed = choice[kPrecision] == 2;
  c.checkpoint = choice[kCheckpoint] == 1;
  constexpr std::array<int, 5> kMicroBatches = {1, 2, 2, 3, 3};
  c.micro_batches = kMicroBatches.at(static_cast<std::size_t>(choice[kAccumulation]));
  c.reduce_each = choice[kAccumulation] % 2 == 0;
  c.clip = choice[kClip] == 1 ? 0.05 : 0;
  c.optimizer = static_cast<Optimizer>(choice[kOptimizer]);
  c.prefetch = choice[kPrefetch];
  c.reshard_root = choice[kRoot] == 1;
  if (choice[kShape] == 1) c.shape = {.width = 8, .layers = 2, .vocabulary = 16};
  if (choice[kShape] == 2) c.shape = {.width = 3, .layers = 4, .vocabulary = 11};
  c.shape.dropout = choice[kDropout] == 1 ? 0.1 : 0;
  return c;
}

// Which pairs of choices have occurred.
class Pairs {
 public:
  Pairs() : seen_(kFactors * kFactors * 25) {}

  int fresh(const Choice& choice) const {
    int count = 0;
    each(choice, [&](std::size_t pair) { count += seen_[pair] ? 0 : 1; });
    return count;
  }
  void add(const Choice& choice) {
    each(choice, [&](std::size_t pair) { seen_[pair] = true; });
  }

 private:
  template <class Visit>
  static void each(const Choice& choice, const Visit& visit) {
    for (std::size_t a = 0; a < kFactors; ++a) {
      for (std::size_t b = a + 1; b < kFactors; ++b) {
        const auto pair = static_cast<std::size_t>(choice[a] * 5 + choice[b]);
        visit((a * kFactors + b) * 25 + pair);
      }
    }
  }
  std::vector<bool> seen_;
};

std::size_t all_pairs() {
  std::size_t count = 0;
  for (std::size_t a = 0; a < kFactors; ++a) {
    for (std::size_t b = a + 1; b < kFactors; ++b) {
      count += static_cast<std::size_t>(kChoices[a] * kChoices[b]);
    }
  }
  return count;
}

Choice random_choice(test::Dice& dice) {
  Choice choice{};
  for (std::size_t f = 0; f < kFactors; ++f) {
    choice[f] = static_cast<int>(dice.between(0, kChoices[f] - 1));
  }
  return choice;
}

}  // namespace

std::string text_of(const ModuleCase& c) {
  return fmt::format(
      "stage {}, {}{}, {}, dropout {}, checkpoint {}, micro-batches {}{}, clip {}, prefetch {}{}, "
      "width {}",
      static_cast<int>(c.stage), c10::toString(c.type), c.mixed ? " mixed" : "",
      plan::name(c.optimizer), c.shape.dropout, c.checkpoint ? "block" : "none", c.micro_batches,
      c.reduce_each ? "" : " reduced once", c.clip, c.prefetch,
      c.reshard_root ? ", root resharded" : "", c.shape.width);
}

std::vector<ModuleCase> pairwise_cases(int ranks, std::size_t count) {
  test::Dice dice(static_cast<std::uint64_t>(ranks));
  Pairs pairs;
  std::vector<ModuleCase> cases;
  std::size_t covered = 0;
  while (covered < all_pairs() || cases.size() < count) {
    Choice best = random_choice(dice);
    for (int i = 0; i < 200; ++i) {
      const Choice other = random_choice(dice);
      if (pairs.fresh(other) > pairs.fresh(best)) best = other;
    }
    covered += static_cast<std::size_t>(pairs.fresh(best));
    pairs.add(best);
    cases.push_back(case_of(best));
  }
  return cases;
}

std::vector<ModuleCase> all_cases() {
  std::vector<ModuleCase> cases;
  Choice choice{};
  int count = 0;
  while (true) {
    choice[kPrefetch] = count % 3;
    choice[kRoot] = count / 3 % 2;
    choice[kShape] = count / 6 % 3;
    cases.push_back(case_of(choice));
    ++count;
    std::size_t f = 0;
    while (f <= kOptimizer && ++choice[f] == kChoices[f]) choice[f++] = 0;
    if (f > kOptimizer) return cases;
  }
}

}  // namespace plimsoll::tests
