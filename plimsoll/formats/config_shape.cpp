#include "plimsoll/formats/config_shape.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::formats {
namespace {

using network::InventoryParameter;
using network::ParameterRole;
using nlohmann::json;
using plan::AttentionShape;
using plan::LayerShape;
using plan::MlpShape;

// Sizes that the class config has already been checked for by the inventory's reader.
class Keys {
 public:
  explicit Keys(const json& keys) : keys_(keys) {}

  std::int64_t size_or(const char* key, std::int64_t otherwise) const {
    const auto found = keys_.find(key);
    return found != keys_.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                              : otherwise;
  }
  // Some classes switch their window off; others say per layer where it holds.
  std::int64_t window(std::int64_t layer) const {
    const auto use = keys_.find("use_sliding_window");
    if (use != keys_.end() && use->is_boolean() && !use->get<bool>()) return 0;
    const auto types = keys_.find("layer_types");
    const auto index = static_cast<std::size_t>(layer);
    if (types != keys_.end() && types->is_array() && index < types->size() &&
        (*types)[index] != "sliding_attention") {
      return 0;
    }
    return size_or("sliding_window", 0);
  }

 private:
  const json& keys_;
};

AttentionShape attention_shape(const Keys& keys, std::int64_t width, std::int64_t layer) {
  AttentionShape a;
  a.heads = keys.size_or("num_attention_heads", keys.size_or("n_head", 0));
  if (a.heads == 0) return a;
  a.kv_heads = keys.size_or("num_key_value_heads", a.heads);
  a.key_dim = a.value_dim = keys.size_or("head_dim", width / a.heads);
  a.window = keys.window(layer);
  if (keys.size_or("kv_lora_rank", 0) == 0) return a;
  a.kv_rank = keys.size_or("kv_lora_rank", 0);
  a.query_rank = keys.size_or("q_lora_rank", 0);
  a.rope_dim = keys.size_or("qk_rope_head_dim", 0);
  a.key_dim = checked_add(keys.size_or("qk_nope_head_dim", 0), a.rope_dim);
  a.value_dim = keys.size_or("v_head_dim", a.key_dim);
  return a;
}

// What the parameters of one layer say.
struct LayerWeights {
  std::int64_t attention = 0;  // elements of matrices
  std::int64_t mlp = 0;
  std::int64_t experts = 0;
  std::int64_t shared = 0;
  std::int64_t expert_count = 0;
  std::int64_t per_token = 0;
  bool shared_gate = false;
  bool other = false;  // something that is neither attention nor MLP
};

// Matrices of a layer have two dimensions, those of stacked experts three.
bool is_matrix(const InventoryParameter& p) {
  return p.shape.size() == (p.experts > 1 && p.shape[0] == p.experts ? 3U : 2U);
}

void add_parameter(const InventoryParameter& p, LayerWeights& w) {
  if (p.role == ParameterRole::kMixer || p.role == ParameterRole::kOther) w.other = true;
  if (!is_matrix(p)) return;
  const std::int64_t count = network::element_count(p.shape);
  switch (p.role) {
    case ParameterRole::kAttention:
      w.attention = checked_add(w.attention, count);
      break;
    case ParameterRole::kMlp:
      w.mlp = checked_add(w.mlp, count);
      break;
    case ParameterRole::kExperts:
      w.experts = checked_add(w.experts, count);
      w.expert_count = std::max(w.expert_count, p.experts);
      w.per_token = std::max(w.per_token, p.used);
      break;
    case ParameterRole::kSharedExperts:
      if (p.shape[0] == 1) {
        w.shared_gate = true;
      } else {
        w.shared = checked_add(w.shared, count);
      }
      break;
    default:
      break;
  }
}

std::vector<LayerWeights> weights_by_layer(const network::Inventory& inventory) {
  std::vector<LayerWeights> layers;
  for (const InventoryParameter& p : inventory.parameters) {
    if (p.layer < 0) continue;
    const auto index = static_cast<std::size_t>(p.layer);
    if (layers.size() <= index) layers.resize(index + 1);
    add_parameter(p, layers[index]);
  }
  return layers;
}

// Gated MLPs have three matrices; two that make a known width are a plain one.
MlpShape mlp_shape(const LayerWeights& w, const Keys& keys, std::int64_t width) {
  MlpShape mlp;
  const std::int64_t matrix = checked_mul(3, width);
  if (w.expert_count > 0) {
    mlp.experts = w.expert_count;
    mlp.per_token = w.per_token;
    mlp.feed_forward = w.experts / w.expert_count / matrix;
    mlp.shared = w.shared / matrix;
    mlp.shared_gate = w.shared_gate;
    return mlp;
  }
  const std::int64_t inner = keys.size_or("intermediate_size", keys.size_or("ffn_dim", 0));
  mlp.gated = w.mlp != checked_mul(2, checked_mul(width, inner));
  mlp.feed_forward = w.mlp / (mlp.gated ? matrix : checked_mul(2, width));
  return mlp;
}

bool has_whole_mlp(const LayerWeights& w, const MlpShape& mlp, std::int64_t width) {
  const std::int64_t inner = checked_mul(plan::mlp_matrices(mlp), width);
  if (mlp.experts == 0) return w.mlp == checked_mul(inner, mlp.feed_forward);
  return w.experts == checked_mul(mlp.experts, checked_mul(inner, mlp.feed_forward)) &&
         w.shared == checked_mul(inner, mlp.shared) && w.mlp == 0;
}

tl::unexpected<Error> unknown_layer(const ClassConfig& config, std::size_t layer) {
  return fail(config.where,
              fmt::format("layer {} of {} is not made of attention heads and an MLP, expected a "
                          "transformer",
                          layer, config.model_type),
              "`plimsoll params` counts its parameters");
}

void add_totals(const network::Inventory& inventory, plan::ModelShape& model) {
  model.parameters = inventory.elements();
  model.inactive = model.parameters - inventory.active_elements();
  model.tied_head = inventory.elements_of(ParameterRole::kHead) == 0;
  if (!model.tied_head) model.lookup_parameters = checked_mul(model.vocabulary, model.width);
  model.lookup_parameters = checked_add(
      model.lookup_parameters, checked_add(inventory.elements_of(ParameterRole::kPositionEmbedding),
                                           inventory.elements_of(ParameterRole::kOtherEmbedding)));
}

}  // namespace

Result<plan::ModelShape> shape_from_config(const ClassConfig& config,
                                           const ModelInventory& source) {
  const Keys keys(*config.keys);
  plan::ModelShape model;
  model.width = keys.size_or("hidden_size", 0);
  model.vocabulary = keys.size_or("vocab_size", 0);
  model.positions = source.positions;
  const std::vector<LayerWeights> layers = weights_by_layer(source.inventory);
  if (model.width == 0 || model.vocabulary == 0 || layers.empty()) {
    return unknown_layer(config, 0);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerShape layer;
    layer.attention = attention_shape(keys, model.width, static_cast<std::int64_t>(i));
    layer.mlp = mlp_shape(layers[i], keys, model.width);
    const bool whole = !layers[i].other && layer.attention.heads > 0 &&
                       attention_weights(layer.attention, model.width) == layers[i].attention &&
                       has_whole_mlp(layers[i], layer.mlp, model.width);
    if (!whole) return unknown_layer(config, i);
    plan::add_layer(model, layer);
  }
  add_totals(source.inventory, model);
  return model;
}

}  // namespace plimsoll::formats
