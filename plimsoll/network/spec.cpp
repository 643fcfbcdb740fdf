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
// See [Note: Convolution kernels].
constexpr std::int64_t kSmallestImage = 3;

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

// GPT-2's matrix for q, k and v is [3 D, D].
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

// Rotary positions turn pairs of elements.
Result<void> check_rotary(const NetworkSpec& spec) {
  if (spec.architecture.positions != Positions::kRotary) return {};
  if (spec.head_dim % 2 != 0) {
    return fail("head_dim", fmt::format("{}, expected an even number", spec.head_dim));
  }
  const std::int64_t turned = spec.architecture.rotary_dim;
  if (turned >= 0 && turned <= spec.head_dim && turned % 2 == 0) return {};
  return fail("rotary_dim", fmt::format("{}, expected an even number of at most head_dim {}",
                                        turned, spec.head_dim));
}

Result<void> check_heads(const NetworkSpec& spec) {
  if (spec.family == Family::kMiniGpt || spec.family == Family::kGpt2) return check_gpt_heads(spec);
  return check_sizes({{"kv_heads", spec.kv_heads}, {"head_dim", spec.head_dim}})
      .and_then([&] { return check_rotary(spec); })
      .and_then([&] { return check_divides("kv_heads", spec.kv_heads, "heads", spec.heads); })
      .and_then([&]() -> Result<void> {
        if (spec.architecture.qkv != QkvLayout::kByHead || spec.kv_heads == spec.heads) return {};
        return fail("kv_heads",
                    fmt::format("{}, expected as many as heads: {}", spec.kv_heads, spec.heads));
      });
}

// A GPT with llama's architecture, or the other way round, is a spec that somebody half filled in.
Result<void> check_architecture(const NetworkSpec& spec) {
  const Architecture& a = spec.architecture;
  const bool gpt = spec.family == Family::kMiniGpt || spec.family == Family::kGpt2;
  if (gpt && (a.positions != Positions::kLearned || a.norm != NormKind::kLayer || a.gated)) {
    return fail("architecture",
                fmt::format("not that of {}, expected gpt_architecture()", name(spec.family)));
  }
  if ((a.norm_bias || a.qk_norm_bias || !a.norm_weight) && !is_layer_norm(a.norm)) {
    return fail("architecture", "norms other than LayerNorm have a weight and no bias");
  }
  const std::size_t layers = spec.layer_facts.size();
  if (layers != 0 && layers != static_cast<std::size_t>(spec.layers)) {
    return fail("layer_facts", fmt::format("facts of {} layers, expected {}", layers, spec.layers));
  }
  for (const LayerFacts& facts : spec.layer_facts) {
    if (facts.window < 0) {
      return fail("window", fmt::format("{}, expected 0 or more keys", facts.window));
    }
    if (!std::isfinite(facts.rope_theta) || facts.rope_theta < 0) {
      return fail("rope_theta",
                  fmt::format("{}, expected a finite number above 0", facts.rope_theta));
    }
  }
  const std::array<Size, 3> counts = {{{"position_offset", a.position_offset},
                                       {"token_types", a.token_types},
                                       {"embedding_width", a.embedding_width}}};
  for (const auto& [field, value] : counts) {
    if (value < 0 || value > kLargestSize) {
      return fail(field, fmt::format("{}, expected a whole number from 0 to 2^53", value));
    }
  }
  return {};
}

Result<void> validate_transformer(const NetworkSpec& spec) {
  return check_sizes({{"width", spec.width},
                      {"heads", spec.heads},
                      {"feed_forward", spec.feed_forward},
                      {"vocabulary", spec.vocabulary},
                      {"positions", spec.positions}})
      .and_then([&] { return check_size("layers", spec.layers, kMostLayers); })
      .and_then([&] { return check_heads(spec); })
      .and_then([&] { return check_activation(spec.activation); })
      .and_then([&] { return check_architecture(spec); })
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
  if (spec.image < kSmallestImage) {
    return fail(
        "image",
        fmt::format("{}, expected at least {}: what libtorch's kernels allocate for smaller "
                    "ones is not modelled",
                    spec.image, kSmallestImage));
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
  constexpr std::array<std::string_view, 6> kNames = {"minigpt", "gpt2",    "llama",
                                                      "cnn",     "decoder", "encoder"};
  return kNames.at(static_cast<std::size_t>(family));
}

std::string_view name(Semantics semantics) {
  return semantics == Semantics::kPlimsoll ? "plimsoll" : "hf";
}

LayerFacts NetworkSpec::layer(std::int64_t index) const {
  LayerFacts facts;
  if (!layer_facts.empty()) facts = layer_facts[static_cast<std::size_t>(index)];
  if (facts.rope_theta == 0) facts.rope_theta = rope_theta;
  return facts;
}

std::int64_t tied_elements(const NetworkSpec& spec) {
  if (spec.family == Family::kCnn || !spec.tied_head) return 0;
  const Architecture& a = spec.architecture;
  const std::int64_t width = a.embedding_width > 0 ? a.embedding_width : spec.width;
  // A masked-token head's bias has two names, too.
  const std::int64_t bias = a.masked_head ? spec.vocabulary : 0;
  return checked_add(checked_mul(spec.vocabulary, width), bias);
}

Result<void> validate(const NetworkSpec& spec) {
  const Result<void> shape =
      spec.family == Family::kCnn ? validate_cnn(spec) : validate_transformer(spec);
  return shape.and_then([&] { return check_parameter_count(spec); });
}

}  // namespace plimsoll::network
