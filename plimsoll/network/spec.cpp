#include "plimsoll/network/spec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::network {
namespace {

// Beyond this a size is a slip of the pen, and doubles stop being exact.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 53U;
// A plan walks every layer; published models stay below 200.
constexpr std::int64_t kMostLayers = 10000;

using Size = std::pair<const char*, std::int64_t>;

Result<void> check_size(const char* field, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return {};
  return fail(field, fmt::format("{}, expected a whole number from 1 to {}", value, most));
}

Result<void> check_sizes(std::initializer_list<Size> sizes) {
  for (const auto& [field, value] : sizes) {
    if (auto checked = check_size(field, value, kLargestSize); !checked) return checked;
  }
  return {};
}

Result<void> check_divides(const char* field, std::int64_t part, const char* whole_field,
                           std::int64_t whole) {
  if (whole % part == 0) return {};
  return fail(field, fmt::format("{} does not divide {} {}", part, whole_field, whole));
}

Result<void> check_numbers(const NetworkSpec& spec) {
  const std::array<std::pair<const char*, double>, 2> positive = {
      {{"norm_eps", spec.norm_eps}, {"rope_theta", spec.rope_theta}}};
  for (const auto& [field, value] : positive) {
    if (std::isfinite(value) && value > 0) continue;
    return fail(field, fmt::format("{}, expected a finite number above 0", value));
  }
  if (spec.config_dropout >= 0 && spec.config_dropout <= 1) return {};
  return fail("config_dropout", fmt::format("{}, expected 0 to 1", spec.config_dropout));
}

Result<void> check_activation(OpKind kind) {
  constexpr std::array kKnown = {OpKind::kGelu, OpKind::kGeluTanh, OpKind::kSilu, OpKind::kRelu};
  if (std::find(kKnown.begin(), kKnown.end(), kind) != kKnown.end()) return {};
  return fail("activation", fmt::format("{}, expected gelu, gelu_tanh, silu or relu", name(kind)));
}

Result<void> check_llama_heads(const NetworkSpec& spec) {
  if (auto checked = check_sizes({{"kv_heads", spec.kv_heads}, {"head_dim", spec.head_dim}});
      !checked) {
    return checked;
  }
  // Rotary positions turn pairs of elements.
  if (spec.head_dim % 2 != 0) {
    return fail("head_dim", fmt::format("{}, expected an even number", spec.head_dim));
  }
  return check_divides("kv_heads", spec.kv_heads, "heads", spec.heads);
}

Result<void> check_gpt_heads(const NetworkSpec& spec) {
  if (auto checked = check_divides("heads", spec.heads, "width", spec.width); !checked) {
    return checked;
  }
  if (spec.kv_heads != spec.heads) {
    return fail("kv_heads",
                fmt::format("{}, expected as many as heads: {}", spec.kv_heads, spec.heads));
  }
  if (spec.head_dim == spec.width / spec.heads) return {};
  return fail("head_dim", fmt::format("{}, expected width / heads = {}", spec.head_dim,
                                      spec.width / spec.heads));
}

Result<void> validate_transformer(const NetworkSpec& spec) {
  return check_sizes({{"width", spec.width},
                      {"heads", spec.heads},
                      {"feed_forward", spec.feed_forward},
                      {"vocabulary", spec.vocabulary},
                      {"positions", spec.positions}})
      .and_then([&] { return check_size("layers", spec.layers, kMostLayers); })
      .and_then([&] {
        return spec.family == Family::kLlama ? check_llama_heads(spec) : check_gpt_heads(spec);
      })
      .and_then([&] { return check_activation(spec.activation); })
      .and_then([&] { return check_numbers(spec); });
}

Result<void> validate_cnn(const NetworkSpec& spec) {
  const auto convolutions = static_cast<std::int64_t>(spec.channels.size());
  if (auto checked = check_size("channels", convolutions, kMostLayers); !checked) {
    return fail("channels",
                fmt::format("{} convolutions, expected 1 to {}", convolutions, kMostLayers));
  }
  for (std::int64_t channels : spec.channels) {
    if (auto checked = check_size("channels", channels, kLargestSize); !checked) return checked;
  }
  if (auto checked = check_sizes({{"image", spec.image}, {"classes", spec.classes}}); !checked) {
    return checked;
  }
  if (!spec.pool_last || spec.image % 2 == 0) return {};
  return fail("image", fmt::format("{}, expected an even number because the last layer pools "
                                   "2 x 2",
                                   spec.image));
}

// Everything later is a small multiple of this count, so a bound here keeps bytes inside 64 bits.
Result<void> check_parameter_count(const NetworkSpec& spec) {
  try {
    std::int64_t total = 0;
    for (const ParameterTerm& term : parameter_terms(spec)) total = checked_add(total, term.count);
    if (total <= kLargestSize) return {};
    return fail("parameters", fmt::format("{} parameters, expected at most 2^53", total));
  } catch (const OverflowError&) {
    return fail("parameters",
                "the sizes multiply to more than 2^63 parameters, expected at most "
                "2^53");
  }
}

}  // namespace

std::string_view name(Family family) {
  constexpr std::array<std::string_view, 4> kNames = {"minigpt", "gpt2", "llama", "cnn"};
  return kNames.at(static_cast<std::size_t>(family));
}

std::string_view name(Semantics semantics) {
  return semantics == Semantics::kPlimsoll ? "plimsoll" : "hf";
}

Result<void> validate(const NetworkSpec& spec) {
  const Result<void> shape =
      spec.family == Family::kCnn ? validate_cnn(spec) : validate_transformer(spec);
  return shape.and_then([&] { return check_parameter_count(spec); });
}

}  // namespace plimsoll::network
