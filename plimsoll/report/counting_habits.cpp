#include "plimsoll/report/counting_habits.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::report {
namespace {

using formats::ModelInventory;
using network::Family;
using network::Inventory;
using network::InventoryParameter;
using network::NetworkSpec;
using network::ParameterRole;

using Parts = std::vector<DifferencePart>;

// Nobody stores masks of more positions, and their square would leave 64 bits.
constexpr std::int64_t kMostMaskedPositions = std::int64_t{1} << 20U;

// V, D, L, T and what else the habits of a language model need.
struct Sizes {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;  // of the token embedding
  std::int64_t layers = 0;
  std::int64_t positions = 0;  // T
  std::int64_t learned_rows = 0;
  std::int64_t learned_width = 0;
  bool tied = false;
};

class Habits {
 public:
  void add(std::string name, std::string formula, std::int64_t count) {
    if (count != 0) parts_.push_back({std::move(name), std::move(formula), count});
  }
  Parts take() { return std::move(parts_); }

 private:
  Parts parts_;
};

void add_padding(Habits& habits, const Sizes& s) {
  std::int64_t last = s.vocabulary;
  for (const std::int64_t multiple : {8, 64, 128, 256, 512, 1024}) {
    const std::int64_t padded = (s.vocabulary + multiple - 1) / multiple * multiple;
    if (padded == last) continue;
    last = padded;
    const std::int64_t matrices = s.tied ? 1 : 2;
    habits.add(fmt::format("vocabulary padded to {}, a multiple of {}", padded, multiple),
               matrices == 1 ? "(V' - V) D" : "2 (V' - V) D",
               matrices * (padded - s.vocabulary) * s.width);
  }
}

void add_masks(Habits& habits, const Sizes& s) {
  if (s.positions == 0 || s.positions > kMostMaskedPositions) return;
  const std::int64_t mask = s.layers * s.positions * s.positions;
  habits.add("causal masks counted", "L T^2", mask);
  habits.add("causal masks and their fill values counted", "L (T^2 + 1)", mask + s.layers);
}

void add_embeddings(Habits& habits, const Sizes& s) {
  const std::int64_t vd = s.vocabulary * s.width;
  if (s.tied) {
    habits.add("tied head counted twice", "V D", vd);
  } else {
    habits.add("head left out", "- V D", -vd);
  }
  habits.add("token embedding left out", "- V D", -vd);
  if (s.learned_rows == 0) return;
  habits.add("position embedding left out", "- T D", -s.learned_rows * s.learned_width);
  if (s.learned_rows == s.positions + 2) {
    habits.add("positions without the two rows that are never used", "- 2 D", -2 * s.learned_width);
  } else {
    habits.add("two more position rows", "2 D", 2 * s.learned_width);
  }
}

// --- inline models: no names, only sizes

std::int64_t channel_sum(const NetworkSpec& spec, bool counted) {
  std::int64_t sum = 0;
  for (std::int64_t channels : spec.channels) sum += counted ? channels : 0;
  return sum;
}

Parts habits_of_spec(const NetworkSpec& spec) {
  Habits habits;
  if (spec.family == Family::kCnn) {
    habits.add("convolutions' biases left out", "- sum of Cout",
               -channel_sum(spec, spec.conv_bias));
    habits.add("running statistics counted", "2 (sum of Cout)",
               2 * channel_sum(spec, spec.batch_norm));
    return habits.take();
  }
  const Sizes sizes{spec.vocabulary, spec.width, spec.layers,   spec.positions,
                    spec.positions,  spec.width, spec.tied_head};
  add_embeddings(habits, sizes);
  habits.add("norms of the blocks left out", "- 4 L D", -4 * spec.layers * spec.width);
  habits.add("final norm left out", "- 2 D", -2 * spec.width);
  for (const network::ParameterTerm& term : parameter_terms(spec)) {
    if (!term.name.ends_with("_bias")) continue;
    habits.add(fmt::format("{} left out", term.name), fmt::format("- {}", term.formula),
               -term.count);
  }
  add_masks(habits, sizes);
  add_padding(habits, sizes);
  return habits.take();
}

// --- models with a list of parameters

std::int64_t sum_where(const Inventory& inventory,
                       bool (*counts)(const InventoryParameter& parameter)) {
  std::int64_t sum = 0;
  for (const InventoryParameter& p : inventory.parameters) {
    if (counts(p)) sum = checked_add(sum, element_count(p.shape));
  }
  return sum;
}

bool is_bias(const InventoryParameter& p) {
  return p.name.ends_with("bias") && p.role != ParameterRole::kNorm;
}

bool is_query_key_norm(const InventoryParameter& p) {
  if (p.role != ParameterRole::kNorm) return false;
  for (const std::string_view name : {".q_norm", ".k_norm", ".q_layernorm", ".k_layernorm",
                                      ".query_layernorm", ".key_layernorm"}) {
    if (p.name.find(name) != std::string::npos) return true;
  }
  return false;
}

// The first two-dimensional parameter of a role.
const InventoryParameter* matrix_of(const Inventory& inventory, ParameterRole role) {
  for (const InventoryParameter& p : inventory.parameters) {
    if (p.role == role && p.shape.size() == 2) return &p;
  }
  return nullptr;
}

std::int64_t layers_of(const Inventory& inventory) {
  std::int64_t layers = 0;
  for (const InventoryParameter& p : inventory.parameters) {
    layers = std::max<std::int64_t>(layers, p.layer + 1);
  }
  return layers;
}

Sizes sizes_of(const ModelInventory& model) {
  const Inventory& inventory = model.inventory;
  Sizes s;
  if (const auto* token = matrix_of(inventory, ParameterRole::kTokenEmbedding)) {
    s.vocabulary = token->shape[0];
    s.width = token->shape[1];
    s.tied = std::any_of(inventory.tied.begin(), inventory.tied.end(),
                         [&](const auto& names) { return names.front() == token->name; });
  }
  if (const auto* learned = matrix_of(inventory, ParameterRole::kPositionEmbedding)) {
    s.learned_rows = learned->shape[0];
    s.learned_width = learned->shape[1];
  }
  s.layers = layers_of(inventory);
  s.positions = model.positions;
  return s;
}

void add_norms_and_biases(Habits& habits, const Inventory& inventory) {
  const auto of_blocks = [](const InventoryParameter& p) {
    return p.role == ParameterRole::kNorm && p.layer >= 0 && !is_query_key_norm(p);
  };
  const auto outside = [](const InventoryParameter& p) {
    return p.role == ParameterRole::kNorm && p.layer < 0;
  };
  const auto attention = [](const InventoryParameter& p) {
    return is_bias(p) && p.role == ParameterRole::kAttention;
  };
  const auto mlp = [](const InventoryParameter& p) {
    return is_bias(p) && p.role == ParameterRole::kMlp;
  };
  habits.add("norms of the blocks left out", "- norms", -sum_where(inventory, of_blocks));
  habits.add("final norm left out", "- norms", -sum_where(inventory, outside));
  habits.add("norms of queries and keys left out", "- norms",
             -sum_where(inventory, is_query_key_norm));
  habits.add("attention_bias left out", "- biases", -sum_where(inventory, attention));
  habits.add("mlp_bias left out", "- biases", -sum_where(inventory, mlp));
}

void add_experts(Habits& habits, const Inventory& inventory) {
  const std::int64_t idle = inventory.elements() - inventory.active_elements();
  habits.add("only the experts that a token uses counted", "- idle experts", -idle);
  habits.add("routers left out", "- routers", -inventory.elements_of(ParameterRole::kRouter));
  habits.add("shared experts left out", "- shared experts",
             -inventory.elements_of(ParameterRole::kSharedExperts));
}

void add_buffers(Habits& habits, const Inventory& inventory, std::int64_t layers) {
  habits.add("buffers of the state dict counted", "buffers",
             inventory.count_buffers(true).elements);
  for (const network::InventoryBuffer& b : inventory.buffers) {
    const bool first = b.name.ends_with("inv_freq") && !b.name.ends_with("original_inv_freq");
    if (!first) continue;
    habits.add("rotary frequencies of each layer counted", "L H / 2", layers * b.shape[0]);
    return;
  }
}

// DeepSeek's checkpoints hold one more layer that joins two hidden states and predicts one token
// more: a matrix [D, 2 D], three norms, and copies of the embedding and of the head.
void add_prediction_layers(Habits& habits, const ModelInventory& model, const Sizes& s) {
  if (model.prediction_layers == 0) return;
  std::int64_t last = 0;
  for (const InventoryParameter& p : model.inventory.parameters) {
    if (p.layer == s.layers - 1) last = checked_add(last, element_count(p.shape));
  }
  const std::int64_t joined = checked_add(checked_mul(2 * s.width, s.width), 3 * s.width);
  const std::int64_t layer = checked_mul(model.prediction_layers, checked_add(last, joined));
  habits.add("multi-token-prediction layer counted", "layer + 2 D^2 + 3 D", layer);
  habits.add("multi-token-prediction layer counted, with its copies of embedding and head",
             "layer + 2 D^2 + 3 D + 2 V D",
             checked_add(layer, 2 * model.prediction_layers * s.vocabulary * s.width));
}

Parts habits_of_inventory(const ModelInventory& model) {
  Habits habits;
  const Sizes s = sizes_of(model);
  const Inventory& inventory = model.inventory;
  if (s.vocabulary > 0) add_embeddings(habits, s);
  add_norms_and_biases(habits, inventory);
  add_experts(habits, inventory);
  add_buffers(habits, inventory, s.layers);
  if (s.learned_rows > 0) add_masks(habits, s);
  add_prediction_layers(habits, model, s);
  if (s.vocabulary > 0) add_padding(habits, s);
  return habits.take();
}

std::optional<Sizes> sizes_for_thumb(const formats::CountedModel& model) {
  if (model.inventory) {
    const Sizes s = sizes_of(*model.inventory);
    if (s.vocabulary > 0) return s;
    return std::nullopt;
  }
  if (model.spec->family == Family::kCnn) return std::nullopt;
  Sizes s;
  s.vocabulary = model.spec->vocabulary;
  s.width = model.spec->width;
  s.layers = model.spec->layers;
  s.learned_rows = model.spec->positions;
  return s;
}

}  // namespace

