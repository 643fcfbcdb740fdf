// A network of many equal layers with most of them left out, and what its walk has to know of them.
//
// [Note: folding] Equal layers do equal things: what layer 40 of 126 allocates, saves and releases is what layer
// 39 does, with blocks of its own. So a few layers are walked, and the events of the others are written from
// theirs. Layers that differ in a pattern (gemma2: every other one sees a window) are taken in periods of it.
// The short network has the first period, six inner ones, and the last one with what does not fill a
// period. Inner ones are 1, 2, .. M in the whole network and 1 .. 6 in the short one; 3 stands for all
// that are left out; going down, backward has them behind 4, whose section is repeated there. A layer may touch blocks of the two before it and behind it: a unit that is gathered ahead.
// Nothing else is assumed of the walk: where the events of 3 and 4 differ in more than their place, it is
// not unfolded (unfold.hpp), and the whole network is walked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/network/families/families.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"
#include "plimsoll/timeline/event.hpp"

namespace plimsoll::plan::fold {

// Inner periods of the short network.
inline constexpr std::int32_t kInner = 6;
// The one that stands for those left out.
inline constexpr std::int32_t kRepeated = 3;
// Farthest period whose blocks are touched.
inline constexpr std::int32_t kReach = 2;

// Where an operation id of the short network belongs.
struct Place {
  static constexpr std::int32_t kRoot = -1;
  std::int32_t period = kRoot;  // 0 the first, 1 .. kInner, kInner + 1 the last
  bool is_unit = false;         // of the schedule, which works ahead
  // The id in the whole network, of a place in period p: id + stride p. Root: id.
  std::int64_t id = 0;
  std::int64_t stride = 0;
};

class FoldedNetwork {
 public:
  // None when the walk of such a job cannot be folded, or would hardly be shorter. Valid for all jobs of the
  // same build options.
  static std::optional<FoldedNetwork> of(const network::NetworkSpec& spec, const Job& job);

  // The short one.
  const network::Network& network() const { return network_; }
  // M: inner periods of the whole one.
  std::int32_t inner() const { return inner_; }
  // By operation id of the short network's walk: operations, parameters, units.
  const std::vector<Place>& places() const { return places_; }
  // By operation id: how many ids of the whole network this one stands for.
  const std::vector<std::int64_t>& weights() const { return weights_; }

 private:
  FoldedNetwork(network::Network network, std::int32_t period, std::int32_t inner);
  bool add_places(const std::vector<std::int32_t>& units);

  network::Network network_;
  std::int32_t period_;  // layers
  std::int32_t inner_;
  std::int64_t ids_ = 1;  // of the whole network, so far
  std::vector<Place> places_;
  std::vector<std::int64_t> weights_;
};

}  // namespace plimsoll::plan::fold
