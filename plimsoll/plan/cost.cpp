#include "plimsoll/plan/cost.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {
namespace {

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (std::int64_t factor : factors) result = checked_mul(result, factor);
  return result;
}

std::int64_t sum(std::initializer_list<std::int64_t> terms) {
  std::int64_t result = 0;
  for (std::int64_t term : terms) result = checked_add(result, term);
  return result;
}

// Pairs of a query and a key in one head of one row.
struct Pairs {
  std::int64_t full, exact;
};

Pairs pairs_of(const AttentionShape& a, std::int64_t tokens, bool causal) {
  const std::int64_t square = product({tokens, tokens});
  if (!causal) return {square, square};
  const std::int64_t window = a.window > 0 ? std::min(a.window, tokens) : tokens;
  // The first `window` queries see 1, 2, ... keys, all others `window`.
  const std::int64_t exact =
      sum({product({window, window + 1}) / 2, product({tokens - window, window})});
  return {square, exact};
}

// Collects rows by operation and pass, so that layers of all groups add up.
class Rows {
 public:
  CostRow& at(const std::string& operation, const std::string& pass, const std::string& formula) {
    for (CostRow& row : rows_) {
      if (row.operation == operation && row.pass == pass) return row;
    }
    rows_.push_back({operation, pass, formula, {}, 0, 0});
    return rows_.back();
  }

  void add(const std::string& operation, const std::string& pass, const std::string& formula,
           const ConventionFlops& flops, std::int64_t read, std::int64_t written) {
    CostRow& row = at(operation, pass, formula);
    row.flops += flops;
    row.bytes_read = checked_add(row.bytes_read, read);
    row.bytes_written = checked_add(row.bytes_written, written);
  }

  std::vector<CostRow> take() { return std::move(rows_); }

 private:
  std::vector<CostRow> rows_;
};

class TrainingRows {
 public:
  TrainingRows(const ModelShape& model, const CostSizes& sizes)
      : model_(model), sizes_(sizes), rows_count_(product({sizes.batch, sizes.tokens})) {}

  std::vector<CostRow> rows() {
    embedding();
    for (const LayerGroup& group : model_.layers) layer(group);
    norms_and_sums(1, 0);  // the final norm
    head();
    return rows_.take();
  }

 private:
  // `count` times [rows, in] [in, out] with a weight.
  void linear(const std::string& operation, const std::string& formula, std::int64_t count,
              std::int64_t rows, std::int64_t in, std::int64_t out) {
    linear(operation, formula, count, rows, in, out, 1);
  }

  // The same with `matrices` different weights that share the rows between them.
  void linear(const std::string& operation, const std::string& formula, std::int64_t count,
              std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t matrices) {
    if (in == 0 || out == 0 || count == 0) return;
    const std::int64_t flops = product({2, count, rows, in, out});
    const std::int64_t x = product({sizes_.item, count, rows, in});
    const std::int64_t y = product({sizes_.item, count, rows, out});
    const std::int64_t w = product({sizes_.item, count, matrices, in, out});
    const ConventionFlops same{flops, flops, flops};
    rows_.add(operation, "forward", formula, same, checked_add(x, w), y);
    rows_.add(operation, "backward input", formula, same, checked_add(y, w), x);
    rows_.add(operation, "backward weight", formula, same, checked_add(x, y), w);
  }

  void embedding() {
    const std::int64_t rows = product({sizes_.item, rows_count_, model_.embedded()});
    const std::int64_t table = product({sizes_.item, model_.vocabulary, model_.embedded()});
    rows_.add("embedding", "forward", "", {}, rows, rows);
    rows_.add("embedding", "backward weight", "", {}, rows, table);
    if (model_.embedded() == model_.width) return;
    linear("embedding in, out", "4 B T D embedding", 1, rows_count_, model_.embedded(),
           model_.width);
    linear("embedding in, out", "4 B T D embedding", 1, rows_count_, model_.width,
           model_.embedded());
  }

