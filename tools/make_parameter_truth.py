#!/usr/bin/env python3
"""Writes tests/truth/hf/variants.json: parameters of scaled-down models, counted in PyTorch.

Every model type that plimsoll counts is built a few times on the meta device, with small random
sizes and with every flag of its configuration class turned. The full-size models of
tests/truth/hf/models show one setting of the flags each; these show the others.

Needs torch and transformers in the version named in tools/make_class_defaults.py; tests need
neither.

usage: make_parameter_truth.py OUT.json
"""

import hashlib
import json
import os
import random
import sys

import torch
import transformers
from transformers import CONFIG_MAPPING

from make_class_defaults import MODEL_TYPES, VERSION, json_value

# The class that is counted, where it is not the causal language model.
CLASSES = {
    "albert": "AlbertForMaskedLM", "bert": "BertForMaskedLM",
    "deberta-v2": "DebertaV2ForSequenceClassification", "distilbert": "DistilBertForMaskedLM",
    "modernbert": "ModernBertForMaskedLM", "roberta": "RobertaForMaskedLM",
    "bart": "BartForConditionalGeneration", "t5": "T5ForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration", "clip": "CLIPModel",
    "convnext": "ConvNextForImageClassification", "dinov2": "Dinov2ForImageClassification",
    "resnet": "ResNetForImageClassification", "swin": "SwinForImageClassification",
    "gpt2": "GPT2LMHeadModel",
}

# Flags that change no parameter, or that the class counted here does not have.
UNTURNED = {"use_cache", "is_encoder_decoder", "is_decoder", "add_cross_attention"}

