// Operations on tensors of random layouts: transposed, sliced, with steps, broadcast. Dry run
// against measured run, event by event.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/engine/dry/meta_mode.hpp"
#include "plimsoll/engine/meter/meter.hpp"

#include "tests/engine/event_stream.hpp"
#include "tests/engine/operation_cases.hpp"
#include "tests/engine/with_reference_kernels.hpp"

namespace plimsoll::engine {
namespace {

using Shape = std::vector<std::int64_t>;

// Draws the same tensors for the same seed, so that both runs see the same layouts.
class Draw {
 public:
  Draw(std::uint32_t seed, bool fixed_dtype) : random_(seed), fixed_dtype_(fixed_dtype) {
    dtype_ = draw_dtype();
  }

  std::int64_t number(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  std::int64_t size() { return number(0, 4) == 0 ? 1 : number(2, 9); }
  Shape shape() {
    Shape shape(static_cast<std::size_t>(number(1, 4)));
    for (std::int64_t& size_of_dim : shape) size_of_dim = size();
    return shape;
  }
  // The shape with some dimensions of size 1.
  Shape broadcast(Shape shape) {
    for (std::int64_t& size_of_dim : shape) size_of_dim = number(0, 3) == 0 ? 1 : size_of_dim;
    return shape;
  }
  Shape some_dims(const Shape& shape) {
    Shape dims;
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (number(0, 1) == 1) dims.push_back(static_cast<std::int64_t>(dim));
    }
    return dims.empty() ? Shape{0} : dims;
  }

  // A view of this shape of a leaf that is permuted, larger, or smaller.
  at::Tensor tensor(const Shape& shape) {
    std::vector<std::int64_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    Shape stored, wanted;
    std::vector<std::int64_t> form;
    for (const std::int64_t dim : order) {
      wanted.push_back(shape[static_cast<std::size_t>(dim)]);
      form.push_back(number(0, 9));
      const std::array sizes{2 * wanted.back(), wanted.back() + 2, std::int64_t{1}};
      stored.push_back(form.back() < 3 ? sizes[static_cast<std::size_t>(form.back())]
                                       : wanted.back());
    }
    at::Tensor view = tests::leaf(stored, fixed_dtype_ ? dtype_ : draw_dtype());
    for (std::size_t dim = 0; dim < form.size(); ++dim) {
      const auto at = static_cast<std::int64_t>(dim);
      if (form[dim] == 0) view = view.slice(at, 0, stored[dim], 2);
      if (form[dim] == 1) view = view.narrow(at, 1, wanted[dim]);
    }
    view = view.expand(wanted);
    std::vector<std::int64_t> inverse(order.size());
    for (std::size_t dim = 0; dim < order.size(); ++dim) {
      inverse[static_cast<std::size_t>(order[dim])] = static_cast<std::int64_t>(dim);
    }
    return view.permute(inverse);
  }

 private:
  at::ScalarType draw_dtype() {
    constexpr std::array dtypes{at::kFloat, at::kBFloat16, at::kDouble};
    return dtypes[static_cast<std::size_t>(number(0, 2))];
  }

  std::mt19937 random_;
  bool fixed_dtype_;
  at::ScalarType dtype_;
};

struct RandomOperation {
  const char* name;
  bool one_dtype;
  std::function<at::Tensor(Draw&)> run;
};

at::Tensor attention(Draw& draw, bool products) {
  const std::int64_t batch = draw.size(), heads = draw.size(), keys = draw.size();
  const at::Tensor q = draw.tensor({batch, heads, draw.size(), 8});
  const at::Tensor k = draw.tensor({batch, heads, keys, 8});
  const at::Tensor v = draw.tensor({batch, heads, keys, 8});
  if (products) return std::get<0>(at::_scaled_dot_product_attention_math(q, k, v));
  return at::scaled_dot_product_attention(q, k, v);
}

const std::vector<RandomOperation>& operations() {
  static const std::vector<RandomOperation> all{
      {"mm", true,
       [](Draw& d) {
         const std::int64_t inner = d.size();
         const at::Tensor x = d.tensor({d.size(), inner});
         return at::mm(x, d.tensor({inner, d.size()}));
       }},
      {"bmm", true,
       [](Draw& d) {
         const std::int64_t batch = d.size(), inner = d.size();
         const at::Tensor x = d.tensor({batch, d.size(), inner});
         return at::bmm(x, d.tensor({batch, inner, d.size()}));
       }},
      {"linear", true,
       [](Draw& d) {
         const std::int64_t inner = d.size(), outer = d.size();
         const at::Tensor x = d.tensor({d.size(), d.size(), inner});
         const at::Tensor weight = d.tensor({outer, inner});
         return at::linear(x, weight, d.tensor({outer}));
       }},
      {"product", false,
       [](Draw& d) {
         const Shape shape = d.shape();
         const at::Tensor x = d.tensor(shape);
         return x * d.tensor(d.broadcast(shape));
       }},
      {"sum", true,
       [](Draw& d) {
         const Shape shape = d.shape();
         return d.tensor(shape).sum(d.some_dims(shape), d.number(0, 1) == 1);
       }},
      {"mean", true,
       [](Draw& d) {
         const Shape shape = d.shape();
         return d.tensor(shape).mean(d.some_dims(shape), d.number(0, 1) == 1);
       }},
      {"layer_norm", true,
       [](Draw& d) {
         const std::int64_t width = d.size();
         const at::Tensor x = d.tensor({d.size(), d.size(), width}), weight = d.tensor({width});
         return at::layer_norm(x, {width}, weight, weight);
       }},
      {"softmax of gelu", true, [](Draw& d) { return at::gelu(d.tensor(d.shape())).softmax(-1); }},
      {"attention", true, [](Draw& d) { return attention(d, false); }},
      {"attention as products", true, [](Draw& d) { return attention(d, true); }},
  };
  return all;
}

timeline::Timeline record_layout(const RandomOperation& operation, std::uint32_t seed, bool dry) {
  std::optional<MetaMode> mode;
  if (dry) mode.emplace();
  Meter meter;
  Draw draw(seed, operation.one_dtype);
  const at::Tensor out = operation.run(draw);
  seed % 2 == 0 ? tests::backward(out) : out.sum().backward();
  return meter.finish();
}

}  // namespace

TEST_CASE("random layouts leave the same events") {
  at::set_num_threads(1);
  constexpr std::uint32_t rounds = 60;
  for (const RandomOperation& operation : operations()) {
    record_layout(operation, 0, false);
    for (std::uint32_t seed = 0; seed < rounds; ++seed) {
      const auto measured = tests::event_lines(record_layout(operation, seed, false));
      const auto dry = tests::event_lines(record_layout(operation, seed, true));
      INFO(operation.name << ", seed " << seed);
      CHECK(tests::first_difference(measured, dry) == "");
    }
  }
}

}  // namespace plimsoll::engine