  void layer(const LayerGroup& group) {
    projections(group.shape.attention, group.count);
    scores(group.shape.attention, group.count);
    mlp(group.shape.mlp, group.count);
    norms_and_sums(checked_mul(2, group.count), checked_mul(2, group.count));
  }

  void projections(const AttentionShape& a, std::int64_t count) {
    if (a.heads == 0) return;
    const std::string name = "projections";
    const std::int64_t queries = product({a.heads, a.key_dim});
    const std::string formula =
        a.latent() ? "2 B T weights" : "2 B T D (N H + 2 K H) + 2 B T N H D";
    const auto add = [&](std::int64_t in, std::int64_t out) {
      linear(name, formula, count, rows_count_, in, out);
    };
    if (a.query_rank > 0) {
      add(model_.width, a.query_rank);
      add(a.query_rank, queries);
    } else {
      add(model_.width, queries);
    }
    if (a.latent()) {
      add(model_.width, a.cached_values());
      add(a.kv_rank, product({a.heads, sum({a.key_dim, -a.rope_dim, a.value_dim})}));
    } else {
      add(model_.width, product({a.kv_heads, a.key_dim}));
      add(model_.width, product({a.kv_heads, a.value_dim}));
    }
    add(product({a.heads, a.value_dim}), model_.width);
  }

  void scores(const AttentionShape& a, std::int64_t count) {
    if (a.heads == 0) return;
    const Pairs pairs = pairs_of(a, sizes_.tokens, model_.causal);
    const std::int64_t per_pair =
        product({2, count, sizes_.batch, a.heads, a.key_dim + a.value_dim});
    const auto flops = [&](std::int64_t times) {
      const std::int64_t full = product({times, per_pair, pairs.full});
      return ConventionFlops{full, model_.causal ? full / 2 : full,
                             product({times, per_pair, pairs.exact})};
    };
    const std::int64_t kv_heads = a.latent() ? a.heads : a.kv_heads;
    const std::int64_t unit = product({sizes_.item, count, rows_count_});
    const std::int64_t query = product({unit, a.heads, a.key_dim});
    const std::int64_t keys = product({unit, kv_heads, a.key_dim + a.value_dim});
    const std::int64_t out = product({unit, a.heads, a.value_dim});
    const std::int64_t square =
        sizes_.scores_in_memory ? product({sizes_.item, count, sizes_.batch, a.heads, pairs.full})
                                : 0;
    rows_.add("scores and values", "forward", "4 B T S N H", flops(1),
              sum({query, keys, product({2, square})}), sum({out, product({2, square})}));
    rows_.add("scores and values", "backward", "8 B T S N H", flops(2),
              sum({query, keys, product({2, out}), product({4, square})}),
              sum({query, keys, product({2, square})}));
  }

  void mlp(const MlpShape& m, std::int64_t count) {
    if (m.experts == 0) {
      dense_mlp("MLP", m.feed_forward, m.gated, count);
      return;
    }
    linear("router", "2 B T D E", count, rows_count_, model_.width, m.experts);
    const std::int64_t rows = product({rows_count_, m.per_token});
    const std::int64_t visited = std::min(m.experts, rows);
    const std::string formula = m.gated ? "6 B T k D F" : "4 B T k D F";
    for (std::int64_t i = 1; i < mlp_matrices(m); ++i) {
      linear("experts", formula, count, rows, model_.width, m.feed_forward, visited);
    }
    linear("experts", formula, count, rows, m.feed_forward, model_.width, visited);
    activation(m.gated, product({count, rows, m.feed_forward}));
    if (m.shared > 0) dense_mlp("shared experts", m.shared, m.gated, count);
    if (m.shared_gate) linear("shared experts", "", count, rows_count_, model_.width, 1);
  }

