#include "plimsoll/plan/fit/changes.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/plan/fit/moves.hpp"

namespace plimsoll::plan {
namespace {

constexpr std::size_t kWanted = 3;
constexpr std::size_t kMostMoves = 3;  // in one change

using Chosen = std::vector<std::size_t>;  // indices of moves, ascending

bool contains(const Chosen& whole, const Chosen& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

class ChangeSearch {
 public:
  ChangeSearch(NeedSearch& search, const Job& job, const Need& need)
      : search_(search), job_(job), need_(need), moves_(moves_of(search.spec(), job)) {}

  Changes run() {
    for (const Move& move : moves_) strongest_.push_back(strongest_level(move));
    for (std::size_t size = 1; size <= kMostMoves && found_.size() < kWanted; ++size) {
      for (const Chosen& chosen : combinations(size)) try_one(chosen);
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Change& a, const Change& b) { return key(a) < key(b); });
    if (found_.size() > kWanted) found_.resize(kWanted);
    Changes changes{std::move(found_), ""};
    if (changes.found.empty()) changes.reason = nothing_found();
    return changes;
  }

 private:
  static std::tuple<ChangeCost, double, std::int64_t, std::size_t> key(const Change& change) {
    return {change.cost, change.flops, change.traffic, change.settings.size()};
  }

  // How a level that does not fit by itself compares: states alone that are too many say nothing of
  // the rest, and of equals the later level saves more, as a rule.
  static std::tuple<bool, std::int64_t> lack(const Need& need) {
    return {need.at_least, need.bytes};
  }

  struct Strongest {
    std::size_t level = 0;
    std::optional<Need> need;  // of the job with this level alone
  };

  // The last level that fits by itself, else the one that needs least. Not always the last: with very
  // many ranks, padding grows. Levels are tried from the last until one needs more than the one behind it.
  Strongest strongest_level(const Move& move) {
    Strongest strongest{move.levels.size() - 1, std::nullopt};
    for (std::size_t level = move.levels.size(); level-- > 0;) {
      Job job = job_;
      move.levels[level].apply(job);
      const std::optional<Need> need = search_.quick(job);
      if (!need) continue;
      if (strongest.need && !need->fits && lack(*need) >= lack(*strongest.need)) break;
      strongest = {level, need};
      if (need->fits) break;
    }
    return strongest;
  }

  // All of `size` moves, the cheaper ones first.
  std::vector<Chosen> combinations(std::size_t size) const {
    std::vector<Chosen> all = {{}};
    for (std::size_t n = 0; n < size; ++n) {
      std::vector<Chosen> longer;
      for (const Chosen& chosen : all) {
        for (std::size_t i = chosen.empty() ? 0 : chosen.back() + 1; i < moves_.size(); ++i) {
          longer.push_back(chosen);
          longer.back().push_back(i);
        }
      }
      all = std::move(longer);
    }
    std::stable_sort(all.begin(), all.end(),
                     [this](const Chosen& a, const Chosen& b) { return cost_of(a) < cost_of(b); });
    return all;
  }

  ChangeCost cost_of(const Chosen& chosen) const {
    ChangeCost cost = ChangeCost::kSameStep;
    for (const std::size_t i : chosen) cost = std::max(cost, moves_[i].cost);
    return cost;
  }

  // As many cheaper ones as are wanted were found: its cost decides before all else.
  bool too_dear(const Chosen& chosen) const {
    const ChangeCost cost = cost_of(chosen);
    const auto cheaper = std::count_if(found_.begin(), found_.end(),
                                       [&](const Change& change) { return change.cost < cost; });
    return static_cast<std::size_t>(cheaper) >= kWanted;
  }

  void try_one(const Chosen& chosen) {
    const auto fits_already = [&](const Chosen& part) { return contains(chosen, part); };
    if (std::any_of(fitting_.begin(), fitting_.end(), fits_already)) return;
    if (too_dear(chosen) || same_option_twice(chosen)) return;
    Chosen levels;
    for (const std::size_t i : chosen) levels.push_back(strongest_[i].level);
    const std::optional<Need> need = weakest(chosen, levels);
    if (!need) return;
    fitting_.push_back(chosen);
    found_.push_back(change_of(chosen, levels, *need));
  }

  // The mildest levels that fit, from the strongest ones in `levels`, and what they need. First those of tensors
  // alone are looked for, which walks of an allocator then have to confirm, or start from.
  std::optional<Need> weakest(const Chosen& chosen, Chosen& levels) {
    if (!search_.may_fit(job_with(chosen, levels))) return std::nullopt;
    const Chosen order = dearest_first(chosen);
    Chosen least = levels;
    for (const std::size_t j : order) {
      weaken(least, j, 0,
             [&](const Chosen& milder) { return search_.may_fit(job_with(chosen, milder)); });
    }
    std::optional<Need> need = need_with(chosen, least);
    if (need || least == levels) {
      levels = least;
      return need;
    }
    need = chosen.size() == 1 ? strongest_[chosen[0]].need : need_with(chosen, levels);
    if (!need || !need->fits) return std::nullopt;
    // Of a later move those are bounds only while the earlier ones are at theirs.
    bool bounded = true;
    for (const std::size_t j : order) {
      weaken(levels, j, bounded ? least[j] : 0, [&](const Chosen& milder) {
        const std::optional<Need> tried = need_with(chosen, milder);
        if (tried) need = tried;
        return tried.has_value();
      });
      bounded = bounded && levels[j] == least[j];
    }
    return need;
  }

  Chosen dearest_first(const Chosen& chosen) const {
    Chosen order(chosen.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return moves_[chosen[a]].cost > moves_[chosen[b]].cost;
    });
    return order;
  }

