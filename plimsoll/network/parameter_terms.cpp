// Each family lists its terms; a term's count is the product or sum that its formula says.
#include <string>
#include <tuple>
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

// The terms of a transformer, from its architecture.
class TransformerTerms {
 public:
  explicit TransformerTerms(const NetworkSpec& spec) : s_(spec), a_(spec.architecture) {}

  Terms list() {
    add_embeddings();
    add_matrices();
    add_biases();
    add_norms();
    return std::move(terms_);
  }

 private:
  void put(std::string name, std::string formula, std::string substituted, std::int64_t count) {
    add(terms_, std::move(name), std::move(formula), std::move(substituted), count);
  }

  void add_embeddings() {
    const std::int64_t D = s_.width;
    const bool projected = a_.embedding_width > 0;
    const std::int64_t E = projected ? a_.embedding_width : D;
    const std::string formula = projected ? "V E" : "V D";
    const std::string substituted = fmt::format("{} * {}", s_.vocabulary, E);
    const std::int64_t count = product({s_.vocabulary, E});
    put("token_embedding", formula, substituted, count);
    if (s_.tied_head) {
      put("head", "0: tied to token_embedding", "0", 0);
    } else {
      put("head", formula, substituted, count);
    }
    if (projected) {
      put("embedding_projections", "2 D E", fmt::format("2 * {} * {}", D, E), product({2, D, E}));
    }
    add_positions();
  }

  void add_positions() {
    const std::int64_t D = s_.width;
    if (a_.positions == Positions::kLearned) {
      const std::int64_t offset = a_.position_offset;
      const std::int64_t rows = checked_add(s_.positions, offset);
      if (offset == 0) {
        put("position_embedding", "T D", fmt::format("{} * {}", rows, D), product({rows, D}));
      } else {
        put("position_embedding", fmt::format("(T + {}) D", offset),
            fmt::format("({} + {}) * {}", s_.positions, offset, D), product({rows, D}));
      }
    }
    if (a_.token_types > 0) {
      put("token_type_embedding", fmt::format("{} D", a_.token_types),
          fmt::format("{} * {}", a_.token_types, D), product({a_.token_types, D}));
    }
  }

  void add_matrices() {
    const auto [L, D, F] = std::tuple(s_.layers, s_.width, s_.feed_forward);
    const auto [N, K, H] = std::tuple(s_.heads, s_.kv_heads, s_.head_dim);
    if (N == K && product({N, H}) == D && s_.family != Family::kLlama) {
      put("attention", "4 L D^2", fmt::format("4 * {} * {}^2", L, D), product({4, L, D, D}));
    } else if (N == K && s_.family != Family::kLlama) {
      put("attention", "4 L D N H", fmt::format("4 * {} * {} * {} * {}", L, D, N, H),
          product({4, L, D, N, H}));
    } else {
      put("attention", "2 L D H (N + K)",
          fmt::format("2 * {} * {} * {} * ({} + {})", L, D, H, N, K),
          product({2, L, D, H, checked_add(N, K)}));
    }
    const std::int64_t matrices = a_.gated ? 3 : 2;
    put("mlp", fmt::format("{} L D F", matrices),
        fmt::format("{} * {} * {} * {}", matrices, L, D, F), product({matrices, L, D, F}));
    if (a_.masked_head) {
      put("head_dense", "D^2", fmt::format("{}^2", D), product({D, D}));
    }
  }

  void add_biases() {
    if (s_.attention_bias || a_.qkv_bias) add_attention_bias();
    if (s_.mlp_bias) {
      const auto [L, D, F] = std::tuple(s_.layers, s_.width, s_.feed_forward);
      const std::int64_t inner = product({a_.gated ? 2 : 1, F});
      put("mlp_bias", a_.gated ? "L (2 F + D)" : "L (F + D)",
          fmt::format("{} * ({}{} + {})", L, a_.gated ? "2 * " : "", F, D),
          product({L, checked_add(inner, D)}));
    }
    if (a_.masked_head) {
      put("head_bias", "V + D", fmt::format("{} + {}", s_.vocabulary, s_.width),
          checked_add(s_.vocabulary, s_.width));
    } else if (a_.head_bias) {
      put("head_bias", "V", fmt::format("{}", s_.vocabulary), s_.vocabulary);
    }
  }

  void add_attention_bias() {
    const auto [L, D] = std::tuple(s_.layers, s_.width);
    const auto [N, K, H] = std::tuple(s_.heads, s_.kv_heads, s_.head_dim);
    const std::int64_t rows = product({H, checked_add(N, product({2, K}))});
    if (!s_.attention_bias) {
      put("attention_bias", "L H (N + 2 K)", fmt::format("{} * {} * ({} + 2 * {})", L, H, N, K),
          product({L, rows}));
    } else if (s_.family != Family::kLlama && N == K && product({N, H}) == D) {
      put("attention_bias", "4 L D", fmt::format("4 * {} * {}", L, D), product({4, L, D}));
    } else {
      put("attention_bias", "L (H (N + 2 K) + D)",
          fmt::format("{} * ({} * ({} + 2 * {}) + {})", L, H, N, K, D),
          product({L, checked_add(rows, D)}));
    }
  }

  void add_norms() {
    if (a_.qk_norm != QkNorm::kNone) add_qk_norms();
    if (!a_.norm_weight) {
      put("norms", "0: norms without weights", "0", 0);
      return;
    }
    const auto [L, D] = std::tuple(s_.layers, s_.width);
    const std::int64_t vectors = a_.norm_bias ? 2 : 1;
    const std::int64_t layer = vectors * norms_per_layer(a_);
    const std::int64_t others = vectors * ((a_.final_norm ? 1 : 0) + (a_.embedding_norm ? 1 : 0) +
                                           (a_.masked_head ? 1 : 0));
    put("norms", fmt::format("({} L + {}) D", layer, others),
        fmt::format("({} * {} + {}) * {}", layer, L, others, D),
        product({checked_add(product({layer, L}), others), D}));
  }

  void add_qk_norms() {
    const auto [L, N, K, H] = std::tuple(s_.layers, s_.heads, s_.kv_heads, s_.head_dim);
    const std::int64_t vectors = a_.qk_norm_bias ? 2 : 1;
    if (a_.qk_norm == QkNorm::kPerHead) {
      put("qk_norms", fmt::format("{} L H", 2 * vectors),
          fmt::format("{} * {} * {}", 2 * vectors, L, H), product({2 * vectors, L, H}));
      return;
    }
    const std::string factor = vectors == 1 ? "" : "2 ";
    put("qk_norms", fmt::format("{}L H (N + K)", factor),
        fmt::format("{}{} * {} * ({} + {})", vectors == 1 ? "" : "2 * ", L, H, N, K),
        product({vectors, L, H, checked_add(N, K)}));
  }

  const NetworkSpec& s_;
  const Architecture& a_;
  Terms terms_;
};

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
  return spec.family == Family::kCnn ? cnn_terms(spec) : TransformerTerms(spec).list();
}

}  // namespace plimsoll::network
