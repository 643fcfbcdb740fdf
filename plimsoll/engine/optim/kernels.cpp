#include "plimsoll/engine/optim/kernels.hpp"

#include <cmath>

// One copy of a loop for each width of vectors, chosen when the program starts. All copies round alike
// [Note: Partition invariance].
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PLIMSOLL_EACH_VECTOR_WIDTH \
  __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define PLIMSOLL_EACH_VECTOR_WIDTH
#endif

namespace plimsoll::engine {
namespace {

// Elements below which one thread does all the work.
constexpr std::int64_t kGrain = 65536;

// Computes in float for 16- and 32-bit weights, in double for 64-bit ones.
template <class Weight>
using Compute = std::conditional_t<std::is_same_v<Weight, double>, double, float>;

template <class T>
struct AdamWNumbers {
  T decay, beta1, rest1, beta2, rest2, step_size, root_scale, epsilon, gradient_scale;
};

template <class T>
AdamWNumbers<T> adamw_numbers(const OptimizerSettings& s, std::int64_t step, double scale) {
  const double correction1 = 1 - std::pow(s.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(s.beta2, static_cast<double>(step));
  return {static_cast<T>(1 - s.learning_rate * s.weight_decay),
          static_cast<T>(s.beta1),
          static_cast<T>(1 - s.beta1),
          static_cast<T>(s.beta2),
          static_cast<T>(1 - s.beta2),
          static_cast<T>(s.learning_rate / correction1),
          static_cast<T>(std::sqrt(correction2)),
          static_cast<T>(s.epsilon),
          static_cast<T>(scale)};
}

template <class Weight, class Gradient, class State>
PLIMSOLL_EACH_VECTOR_WIDTH void adamw_range(Weight* __restrict w, const Gradient* __restrict g,
                                            State* __restrict m, State* __restrict v,
                                            c10::BFloat16* __restrict copy, std::int64_t n,
                                            const AdamWNumbers<Compute<Weight>>& k) {
  using T = Compute<Weight>;
  for (std::int64_t i = 0; i < n; ++i) {
    const T gradient = static_cast<T>(g[i]) * k.gradient_scale;
    const T first = k.beta1 * static_cast<T>(m[i]) + k.rest1 * gradient;
    const T second = k.beta2 * static_cast<T>(v[i]) + k.rest2 * gradient * gradient;
    const T denominator = std::sqrt(second) / k.root_scale + k.epsilon;
    const T weight = static_cast<T>(w[i]) * k.decay - k.step_size * (first / denominator);
    m[i] = static_cast<State>(first);
    v[i] = static_cast<State>(second);
    w[i] = static_cast<Weight>(weight);
    if (copy != nullptr) copy[i] = static_cast<c10::BFloat16>(static_cast<float>(weight));
  }
}

template <class Weight, class Gradient, class State>
PLIMSOLL_EACH_VECTOR_WIDTH void sgd_range(Weight* __restrict w, const Gradient* __restrict g,
                                          State* __restrict m, c10::BFloat16* __restrict copy,
                                          std::int64_t n, const OptimizerSettings& s,
                                          double scale) {
  using T = Compute<Weight>;
  const T rate = static_cast<T>(s.learning_rate);
  const T decay = static_cast<T>(s.weight_decay);
  const T momentum = static_cast<T>(s.beta1);
  const T gradient_scale = static_cast<T>(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    T gradient = static_cast<T>(g[i]) * gradient_scale + decay * static_cast<T>(w[i]);
    if (m != nullptr) {
      gradient = momentum * static_cast<T>(m[i]) + gradient;
      m[i] = static_cast<State>(gradient);
    }
    const T weight = static_cast<T>(w[i]) - rate * gradient;
    w[i] = static_cast<Weight>(weight);
    if (copy != nullptr) copy[i] = static_cast<c10::BFloat16>(static_cast<float>(weight));
  }
}

template <class Weight, class Gradient, class State>
PLIMSOLL_EACH_VECTOR_WIDTH void lion_range(Weight* __restrict w, const Gradient* __restrict g,
                                           State* __restrict m, c10::BFloat16* __restrict copy,
                                           std::int64_t n, const OptimizerSettings& s,
                                           double scale) {
  using T = Compute<Weight>;
  const T rate = static_cast<T>(s.learning_rate);
  const T decay = static_cast<T>(1 - s.learning_rate * s.weight_decay);
  const T beta1 = static_cast<T>(s.beta1);
  const T rest1 = static_cast<T>(1 - s.beta1);
  const T beta2 = static_cast<T>(s.beta2);
  const T rest2 = static_cast<T>(1 - s.beta2);
  const T gradient_scale = static_cast<T>(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const T gradient = static_cast<T>(g[i]) * gradient_scale;
    const T moment = static_cast<T>(m[i]);
    const T direction = beta1 * moment + rest1 * gradient;
    const T sign = static_cast<T>((direction > 0) - (direction < 0));
    const T weight = static_cast<T>(w[i]) * decay - rate * sign;
    m[i] = static_cast<State>(beta2 * moment + rest2 * gradient);
    w[i] = static_cast<Weight>(weight);
    if (copy != nullptr) copy[i] = static_cast<c10::BFloat16>(static_cast<float>(weight));
  }
}

template <class T>
T* data_or_null(const at::Tensor& t) {
  return t.defined() ? t.data_ptr<T>() : nullptr;
}

// Calls body.operator()<Weight, Gradient, State>() for the dtypes of the range.
template <class Body>
void for_dtypes(const OptimizerRange& range, const Body& body) {
  const at::ScalarType weight = range.weights.scalar_type();
  const at::ScalarType gradient = range.gradient.scalar_type();
  const at::ScalarType state = range.first.defined() ? range.first.scalar_type() : weight;
  using c10::BFloat16;
  if (weight == at::kDouble) return body.template operator()<double, double, double>();
  if (weight == at::kFloat && gradient == at::kFloat && state == at::kFloat) {
    return body.template operator()<float, float, float>();
  }
  if (weight == at::kFloat && gradient == at::kBFloat16 && state == at::kFloat) {
    return body.template operator()<float, BFloat16, float>();
  }
  if (weight == at::kFloat && gradient == at::kFloat && state == at::kBFloat16) {
    return body.template operator()<float, float, BFloat16>();
  }
  if (weight == at::kFloat && gradient == at::kBFloat16 && state == at::kBFloat16) {
    return body.template operator()<float, BFloat16, BFloat16>();
  }
  if (weight == at::kBFloat16 && gradient == at::kFloat && state == at::kBFloat16) {
    return body.template operator()<BFloat16, float, BFloat16>();
  }
  if (weight == at::kBFloat16 && gradient == at::kFloat && state == at::kFloat) {
    return body.template operator()<BFloat16, float, float>();
  }
  if (weight == at::kBFloat16 && state == at::kBFloat16) {
    return body.template operator()<BFloat16, BFloat16, BFloat16>();
  }
  if (weight == at::kBFloat16 && state == at::kFloat) {
    return body.template operator()<BFloat16, BFloat16, float>();
  }
  throw std::invalid_argument("[optimizer] no kernel for weights " +
                              std::string(c10::toString(weight)) + ", gradients " +
                              c10::toString(gradient) + ", states " + c10::toString(state));
}

}  // namespace

void adamw_step(const OptimizerRange& range, const OptimizerSettings& settings, std::int64_t step,
                double gradient_scale) {
  for_dtypes(range, [&]<class Weight, class Gradient, class State>() {
    auto* w = range.weights.data_ptr<Weight>();
    const auto* g = range.gradient.data_ptr<Gradient>();
    auto* m = range.first.data_ptr<State>();
    auto* v = range.second.data_ptr<State>();
    auto* copy = data_or_null<c10::BFloat16>(range.copy);
    const auto numbers = adamw_numbers<Compute<Weight>>(settings, step, gradient_scale);
    at::parallel_for(0, range.weights.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      adamw_range(w + begin, g + begin, m + begin, v + begin,
                  copy == nullptr ? nullptr : copy + begin, end - begin, numbers);
    });
  });
}

void sgd_step(const OptimizerRange& range, const OptimizerSettings& settings,
              double gradient_scale) {
  for_dtypes(range, [&]<class Weight, class Gradient, class State>() {
    auto* w = range.weights.data_ptr<Weight>();
    const auto* g = range.gradient.data_ptr<Gradient>();
    auto* m = data_or_null<State>(range.first);
    auto* copy = data_or_null<c10::BFloat16>(range.copy);
    at::parallel_for(0, range.weights.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      sgd_range(w + begin, g + begin, m == nullptr ? nullptr : m + begin,
                copy == nullptr ? nullptr : copy + begin, end - begin, settings, gradient_scale);
    });
  });
}

void lion_step(const OptimizerRange& range, const OptimizerSettings& settings,
               double gradient_scale) {
  for_dtypes(range, [&]<class Weight, class Gradient, class State>() {
    auto* w = range.weights.data_ptr<Weight>();
    const auto* g = range.gradient.data_ptr<Gradient>();
    auto* m = range.first.data_ptr<State>();
    auto* copy = data_or_null<c10::BFloat16>(range.copy);
    at::parallel_for(0, range.weights.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      lion_range(w + begin, g + begin, m + begin, copy == nullptr ? nullptr : copy + begin,
                 end - begin, settings, gradient_scale);
    });
  });
}

void add_gradient(const at::Tensor& sum, const at::Tensor& gradient) {
  if (sum.is_meta()) return;
  AT_DISPATCH_FLOATING_TYPES(sum.scalar_type(), "add_gradient", [&] {
    using Sum = scalar_t;
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kBFloat16, at::kHalf, gradient.scalar_type(), "add_gradient", [&] {
          auto* s = sum.data_ptr<Sum>();
          const auto* g = gradient.data_ptr<scalar_t>();
          at::parallel_for(0, sum.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) s[i] += static_cast<Sum>(g[i]);
          });
        });
  });
}

}  // namespace plimsoll::engine