  void dense_mlp(const std::string& name, std::int64_t hidden, bool gated, std::int64_t count) {
    const std::string formula = gated ? "6 B T D F" : "4 B T D F";
    for (int i = 0; i < (gated ? 2 : 1); ++i) {
      linear(name, formula, count, rows_count_, model_.width, hidden);
    }
    linear(name, formula, count, rows_count_, hidden, model_.width);
    activation(gated, product({count, rows_count_, hidden}));
  }

  // act(gate) * up, or act(x).
  void activation(bool gated, std::int64_t elements) {
    const std::int64_t bytes = product({sizes_.item, elements});
    const std::int64_t inputs = gated ? 2 : 1;
    rows_.add("activation", "forward", "", {}, product({inputs, bytes}), bytes);
    rows_.add("activation", "backward", "", {}, product({inputs + 1, bytes}),
              product({inputs, bytes}));
  }

  void norms_and_sums(std::int64_t norms, std::int64_t sums) {
    const std::int64_t x = product({sizes_.item, rows_count_, model_.width});
    rows_.add("norms and sums", "forward", "", {}, product({norms + 2 * sums, x}),
              product({norms + sums, x}));
    rows_.add("norms and sums", "backward", "", {}, product({2 * norms + 2 * sums, x}),
              product({norms + sums, x}));
  }

  void head() {
    if (model_.head_transform) {
      linear("head transform", "2 B T D D", 1, rows_count_, model_.width, model_.width);
    }
    linear("unembedding", "2 B T D V", model_.heads, rows_count_, model_.embedded(),
           model_.vocabulary);
    const std::int64_t logits = product({model_.heads, rows_count_, model_.vocabulary});
    const std::int64_t wide = product({sizes_.loss_item, logits});
    rows_.add("cross entropy", "forward", "", {}, product({sizes_.item, logits}), wide);
    rows_.add("cross entropy", "backward", "", {}, wide, product({sizes_.item, logits}));
  }

  const ModelShape& model_;
  const CostSizes sizes_;
  const std::int64_t rows_count_;  // B T
  Rows rows_;
};

}  // namespace

ConventionFlops& ConventionFlops::operator+=(const ConventionFlops& other) {
  full = checked_add(full, other.full);
  causal_half = checked_add(causal_half, other.causal_half);
  causal_exact = checked_add(causal_exact, other.causal_exact);
  return *this;
}

double CostRow::intensity() const {
  return bytes() == 0 ? 0 : static_cast<double>(flops.causal_exact) / static_cast<double>(bytes());
}

CostSizes cost_sizes(const Job& job) {
  const Recipe recipe = job.recipe();
  return {job.batch, std::max<std::int64_t>(job.sequence, 1), network::size_of(recipe.compute),
          network::size_of(recipe.loss), job.kernel() == AttentionKernel::kMath};
}

std::vector<CostRow> training_rows(const ModelShape& model, const CostSizes& sizes) {
  return TrainingRows(model, sizes).rows();
}

CostRow optimizer_row(const ModelShape& model, const Job& job) {
  const Recipe recipe = job.recipe();
  const std::int64_t weight = network::size_of(recipe.master.value_or(recipe.compute));
  const std::int64_t copy = recipe.master ? network::size_of(recipe.compute) : 0;
  const std::int64_t gradient = network::size_of(recipe.accumulator.value_or(recipe.compute));
  const std::int64_t states = moments(job.optimizer) * network::size_of(recipe.state);
  return {"optimizer",
          "update",
          "",
          {},
          checked_mul(model.parameters, weight + gradient + states),
          checked_mul(model.parameters, weight + copy + states)};
}

ConventionFlops sum_flops(const std::vector<CostRow>& rows, std::string_view pass_prefix) {
  ConventionFlops total;
  for (const CostRow& row : rows) {
    if (row.pass.starts_with(pass_prefix)) total += row.flops;
  }
  return total;
}

}  // namespace plimsoll::plan
