// Image networks as classifiers, and CLIP's two towers.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/class_keys.hpp"
#include "plimsoll/formats/inventory/decoder.hpp"
#include "plimsoll/formats/inventory/families.hpp"
#include "plimsoll/formats/inventory/labels.hpp"

namespace plimsoll::formats {
namespace {

void write_classifier(ConfigReader& reader, InventoryBuilder& g, std::string_view name,
                      std::int64_t width) {
  g.enter("");
  g.role(ParameterRole::kHead);
  g.linear(name, label_count(reader), width, true);
}

// Depths and widths of stages: as many of the one as of the other.
struct Stages {
  std::vector<std::int64_t> depths;
  std::vector<std::int64_t> widths;
};

Stages read_stages(ConfigReader& reader) {
  Stages stages{reader.sizes("depths"), reader.sizes("hidden_sizes")};
  std::int64_t blocks = 0;
  for (const std::int64_t depth : stages.depths) blocks = checked_add(blocks, depth);
  if (blocks > kMostDerivedLayers) {
    reader.refuse_key("depths",
                      fmt::format("{} blocks, expected at most {}", blocks, kMostDerivedLayers));
    stages.depths.assign(1, 1);
  }
  if (stages.depths.size() != stages.widths.size()) {
    reader.refuse_key("depths", fmt::format("{} entries, but hidden_sizes has {}, expected as many",
                                            stages.depths.size(), stages.widths.size()));
  }
  const std::size_t both = std::min(stages.depths.size(), stages.widths.size());
  stages.depths.resize(both);
  stages.widths.resize(both);
  return stages;
}

// --- ConvNeXt

void convnext_block(InventoryBuilder& g, std::int64_t width, bool scaled) {
  g.role(ParameterRole::kMlp);
  if (scaled) g.tensor("layer_scale_parameter", {width});
  g.convolution("dwconv", {width, 1, 7, 7}, true);
  g.norm("layernorm", width, true);
  g.linear("pwconv1", checked_mul(4, width), width, true);
  g.linear("pwconv2", width, checked_mul(4, width), true);
}

void convnext(ConfigReader& reader, InventoryBuilder& g) {
  const Stages stages = read_stages(reader);
  const std::int64_t patch = reader.size("patch_size");
  const nlohmann::json* scale = reader.complete("layer_scale_init_value");
  const bool scaled = scale != nullptr && scale->is_number() && *scale > 0;
  std::int64_t before = stages.widths.front();
  g.enter("convnext.embeddings.");
  g.role(ParameterRole::kOtherEmbedding);
  g.convolution("patch_embeddings", {before, reader.size("num_channels"), patch, patch}, true);
  g.norm("layernorm", before, true);
  for (std::size_t i = 0; i < stages.depths.size(); ++i) {
    const std::int64_t width = stages.widths[i];
    g.enter(fmt::format("convnext.encoder.stages.{}.", i));
    if (i > 0) {
      g.role(ParameterRole::kOther);
      g.norm("downsampling_layer.0", before, true);
      g.convolution("downsampling_layer.1", {width, before, 2, 2}, true);
    }
    for (std::int64_t j = 0; j < stages.depths[i]; ++j) {
      g.enter(fmt::format("convnext.encoder.stages.{}.layers.{}.", i, j), j);
      convnext_block(g, width, scaled);
    }
    before = width;
  }
  g.enter("convnext.");
  g.norm("layernorm", before, true);
  write_classifier(reader, g, "classifier", before);
}

// --- ResNet

void resnet_convolution(InventoryBuilder& g, const std::string& name, std::int64_t out,
                        std::int64_t in, std::int64_t side) {
  g.role(ParameterRole::kMlp);
  g.convolution(name + ".convolution", {out, in, side, side}, false);
  g.norm(name + ".normalization", out, true);
  g.buffer(name + ".normalization.running_mean", {out}, /*persistent=*/true);
  g.buffer(name + ".normalization.running_var", {out}, /*persistent=*/true);
  g.buffer(name + ".normalization.num_batches_tracked", {}, /*persistent=*/true);
}

void resnet_block(InventoryBuilder& g, bool bottleneck, std::int64_t in, std::int64_t out,
                  bool strided) {
  if (in != out || strided) resnet_convolution(g, "shortcut", out, in, 1);
  if (bottleneck) {
    const std::int64_t narrow = std::max<std::int64_t>(1, out / 4);
    resnet_convolution(g, "layer.0", narrow, in, 1);
    resnet_convolution(g, "layer.1", narrow, narrow, 3);
    resnet_convolution(g, "layer.2", out, narrow, 1);
  } else {
    resnet_convolution(g, "layer.0", out, in, 3);
    resnet_convolution(g, "layer.1", out, out, 3);
  }
}

void resnet(ConfigReader& reader, InventoryBuilder& g) {
  const Stages stages = read_stages(reader);
  const bool bottleneck = reader.text("layer_type") == "bottleneck";
  const bool first_strided = reader.flag("downsample_in_first_stage");
  std::int64_t before = reader.size("embedding_size");
  g.enter("resnet.embedder.");
  resnet_convolution(g, "embedder", before, reader.size("num_channels"), 7);
  for (std::size_t i = 0; i < stages.depths.size(); ++i) {
    for (std::int64_t j = 0; j < stages.depths[i]; ++j) {
      g.enter(fmt::format("resnet.encoder.stages.{}.layers.{}.", i, j), j);
      resnet_block(g, bottleneck, before, stages.widths[i], j == 0 && (i > 0 || first_strided));
      before = stages.widths[i];
    }
  }
  write_classifier(reader, g, "classifier.1", before);
}

// --- Swin

struct Swin {
  std::vector<std::int64_t> depths;
  std::vector<std::int64_t> heads;
  std::int64_t window = 1;
  bool bias = true;
};

void swin_block(ConfigReader& reader, InventoryBuilder& g, const Swin& s, std::int64_t width,
                std::int64_t heads) {
  const std::int64_t offsets = checked_mul(2, s.window) - 1;
  const std::int64_t area = checked_mul(s.window, s.window);
  const std::int64_t inner = reader.scaled(width, "mlp_ratio");
  g.role(ParameterRole::kAttention);
  g.linear("attention.q_proj", width, width, s.bias);
  g.linear("attention.k_proj", width, width, s.bias);
  g.linear("attention.v_proj", width, width, s.bias);
  g.linear("attention.o_proj", width, width, true);
  g.tensor("attention.relative_position_bias.relative_position_bias_table",
           {checked_mul(offsets, offsets), heads});
  g.buffer("attention.relative_position_bias.relative_position_index", {checked_mul(area, area)});
  g.norm("layernorm_before", width, true);
  g.norm("layernorm_after", width, true);
  g.role(ParameterRole::kMlp);
  g.linear("mlp.fc1", inner, width, true);
  g.linear("mlp.fc2", width, inner, true);
}

Swin read_swin(ConfigReader& reader) {
  Swin s{reader.sizes("depths"), reader.sizes("num_heads"), reader.size("window_size"),
         reader.flag("qkv_bias")};
  std::int64_t blocks = 0;
  for (const std::int64_t depth : s.depths) blocks = checked_add(blocks, depth);
  if (s.depths.size() != s.heads.size() || s.depths.size() > 8 || blocks > kMostDerivedLayers) {
    reader.refuse_key("depths", "expected at most 8 stages, and as many entries in num_heads");
    s.depths.assign(1, 1);
    s.heads.assign(1, 1);
  }
  return s;
}

void swin(ConfigReader& reader, InventoryBuilder& g) {
  const Swin s = read_swin(reader);
  const std::int64_t patch = reader.size("patch_size");
  std::int64_t width = reader.size("embed_dim");
  g.enter("swin.embeddings.");
  g.role(ParameterRole::kOtherEmbedding);
  g.convolution("patch_embeddings.projection", {width, reader.size("num_channels"), patch, patch},
                true);
  if (reader.flag("use_absolute_embeddings")) {
    const std::int64_t side = reader.size("image_size") / patch;
    g.role(ParameterRole::kPositionEmbedding);
    g.tensor("position_embeddings", {1, checked_mul(side, side), width});
  }
  g.norm("norm", width, true);
  for (std::size_t i = 0; i < s.depths.size(); ++i) {
    for (std::int64_t j = 0; j < s.depths[i]; ++j) {
      g.enter(fmt::format("swin.encoder.layers.{}.blocks.{}.", i, j), j);
      swin_block(reader, g, s, width, s.heads[i]);
    }
    if (i + 1 == s.depths.size()) break;
    g.enter(fmt::format("swin.encoder.layers.{}.downsample.", i));
    g.role(ParameterRole::kOther);
    g.linear("reduction", checked_mul(2, width), checked_mul(4, width));
    g.norm("norm", checked_mul(4, width), true);
    width = checked_mul(2, width);
  }
  g.enter("swin.");
  g.norm("layernorm", width, true);
  write_classifier(reader, g, "classifier", width);
}

// --- DINOv2

std::int64_t patches_of(ConfigReader& reader, std::int64_t patch) {
  const std::int64_t side = reader.size("image_size") / patch;
  if (side < 1) reader.refuse_key("patch_size", fmt::format("{}, larger than the image", patch));
  return checked_mul(side, side);
}

void dinov2_mlp(ConfigReader& reader, InventoryBuilder& g, std::int64_t width) {
  std::int64_t inner = reader.scaled(width, "mlp_ratio");
  g.role(ParameterRole::kMlp);
  if (!reader.flag("use_swiglu_ffn")) {
    g.linear("mlp.fc1", inner, width, true);
    g.linear("mlp.fc2", width, inner, true);
    return;
  }
  // Two thirds of it, rounded up to a multiple of 8.
  inner = (2 * inner / 3 + 7) / 8 * 8;
  g.linear("mlp.gate_proj", inner, width, true);
  g.linear("mlp.up_proj", inner, width, true);
  g.linear("mlp.down_proj", width, inner, true);
}

void dinov2_layer(ConfigReader& reader, InventoryBuilder& g, std::int64_t width, bool bias) {
  g.norm("norm1", width, true);
  g.role(ParameterRole::kAttention);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    g.linear(fmt::format("attention.{}", name), width, width, bias);
  }
  g.linear("attention.o_proj", width, width, true);
  g.role(ParameterRole::kOther);
  g.tensor("layer_scale1.lambda1", {width});
  g.norm("norm2", width, true);
  dinov2_mlp(reader, g, width);
  g.role(ParameterRole::kOther);
  g.tensor("layer_scale2.lambda1", {width});
}

void dinov2(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t patch = reader.size("patch_size");
  const bool bias = reader.flag("qkv_bias");
  g.enter("dinov2.embeddings.");
  g.role(ParameterRole::kOtherEmbedding);
  g.tensor("cls_token", {1, 1, width});
  if (reader.flag("use_mask_token")) g.tensor("mask_token", {1, width});
  g.convolution("patch_embeddings.projection", {width, reader.size("num_channels"), patch, patch},
                true);
  g.role(ParameterRole::kPositionEmbedding);
  g.tensor("position_embeddings", {1, checked_add(patches_of(reader, patch), 1), width});
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("dinov2.encoder.layer.{}.", i), i);
    dinov2_layer(reader, g, width, bias);
  }
  g.enter("dinov2.");
  g.norm("layernorm", width, true);
  write_classifier(reader, g, "classifier", checked_mul(2, width));
}

