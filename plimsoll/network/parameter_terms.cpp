// Each family lists its terms; a term's count is the product or sum that its formula says.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/network/spec.hpp"

namespace plimsoll::network {
namespace {

using Terms = std::vector<ParameterTerm>;

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (std::int64_t factor : factors) result = checked_mul(result, factor);
  return result;
}

void add(Terms& terms, std::string name, std::string formula, std::string substituted,
         std::int64_t count) {
  terms.push_back({std::move(name), std::move(formula), std::move(substituted), count});
}

void add_embedding_and_head(Terms& terms, const NetworkSpec& s) {
  const std::int64_t count = product({s.vocabulary, s.width});
  const std::string substituted = fmt::format("{} * {}", s.vocabulary, s.width);
  add(terms, "token_embedding", "V D", substituted, count);
  if (s.tied_head) {
    add(terms, "head", "0: tied to token_embedding", "0", 0);
  } else {
    add(terms, "head", "V D", substituted, count);
  }
}

void add_gpt_biases(Terms& terms, const NetworkSpec& s) {
  const auto [L, D, F] = std::tuple(s.layers, s.width, s.feed_forward);
  if (s.attention_bias) {
    add(terms, "attention_bias", "4 L D", fmt::format("4 * {} * {}", L, D), product({4, L, D}));
  }
  if (s.mlp_bias) {
    add(terms, "mlp_bias", "L (F + D)", fmt::format("{} * ({} + {})", L, F, D),
        product({L, checked_add(F, D)}));
  }
}

Terms gpt_terms(const NetworkSpec& s) {
  const auto [L, D, F] = std::tuple(s.layers, s.width, s.feed_forward);
  Terms terms;
  add_embedding_and_head(terms, s);
  add(terms, "position_embedding", "T D", fmt::format("{} * {}", s.positions, D),
      product({s.positions, D}));
  add(terms, "attention", "4 L D^2", fmt::format("4 * {} * {}^2", L, D), product({4, L, D, D}));
  add(terms, "mlp", "2 L D F", fmt::format("2 * {} * {} * {}", L, D, F), product({2, L, D, F}));
  add_gpt_biases(terms, s);
  add(terms, "norms", "(4 L + 2) D", fmt::format("(4 * {} + 2) * {}", L, D),
      product({checked_add(product({4, L}), 2), D}));
  return terms;
}

void add_llama_biases(Terms& terms, const NetworkSpec& s) {
  const auto [L, D, F] = std::tuple(s.layers, s.width, s.feed_forward);
  const auto [N, K, H] = std::tuple(s.heads, s.kv_heads, s.head_dim);
  if (s.attention_bias) {
    const std::int64_t rows = product({H, checked_add(N, product({2, K}))});
    add(terms, "attention_bias", "L (H (N + 2 K) + D)",
        fmt::format("{} * ({} * ({} + 2 * {}) + {})", L, H, N, K, D),
        product({L, checked_add(rows, D)}));
  }
  if (s.mlp_bias) {
    add(terms, "mlp_bias", "L (2 F + D)", fmt::format("{} * (2 * {} + {})", L, F, D),
        product({L, checked_add(product({2, F}), D)}));
  }
}

Terms llama_terms(const NetworkSpec& s) {
  const auto [L, D, F] = std::tuple(s.layers, s.width, s.feed_forward);
  const auto [N, K, H] = std::tuple(s.heads, s.kv_heads, s.head_dim);
  Terms terms;
  add_embedding_and_head(terms, s);
  add(terms, "attention", "2 L D H (N + K)",
      fmt::format("2 * {} * {} * {} * ({} + {})", L, D, H, N, K),
      product({2, L, D, H, checked_add(N, K)}));
  add(terms, "mlp", "3 L D F", fmt::format("3 * {} * {} * {}", L, D, F), product({3, L, D, F}));
  add_llama_biases(terms, s);
  add(terms, "norms", "(2 L + 1) D", fmt::format("(2 * {} + 1) * {}", L, D),
      product({checked_add(product({2, L}), 1), D}));
  return terms;
}

// The channels of all convolutions: " + " between, and their sum.
std::pair<std::string, std::int64_t> channel_sum(const NetworkSpec& s) {
  std::string text;
  std::int64_t sum = 0;
  for (std::int64_t channels : s.channels) {
    text += fmt::format("{}{}", text.empty() ? "" : " + ", channels);
    sum = checked_add(sum, channels);
  }
  return {text, sum};
}

void add_convolutions(Terms& terms, const NetworkSpec& s) {
  constexpr std::int64_t kColours = 3;
  std::int64_t before = kColours;
  for (std::size_t i = 0; i < s.channels.size(); ++i) {
    const std::int64_t channels = s.channels[i];
    std::string formula = "9 Cin Cout";
    std::string substituted = fmt::format("9 * {} * {}", before, channels);
    std::int64_t count = product({9, before, channels});
    if (s.conv_bias) {
      formula += " + Cout";
      substituted += fmt::format(" + {}", channels);
      count = checked_add(count, channels);
    }
    add(terms, fmt::format("convolution_{}", i + 1), formula, substituted, count);
    before = channels;
  }
}

Terms cnn_terms(const NetworkSpec& s) {
  Terms terms;
  add_convolutions(terms, s);
  if (s.batch_norm) {
    const auto [text, sum] = channel_sum(s);
    add(terms, "batch_norms", "2 (sum of Cout)", fmt::format("2 * ({})", text), product({2, sum}));
  }
  const std::int64_t last = s.channels.empty() ? 0 : s.channels.back();
  const std::int64_t side = s.pool_last ? s.image / 2 : s.image;
  add(terms, "classifier", "C side^2 classes + classes",
      fmt::format("{} * {}^2 * {} + {}", last, side, s.classes, s.classes),
      checked_add(product({last, side, side, s.classes}), s.classes));
  return terms;
}

}  // namespace

std::vector<ParameterTerm> parameter_terms(const NetworkSpec& spec) {
  switch (spec.family) {
    case Family::kMiniGpt:
    case Family::kGpt2:
      return gpt_terms(spec);
    case Family::kLlama:
      return llama_terms(spec);
    case Family::kCnn:
      return cnn_terms(spec);
  }
  return {};
}

}  // namespace plimsoll::network