  // Level j becomes the mildest one from `low` on with which `fits` is true; it is for the one it has.
  template <class Fits>
  static void weaken(Chosen& levels, std::size_t j, std::size_t low, const Fits& fits) {
    while (low < levels[j]) {
      Chosen milder = levels;
      milder[j] = low + (levels[j] - low) / 2;
      if (fits(milder)) {
        levels = std::move(milder);
      } else {
        low = milder[j] + 1;
      }
    }
  }

  bool same_option_twice(const Chosen& chosen) const {
    std::vector<std::string> options;
    for (const std::size_t i : chosen) {
      for (const Setting& setting : moves_[i].levels.front().settings) {
        options.push_back(setting.option);
      }
    }
    std::sort(options.begin(), options.end());
    return std::adjacent_find(options.begin(), options.end()) != options.end();
  }

  Job job_with(const Chosen& chosen, const Chosen& levels) const {
    Job job = job_;
    for (std::size_t j = 0; j < chosen.size(); ++j) moves_[chosen[j]].levels[levels[j]].apply(job);
    return job;
  }

  std::optional<Need> need_with(const Chosen& chosen, const Chosen& levels) {
    return search_.if_fits(job_with(chosen, levels));
  }

  Change change_of(const Chosen& chosen, const Chosen& levels, const Need& need) const {
    Change change;
    change.job = job_with(chosen, levels);
    change.need = need;
    change.cost = cost_of(chosen);
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      const std::vector<Setting>& settings = moves_[chosen[j]].levels[levels[j]].settings;
      change.settings.insert(change.settings.end(), settings.begin(), settings.end());
    }
    change.saved = need_.bytes - need.bytes;
    change.flops = need.flops / need_.flops;
    change.traffic = need.traffic - need_.traffic;
    return change;
  }

  std::string nothing_found() const {
    if (moves_.empty()) return "nothing is left to change";
    std::vector<std::string> tried;
    for (const Move& move : moves_) tried.push_back(move.what);
    return fmt::format("nothing found: no combination of up to {} of {}", kMostMoves,
                       fmt::join(tried, ", "));
  }

  NeedSearch& search_;
  const Job& job_;
  const Need& need_;
  const std::vector<Move> moves_;
  std::vector<Strongest> strongest_;  // of each move
  std::vector<Chosen> fitting_;       // combinations that fit
  std::vector<Change> found_;
};

}  // namespace

std::string_view name(ChangeCost cost) {
  switch (cost) {
    case ChangeCost::kSameStep:
      return "same step";
    case ChangeCost::kMoreRanks:
      return "more ranks";
    case ChangeCost::kOtherArithmetic:
      return "other arithmetic";
    case ChangeCost::kLessWork:
      return "less work";
  }
  return "?";
}

Changes cheapest_changes(NeedSearch& search, const Job& job, const Need& need) {
  return ChangeSearch(search, job, need).run();
}

}  // namespace plimsoll::plan