// --- CLIP

void clip_layers(ConfigReader& reader, InventoryBuilder& g, const std::string& tower,
                 std::int64_t width) {
  const std::int64_t layers = reader.layers("num_hidden_layers");
  const std::int64_t inner = reader.size("intermediate_size");
  for (std::int64_t i = 0; i < layers; ++i) {
    g.enter(fmt::format("{}.encoder.layers.{}.", tower, i), i);
    g.role(ParameterRole::kAttention);
    for (const char* name : {"k_proj", "v_proj", "q_proj", "out_proj"}) {
      g.linear(fmt::format("self_attn.{}", name), width, width, true);
    }
    g.norm("layer_norm1", width, true);
    g.role(ParameterRole::kMlp);
    g.linear("mlp.fc1", inner, width, true);
    g.linear("mlp.fc2", width, inner, true);
    g.norm("layer_norm2", width, true);
  }
}

std::int64_t clip_text(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t positions = reader.size("max_position_embeddings");
  g.enter("text_model.embeddings.");
  g.embedding("token_embedding", reader.size("vocab_size"), width, ParameterRole::kTokenEmbedding);
  g.embedding("position_embedding", positions, width, ParameterRole::kPositionEmbedding);
  g.buffer("position_ids", {1, positions});
  clip_layers(reader, g, "text_model", width);
  g.enter("text_model.");
  g.norm("final_layer_norm", width, true);
  return width;
}

