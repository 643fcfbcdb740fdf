#include "plimsoll/shard/partition.hpp"

#include <algorithm>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::shard {

Range intersection(const Range& a, const Range& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Partition::Partition(std::int64_t elements, std::int32_t ranks)
    : elements_(elements), ranks_(ranks), chunk_(0) {
  check(elements >= 0, "a partition of fewer than 0 elements");
  check(ranks >= 1, "a partition over fewer than 1 rank");
  chunk_ = elements / ranks + (elements % ranks != 0 ? 1 : 0);
  checked_mul(chunk_, ranks);
}

Range Partition::slot(std::int32_t rank) const {
  check(rank >= 0 && rank < ranks_, "a rank outside the world");
  return {rank * chunk_, (rank + 1) * chunk_};
}

Range Partition::range(std::int32_t rank) const {
  const Range all = slot(rank);
  return {std::min(all.begin, elements_), std::min(all.end, elements_)};
}

std::int32_t Partition::owner(std::int64_t element) const {
  check(element >= 0 && element < elements_, "an element outside the partition");
  return static_cast<std::int32_t>(element / chunk_);
}

std::vector<Transfer> remap(const Partition& old_world, const Partition& new_world) {
  check(old_world.elements() == new_world.elements(), "a remap between arrays of two sizes");
  std::vector<Transfer> transfers;
  std::int64_t at = 0;
  while (at < old_world.elements()) {
    const std::int32_t from = old_world.owner(at);
    const std::int32_t to = new_world.owner(at);
    const std::int64_t end = std::min(old_world.range(from).end, new_world.range(to).end);
    transfers.push_back({from, to, {at, end}});
    at = end;
  }
  return transfers;
}

FlatOrder::FlatOrder(const std::vector<std::int64_t>& elements) : begin_{0} {
  begin_.reserve(elements.size() + 1);
  for (std::int64_t n : elements) {
    check(n >= 0, "an array of fewer than 0 elements");
    begin_.push_back(checked_add(begin_.back(), n));
  }
}

std::vector<FlatOrder::Piece> FlatOrder::pieces(const Range& flat) const {
  std::vector<Piece> result;
  const auto after = std::upper_bound(begin_.begin(), begin_.end(), flat.begin);
  std::size_t i =
      after == begin_.begin() ? 0 : static_cast<std::size_t>(after - begin_.begin()) - 1;
  for (; i < arrays() && begin_[i] < flat.end; ++i) {
    const Range common = intersection(range(i), flat);
    if (common.empty()) continue;
    result.push_back({i, {common.begin - begin_[i], common.end - begin_[i]}, common});
  }
  return result;
}

}  // namespace plimsoll::shard