Parts counting_habits(const formats::CountedModel& model) {
  return model.inventory ? habits_of_inventory(*model.inventory) : habits_of_spec(*model.spec);
}

Parts rules_of_thumb(const formats::CountedModel& model, std::int64_t calculated) {
  Parts rules;
  const auto sizes = sizes_for_thumb(model);
  if (!sizes) return rules;
  const auto [V, D, L] = std::tuple(sizes->vocabulary, sizes->width, sizes->layers);
  try {
    const std::int64_t blocks = checked_mul(12, checked_mul(L, checked_mul(D, D)));
    const std::int64_t embedded = checked_add(blocks, checked_mul(V, D));
    const auto add = [&](const char* formula, std::int64_t sum) {
      rules.push_back({fmt::format("a rule of thumb in place of the sum: {}", formula), formula,
                       sum - calculated});
    };
    add("12 L D^2", blocks);
    add("12 L D^2 + V D", embedded);
    add("12 L D^2 + 2 V D", checked_add(embedded, checked_mul(V, D)));
    if (sizes->learned_rows > 0) {
      add("12 L D^2 + (V + T) D", checked_add(embedded, checked_mul(sizes->learned_rows, D)));
    }
  } catch (const OverflowError&) {
    rules.clear();
  }
  return rules;
}

}  // namespace plimsoll::report
