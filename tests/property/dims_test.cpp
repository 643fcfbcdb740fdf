// Shapes and strides against brute force: every element's address is listed.
#include "plimsoll/network/dims.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "tests/property/random_jobs.hpp"

namespace plimsoll::test {
namespace {

using network::Dims;

constexpr int kShapes = 20000;

// Addresses of all elements in row-major order.
std::vector<std::int64_t> addresses(const Dims& shape, const Dims& strides) {
  std::vector<std::int64_t> result = {0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> next;
    for (std::int64_t base : result) {
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(base + i * strides[d]);
    }
    result = next;
  }
  return result;
}

// Are the addresses 0 .. n - 1, each once?
bool dense_by_listing(const Dims& shape, const Dims& strides) {
  std::vector<std::int64_t> all = addresses(shape, strides);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

Dims random_shape(Dice& dice, std::size_t most_dims, std::int64_t most) {
  Dims shape;
  const auto n = dice.between(0, static_cast<std::int64_t>(most_dims));
  for (std::int64_t i = 0; i < n; ++i) shape.push_back(dice.between(1, most));
  return shape;
}

// Strides as tensors have them: a permuted contiguous tensor, perhaps sliced or expanded.
Dims random_strides(Dice& dice, const Dims& shape) {
  Dims outer = shape;
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (dice.one_in(4)) outer[i] += dice.between(1, 2);  // a slice of something longer
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shape.size(); ++i) order.push_back(i);
  for (std::size_t i = order.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(i) - 1));
    if (dice.coin()) std::swap(order[i - 1], order[other]);
  }
  Dims strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = dice.one_in(12) ? 0 : step;
    step *= outer[order[i]];
  }
  return strides;
}

// A random factorisation of n into at most four sizes.
Dims random_factors(Dice& dice, std::int64_t n) {
  Dims shape;
  for (int i = 0; i < 3; ++i) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= n; ++d) {
      if (n % d == 0) divisors.push_back(d);
    }
    const std::int64_t d = dice.pick(divisors);
    shape.push_back(d);
    n /= d;
  }
  shape.push_back(n);
  return shape;
}

// Strides of a view with these addresses, found from the addresses alone; none when no strides do it.
std::optional<Dims> strides_of(const std::vector<std::int64_t>& all, const Dims& shape) {
  Dims strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = shape[i] == 1 ? 0 : all[static_cast<std::size_t>(step)] - all[0];
    step *= shape[i];
  }
  if (addresses(shape, strides) != all) return std::nullopt;
  return strides;
}

}  // namespace

TEST_CASE("dims: contiguous strides list 0 .. n - 1 in order") {
  Dice dice(11);
  for (int i = 0; i < kShapes; ++i) {
    const Dims shape = random_shape(dice, Dims::kCapacity, 4);
    const std::vector<std::int64_t> all = addresses(shape, network::contiguous_strides(shape));
    CHECK(std::is_sorted(all.begin(), all.end()));
    CHECK(all.back() == network::element_count(shape) - 1);
    CHECK(network::is_contiguous(shape, network::contiguous_strides(shape)));
  }
}

TEST_CASE("dims: is_contiguous and is_dense against the list of addresses") {
  Dice dice(12);
  int dense = 0;
  for (int i = 0; i < kShapes; ++i) {
    const Dims shape = random_shape(dice, Dims::kCapacity, 4);
    const Dims strides = random_strides(dice, shape);
    CAPTURE(to_text(shape));
    CAPTURE(to_text(strides));
    const bool expected = dense_by_listing(shape, strides);
    dense += expected ? 1 : 0;
    CHECK(network::is_dense(shape, strides) == expected);
    const std::vector<std::int64_t> all = addresses(shape, strides);
    CHECK(network::is_contiguous(shape, strides) ==
          (expected && std::is_sorted(all.begin(), all.end())));
  }
  CHECK(dense > kShapes / 20);
}

TEST_CASE("dims: view_strides gives a view exactly when strides can, with the same addresses") {
  Dice dice(13);
  int possible = 0;
  int impossible = 0;
  for (int i = 0; i < kShapes; ++i) {
    const Dims shape = random_shape(dice, 4, 6);
    const Dims strides = random_strides(dice, shape);
    const Dims wanted = random_factors(dice, network::element_count(shape));
    CAPTURE(to_text(shape));
    CAPTURE(to_text(strides));
    CAPTURE(to_text(wanted));
    const std::vector<std::int64_t> all = addresses(shape, strides);
    const network::ViewStrides view = network::view_strides(shape, strides, wanted);
    CHECK(view.possible == strides_of(all, wanted).has_value());
    if (view.possible) CHECK(addresses(wanted, view.strides) == all);
    (view.possible ? possible : impossible) += 1;
  }
  CHECK(possible > kShapes / 20);
  CHECK(impossible > kShapes / 20);
}

TEST_CASE("dims: broadcast against stretching element by element") {
  Dice dice(14);
  for (int i = 0; i < kShapes; ++i) {
    const Dims result = random_shape(dice, Dims::kCapacity, 4);
    // Two operands of that result: leading dimensions missing, others stretched from 1.
    const auto operand = [&](bool whole) {
      Dims shape = result;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (!whole && dice.one_in(3)) shape[d] = 1;
      }
      while (!whole && !shape.empty() && dice.one_in(4)) shape.erase(0);
      return shape;
    };
    const Dims whole = operand(true);
    const Dims part = operand(false);
    CHECK(network::broadcast(whole, part) == result);
    CHECK(network::broadcast(part, whole) == result);
    CHECK(network::broadcast(part, part) == part);
  }
  CHECK(network::broadcast({3, 1}, {4}) == Dims{3, 4});
  CHECK(network::broadcast({}, {2}) == Dims{2});
}

TEST_CASE("dims: resolve fills the one -1") {
  Dice dice(15);
  for (int i = 0; i < kShapes; ++i) {
    const Dims shape = random_shape(dice, 4, 6);
    const Dims full = random_factors(dice, network::element_count(shape));
    Dims wanted = full;
    wanted[static_cast<std::size_t>(dice.between(0, 3))] = -1;
    CHECK(network::resolve(wanted, shape) == full);
    CHECK(network::resolve(full, shape) == full);
  }
}

TEST_CASE("dims: insert, erase and resize as a list does them") {
  Dims dims{2, 3, 5};
  dims.insert(1, 7);
  CHECK(dims == Dims{2, 7, 3, 5});
  dims.erase(0);
  CHECK(dims == Dims{7, 3, 5});
  dims.resize(5, 1);
  CHECK(dims == Dims{7, 3, 5, 1, 1});
  CHECK_THROWS_AS(dims.push_back(1), InternalError);
  CHECK(to_text(Dims{2, 64}) == "(2, 64)");
  CHECK(network::element_count(Dims{}) == 1);
  CHECK_THROWS_AS(network::element_count(Dims{1LL << 40, 1LL << 40}), OverflowError);
}

}  // namespace plimsoll::test
