#include "bench/harness.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"

namespace plimsoll::bench {
namespace {

double median_of(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// How many samples lie outside the 95 % interval at each end: the largest k for which a fair coin
// shows fewer than k heads in n throws with a probability of at most 2.5 %. 0: no such interval.
std::size_t samples_outside(std::size_t n) {
  double term = std::pow(0.5, static_cast<double>(n));  // probability of 0 heads
  double below = term;
  std::size_t k = 0;
  while (below <= 0.025 && k < n / 2) {
    ++k;
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += term;
  }
  return k;
}

// How many of the n (n + 1) / 2 means of two logarithms lie outside the 95 % interval at each end:
// the largest k for which the signed-rank statistic of n pairs is below k with a probability of at
// most 2.5 %. The statistic is the sum of those ranks 1 .. n whose coin shows heads.
std::size_t means_outside(std::size_t n) {
  std::vector<double> chance{1.0};  // by sum
  for (std::size_t rank = 1; rank <= n; ++rank) {
    chance.resize(chance.size() + rank, 0.0);
    for (std::size_t sum = chance.size(); sum-- > 0;) {
      chance[sum] = (chance[sum] + (sum >= rank ? chance[sum - rank] : 0.0)) / 2;
    }
  }
  double below = 0;
  std::size_t k = 0;
  while (below + chance[k] <= 0.025) below += chance[k++];
  return k;
}

// Four significant digits, large integers whole.
std::string digits(double value) {
  if (value == 0) return "0";
  if (std::fabs(value) >= 1e6) return grouped(std::llround(value));
  const int whole = static_cast<int>(std::floor(std::log10(std::fabs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(4 - whole, 0, 6));
}

bool holds(const Goal& goal, double value) {
  if (goal.kind == Goal::Kind::kAtMost) return value <= goal.value;
  return goal.kind == Goal::Kind::kNone || value >= goal.value;
}

std::string text_of(const Goal& goal) {
  if (goal.kind == Goal::Kind::kNone) return "";
  return fmt::format("{} {}", goal.kind == Goal::Kind::kAtMost ? "<=" : ">=", digits(goal.value));
}

}  // namespace

Summary summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  Summary s;
  s.runs = samples.size();
  s.median = median_of(samples);
  s.least = samples.front();
  const std::size_t outside = samples_outside(samples.size());
  const std::size_t end = outside == 0 ? 0 : outside - 1;
  s.low = samples[end];
  s.high = samples[samples.size() - 1 - end];
  for (double& sample : samples) sample = std::fabs(sample - s.median);
  std::sort(samples.begin(), samples.end());
  s.mad = median_of(samples);
  return s;
}

Summary summarise_ratios(std::vector<double> ratios) {
  Summary s = summarise(ratios);
  std::vector<double> means;  // of every two logarithms, each with itself too
  for (double& ratio : ratios) ratio = std::log(ratio);
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    for (std::size_t j = i; j < ratios.size(); ++j) means.push_back((ratios[i] + ratios[j]) / 2);
  }
  std::sort(means.begin(), means.end());
  const std::size_t outside = means_outside(ratios.size());
  const std::size_t end = outside == 0 ? 0 : outside - 1;
  s.median = std::exp(median_of(means));
  s.low = std::exp(means[end]);
  s.high = std::exp(means[means.size() - 1 - end]);
  return s;
}

Elapsed now() {
  const auto read = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return {read(CLOCK_MONOTONIC), read(CLOCK_PROCESS_CPUTIME_ID)};
}

namespace {

double on(Clock clock, const Elapsed& time) { return clock == Clock::kWall ? time.wall : time.cpu; }

Summary summary_of(Clock clock, const std::vector<Elapsed>& times) {
  std::vector<double> samples;
  for (const Elapsed& time : times) samples.push_back(on(clock, time));
  return summarise(std::move(samples));
}

}  // namespace

Summary Pairs::first(Clock clock) const { return summary_of(clock, a); }
Summary Pairs::second(Clock clock) const { return summary_of(clock, b); }

Summary Pairs::ratio(Clock clock) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(on(clock, a[i]) / on(clock, b[i]));
  return summarise_ratios(std::move(ratios));
}

Summary Pairs::difference(Clock clock) const {
  std::vector<double> rests;
  for (std::size_t i = 0; i < a.size(); ++i) rests.push_back(on(clock, a[i]) - on(clock, b[i]));
  return summarise(std::move(rests));
}

Report::Report(std::string title)
    : title_(std::move(title)),
      table_({{"figure", Align::kLeft},
              {"median"},
              {"95 % interval"},
              {"MAD"},
              {"least"},
              {"runs"},
              {"unit", Align::kLeft},
              {"goal", Align::kLeft},
              {"", Align::kLeft}}) {}

void Report::add(const std::string& what, const Summary& s, double factor, const std::string& unit,
                 const Goal& goal, double judged) {
  const bool judges = goal.kind != Goal::Kind::kNone;
  const bool one = s.runs == 1;
  table_.row({what, digits(s.median * factor),
              one ? "" : fmt::format("{} .. {}", digits(s.low * factor), digits(s.high * factor)),
              one ? "" : digits(s.mad * factor), one ? "" : digits(s.least * factor),
              one ? "" : fmt::format("{}", s.runs), unit, text_of(goal),
              !judges                        ? ""
              : holds(goal, judged * factor) ? "ok"
                                             : "OVER"});
}

void Report::row(const std::string& what, const Summary& summary, double factor,
                 const std::string& unit, Goal goal) {
  add(what, summary, factor, unit, goal, summary.median);
}

void Report::strict_row(const std::string& what, const Summary& summary, double factor,
                        const std::string& unit, Goal goal) {
  const bool most = goal.kind == Goal::Kind::kAtMost;
  add(what, summary, factor, unit, goal, most ? summary.high : summary.low);
}

void Report::exact(const std::string& what, double value, const std::string& unit, Goal goal) {
  add(what, summarise({value}), 1, unit, goal, value);
}

void Report::print() const {
  TextStyle style;
  style.width = 140;
  std::fputs(fmt::format("{}\n{}\n", title_, table_.text(style)).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace plimsoll::bench
