// A small benchmark harness: repeated timings, their median with an interval, tables with goals.
//
// [Note: Figures of a benchmark] The median of the runs, and the 95 % interval of the median from
// order statistics (binomial, no assumption about the distribution). MAD is the median distance from
// the median. A ratio is taken within each pair of runs that followed each other, A then B or B then
// A in turn, so that a slow stretch of the machine hits both. Its logarithm is then symmetric around
// the true one (both runs see the same noise, each is first as often), so ratios have the
// Hodges-Lehmann median and the 95 % interval of Wilcoxon's signed-rank test, exact for its number
// of pairs: a third narrower than order statistics for the same runs.
// CPU time is the process's: what single-threaded work costs on a machine that others use, too.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plimsoll/base/table.hpp"

namespace plimsoll::bench {

struct Summary {
  double median = 0;
  double low = 0;  // the 95 % interval of the median
  double high = 0;
  double mad = 0;
  double least = 0;
  std::size_t runs = 0;
};

// Needs at least one sample. Below six samples no 95 % interval exists: low and high are the range.
Summary summarise(std::vector<double> samples);

// The same for ratios of pairs; all positive. [Note: Figures of a benchmark]
Summary summarise_ratios(std::vector<double> ratios);

// Seconds by the wall's clock and of the process's CPU time.
struct Elapsed {
  double wall = 0;
  double cpu = 0;
};
Elapsed now();

template <class Work>
Elapsed elapsed(Work&& work) {
  const Elapsed begin = now();
  work();
  const Elapsed end = now();
  return {end.wall - begin.wall, end.cpu - begin.cpu};
}

enum class Clock { kWall, kCpu };

// `warm_up` runs that do not count, then `runs` timed ones.
template <class Work>
Summary repeat(std::size_t warm_up, std::size_t runs, Clock clock, Work&& work) {
  for (std::size_t i = 0; i < warm_up; ++i) work();
  std::vector<double> samples;
  for (std::size_t i = 0; i < runs; ++i) {
    const Elapsed time = elapsed(work);
    samples.push_back(clock == Clock::kWall ? time.wall : time.cpu);
  }
  return summarise(std::move(samples));
}

// Samples that were taken pair by pair.
struct Pairs {
  std::vector<Elapsed> a;
  std::vector<Elapsed> b;

  Summary first(Clock clock) const;
  Summary second(Clock clock) const;
  Summary ratio(Clock clock) const;       // a / b [Note: Figures of a benchmark]
  Summary difference(Clock clock) const;  // a - b, likewise
};

// Runs `one` and `other` in pairs, the order within a pair alternating. Both return their Elapsed.
template <class One, class Other>
Pairs interleave(std::size_t pairs, One&& one, Other&& other) {
  Pairs result;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (i % 2 == 0) result.a.push_back(one());
    result.b.push_back(other());
    if (i % 2 == 1) result.a.push_back(one());
  }
  return result;
}

// What a figure should be.
struct Goal {
  enum class Kind { kNone, kAtMost, kAtLeast } kind = Kind::kNone;
  double value = 0;
};
inline Goal at_most(double value) { return {Goal::Kind::kAtMost, value}; }
inline Goal at_least(double value) { return {Goal::Kind::kAtLeast, value}; }

// One aligned table of figures. Being over a goal is printed, never an error.
class Report {
 public:
  explicit Report(std::string title);

  // `factor` turns the summary's unit into `unit` (1e3 for seconds and "ms"). The goal is compared
  // with the median.
  void row(const std::string& what, const Summary& summary, double factor, const std::string& unit,
           Goal goal = {});
  // As row, but the goal has to hold for the unfavourable end of the interval.
  void strict_row(const std::string& what, const Summary& summary, double factor,
                  const std::string& unit, Goal goal);
  // An exact figure.
  void exact(const std::string& what, double value, const std::string& unit, Goal goal = {});

  void print() const;  // to stdout

 private:
  void add(const std::string& what, const Summary& summary, double factor, const std::string& unit,
           const Goal& goal, double judged);

  std::string title_;
  Table table_;
};

}  // namespace plimsoll::bench