std::int64_t clip_vision(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t width = reader.size("hidden_size");
  const std::int64_t patch = reader.size("patch_size");
  const std::int64_t positions = checked_add(patches_of(reader, patch), 1);
  g.enter("vision_model.embeddings.");
  g.role(ParameterRole::kOtherEmbedding);
  g.tensor("class_embedding", {width});
  g.tensor("patch_embedding.weight", {width, reader.size("num_channels"), patch, patch});
  g.embedding("position_embedding", positions, width, ParameterRole::kPositionEmbedding);
  g.buffer("position_ids", {1, positions});
  g.enter("vision_model.");
  g.norm("pre_layrnorm", width, true);
  clip_layers(reader, g, "vision_model", width);
  g.enter("vision_model.");
  g.norm("post_layernorm", width, true);
  return width;
}

void clip(ConfigReader& reader, InventoryBuilder& g) {
  const std::int64_t joint = reader.size("projection_dim");
  g.enter("");
  g.role(ParameterRole::kOther);
  g.tensor("logit_scale", {});
  const std::int64_t text = reader.inside("text_config", "clip_text_model",
                                          [&](ConfigReader& r) { return clip_text(r, g); });
  const std::int64_t image = reader.inside("vision_config", "clip_vision_model",
                                           [&](ConfigReader& r) { return clip_vision(r, g); });
  g.enter("");
  g.role(ParameterRole::kHead);
  g.linear("visual_projection", joint, image);
  g.linear("text_projection", joint, text);
}

constexpr std::array<InventoryFamily, 5> kVision = {{
    {"clip", clip, "CLIPModel"},
    {"convnext", convnext, "ConvNextForImageClassification"},
    {"dinov2", dinov2, "Dinov2ForImageClassification"},
    {"resnet", resnet, "ResNetForImageClassification"},
    {"swin", swin, "SwinForImageClassification"},
}};

}  // namespace

const InventoryFamily* find_vision(std::string_view model_type) {
  return find_in(kVision, model_type);
}

}  // namespace plimsoll::formats