# Small sizes by key; a key that a class does not have is left out.
SIZES = {
    "vocab_size": [97, 128, 200], "hidden_size": [32, 64], "n_embd": [32, 64], "d_model": [32, 64],
    "dim": [32, 64], "intermediate_size": [48, 96], "n_inner": [None, 80], "ffn_dim": [48, 96],
    "hidden_dim": [48, 96], "encoder_ffn_dim": [48], "decoder_ffn_dim": [96], "d_ff": [48, 96],
    "num_hidden_layers": [2, 3, 5], "n_layer": [2, 3], "n_layers": [2, 3], "num_layers": [2, 4],
    "encoder_layers": [2], "decoder_layers": [3], "num_decoder_layers": [None, 3],
    "num_attention_heads": [4, 8], "n_head": [4, 8], "n_heads": [4, 8], "num_heads": [4, 8],
    "attention_heads": [4, 8], "encoder_attention_heads": [4], "decoder_attention_heads": [8],
    "num_key_value_heads": [1, 2, 4], "head_dim": [8, 16], "d_kv": [8, 16],
    "max_position_embeddings": [48, 64], "n_positions": [48, 64], "context_length": [64],
    "max_source_positions": [40], "max_target_positions": [24], "num_mel_bins": [20],
    "moe_intermediate_size": [24, 40], "shared_expert_intermediate_size": [24, 56],
    "num_experts": [4, 8], "num_local_experts": [4, 8], "n_routed_experts": [4, 8],
    "num_experts_per_tok": [2, 3], "num_experts_per_token": [2], "n_shared_experts": [1, 2],
    "num_shared_experts": [1, 2], "first_k_dense_replace": [0, 1, 2], "n_group": [1],
    "num_expert_group": [1], "topk_group": [1], "decoder_sparse_step": [1, 2],
    "q_lora_rank": [None, 24], "kv_lora_rank": [16, 24], "qk_nope_head_dim": [8, 12],
    "qk_rope_head_dim": [4, 8], "v_head_dim": [8, 16], "rotary_dim": [4, 8],
    "mamba_d_state": [8, 16], "mamba_d_conv": [4], "mamba_n_groups": [1, 2],
    "shared_intermediate_size": [40], "state_size": [8, 16], "conv_kernel": [4],
    "linear_conv_kernel_dim": [4], "linear_key_head_dim": [8], "linear_value_head_dim": [16],
    "linear_num_key_heads": [2], "linear_num_value_heads": [4], "linear_head_dim": [8],
    "linear_num_heads": [4], "conv_L_cache": [3, 4], "block_multiple_of": [8, 16],
    "lru_width": [None, 64], "embedding_size": [16, 24], "type_vocab_size": [1, 2],
    "word_embed_proj_dim": [None, 16], "block_size": [16, 32], "interleave_moe_layer_step": [1, 2],
    "intermediate_size_mlp": [80], "attention_chunk_size": [None, 32], "num_hidden_groups": [1, 2],
    "inner_group_num": [1, 2], "attn_layer_indices": [None, [1]], "num_kv_heads": [None, 2],
    "image_size": [32], "patch_size": [4, 8], "num_channels": [1, 3], "embed_dim": [16, 24],
    "depths": [[1, 2], [2, 1, 1]], "window_size": [3], "projection_dim": [24],
    "mlp_only_layers": [None, [0]], "use_qk_norm": [False, True], "moe_layers": [None, [1]],
    "hidden_size_per_layer_input": [8], "vocab_size_per_layer_input": [90],
    "relative_attention_num_buckets": [8], "sliding_window": [None, 16],
}
VERY_OWN = {
    "mamba2": lambda c, r: c.update(head_dim=8, num_heads=c["hidden_size"] * 2 // 8,
                                    n_groups=r.choice([1, 2])),
    "bamba": lambda c, r: c.update(mamba_n_heads=8, mamba_d_head="auto"),
    "granitemoehybrid": lambda c, r: c.update(
        mamba_n_heads=8, mamba_d_head="auto", num_local_experts=r.choice([0, 4]),
        layer_types=r.choice([None, (["mamba", "attention"] * 3)[:c["num_hidden_layers"]]])),
    "jamba": lambda c, r: c.update(attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2,
                                   expert_layer_offset=0),
    "gpt_neo": lambda c, r: c.update(attention_types=[[["global", "local"], c["num_layers"] // 2]],
                                     intermediate_size=None),
    "swin": lambda c, r: c.update(num_heads=[2, 4, 8][:len(c["depths"])], mlp_ratio=2.0),
    "convnext": lambda c, r: c.update(hidden_sizes=[16, 24, 40][:len(c["depths"])],
                                      num_stages=len(c["depths"])),
    "resnet": lambda c, r: c.update(hidden_sizes=[16, 24, 40][:len(c["depths"])],
                                    layer_type=r.choice(["basic", "bottleneck"])),
    "lfm2_moe": lambda c, r: c.update(
        num_dense_layers=r.choice([0, 1]), use_expert_bias=r.choice([False, True]),
        layer_types=(["conv", "full_attention"] * 3)[:c["num_hidden_layers"]]),
    "dinov2": lambda c, r: c.update(mlp_ratio=2),
    "minicpm3": lambda c, r: c.update(q_lora_rank=24),
    "exaone4": lambda c, r: c.update(num_key_value_heads=4, sliding_window=16),
    "opt": lambda c, r: c.update(layer_norm_elementwise_affine=True),
    "gemma4_text": lambda c, r: c.update(
        enable_moe_block=False, use_bidirectional_attention=None, num_kv_shared_layers=0,
        head_dim=8, global_head_dim=16),
    "clip": lambda c, r: c.update(
        text_config={"hidden_size": r.choice([32, 64]), "intermediate_size": 48, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "vocab_size": 99, "max_position_embeddings": 20},
        vision_config={"hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 3,
                       "num_attention_heads": 4, "image_size": 32, "patch_size": 8}),
    "deberta-v2": lambda c, r: c.update(
        type_vocab_size=r.choice([0, 2]), relative_attention=r.choice([False, True]),
        position_buckets=r.choice([-1, 16]), pos_att_type=r.choice([["p2c", "c2p"], "c2p"]),
        norm_rel_ebd=r.choice(["none", "layer_norm"]), share_att_key=r.choice([False, True])),
    "t5": lambda c, r: c.update(feed_forward_proj=r.choice(["relu", "gated-gelu"])),
    "stablelm": lambda c, r: c.update(num_key_value_heads=r.choice([2, 4])),
    "apertus": lambda c, r: c.update(hidden_act=r.choice(["xielu", "silu"])),
    "qwen3_moe": lambda c, r: c.update(num_experts=8),
}


def random_config(model_type, rng):
    cls = CONFIG_MAPPING[model_type]
    names = {f for f in cls.__dataclass_fields__}
    renamed = cls.attribute_map
    config = {}
    for name in sorted(names):
        key = renamed.get(name, name)
        default = cls.__dataclass_fields__[name].default
        if key in SIZES:
            config[key] = rng.choice(SIZES[key])
        elif isinstance(default, bool) and key not in UNTURNED:
            config[key] = rng.choice([False, True])
    if "pad_token_id" in names:
        config["pad_token_id"] = 0  # the usual ones lie beyond these small vocabularies
    VERY_OWN.get(model_type, lambda c, r: None)(config, rng)
    return config


def model_class(model_type):
    name = CLASSES.get(model_type)
    if name is None:
        names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        name = names[model_type]
    return getattr(transformers, name)


def facts(model):
    unique = dict(model.named_parameters())
    lines = sorted(f"{n} {'x'.join(str(d) for d in p.shape)}" for n, p in unique.items())
    every = sum(p.numel() for _, p in model.named_parameters(remove_duplicate=False))
    persistent = set(model.state_dict())
    buffers = {True: [0, 0], False: [0, 0]}
    for name, buffer in model.named_buffers():
        count = buffers[name in persistent]
        count[0] += 1
        count[1] += buffer.numel()
    return {"params_unique": sum(p.numel() for p in unique.values()), "params_ties_counted": every,
            "param_tensors": len(unique),
            "buffers_persistent": buffers[True], "buffers_nonpersistent": buffers[False],
            "names_shapes_sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def variant(model_type, rng):
    """One random model, or None when transformers refuses the sizes."""
    kwargs = random_config(model_type, rng)
    try:
        config = CONFIG_MAPPING[model_type](**kwargs)
        with torch.device("meta"):
            model = model_class(model_type)(config)
    except Exception as problem:  # transformers has many ways to refuse
        return str(problem)
    written = {k: json_value(v) for k, v in kwargs.items()}
    return {"config": {"model_type": model_type, **written}, **facts(model)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if transformers.__version__ != VERSION:
        sys.exit(f"[transformers] version {transformers.__version__}, expected {VERSION}")
    rows = []
    for model_type in sorted(set(MODEL_TYPES) - {"clip_text_model", "clip_vision_model"}):
        rng = random.Random(model_type)
        made, problem = [], ""
        for _ in range(40):
            row = variant(model_type, rng)
            if isinstance(row, str):
                problem = row
            elif row["names_shapes_sha256"] not in {m["names_shapes_sha256"] for m in made}:
                made.append(row)
            if len(made) == 4:
                break
        if len(made) < 4:
            print(f"{model_type}: {len(made)} variants, last problem: {problem}", file=sys.stderr)
        rows += made
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
    main()
