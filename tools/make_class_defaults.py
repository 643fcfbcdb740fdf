#!/usr/bin/env python3
"""Writes data/class_defaults.json: what the configuration classes of transformers fill in.

Needs the package transformers in the version named below (torch is not needed); planning needs
neither. Every default comes from the class itself: dataclass fields, attribute_map, default_theta.
What classes do in code instead of fields (other names of rotary settings, renamed keys) is in the
tables below, each line beside the class that does it.

usage: make_class_defaults.py OUT.json
"""

import dataclasses
import inspect
import json
import math
import os
import sys

import transformers
from transformers import CONFIG_MAPPING, PretrainedConfig

VERSION = "5.24.0"

MODEL_TYPES = """
albert apertus arcee bamba bart bert biogpt bloom clip clip_text_model clip_vision_model codegen
cohere cohere2 convnext deberta-v2 deepseek_v2 deepseek_v3 dinov2 distilbert dots1 ernie4_5
ernie4_5_moe exaone4 falcon falcon_mamba flex_olmo gemma gemma2 gemma3_text gemma4_text glm glm4
glm4_moe gpt2
gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granitemoe granitemoehybrid
granitemoeshared helium
hunyuan_v1_dense internlm3 jamba kimi_linear lfm2 lfm2_moe llama llama4_text mamba mamba2 minicpm3 minimax
minimax_m2 ministral ministral3 mistral mixtral modernbert nemotron olmo olmo2 olmo3 olmoe opt
persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3
qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next recurrent_gemma
resnet roberta rwkv seed_oss smollm3 stablelm starcoder2 swin t5 vaultgemma whisper
xglm
""".split()

# Fields of the base class that change what a model is.
KEPT_BASE_FIELDS = {"is_encoder_decoder", "id2label"}

# Keys that __post_init__ renames, whatever the key itself says; attribute_map does not list them.
RENAMED = {
    "bloom": {"n_embed": "hidden_size"},
    "falcon": {"n_embed": "hidden_size"},
    "falcon_mamba": {"use_falcon_mambapy": "use_mambapy"},
    "lfm2_moe": {"tie_embedding": "tie_word_embeddings"},
    "lfm2": {"block_ff_dim": "intermediate_size", "tie_embedding": "tie_word_embeddings"},
}

# Where a class reads rotary settings outside rope_parameters; None: it does not.
THETA_KEY = {"gpt_neox": "rotary_emb_base", "gemma4_text": None}
PARTIAL_KEY = {"gpt_neox": "rotary_pct", "gemma4_text": None}
# "": none, both are the class's unless rope_parameters says otherwise.
LOCAL_THETA_KEY = {"gemma3_text": "rope_local_base_freq", "modernbert": "local_rope_theta",
                   "olmo3": ""}
GLOBAL_THETA_KEY = {"modernbert": "global_rope_theta"}
# Which layer types take the values of a rope_scaling that is not nested.
SCALED_LAYERS = {"gemma3_text": ["full_attention"], "olmo3": ["full_attention"],
                 "modernbert": ["full_attention", "sliding_attention"]}
# Classes whose __post_init__ writes whole rope_parameters when the file has none.
OWN_ROPE = ("apertus", "gpt_oss", "ministral3", "gemma4_text")


def json_value(value):
    """The value as JSON has it; JSON has no infinity."""
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return value


def field_default(field):
    if field.default is not dataclasses.MISSING:
        return json_value(field.default)
    return json_value(field.default_factory())


def rope_of(model_type, cls, config):
    """How rotary settings are completed: see plimsoll/formats/rope_parameters.hpp."""
    rope = {}
    if model_type in THETA_KEY | GLOBAL_THETA_KEY:
        rope["theta_key"] = (THETA_KEY | GLOBAL_THETA_KEY)[model_type]
    if model_type in PARTIAL_KEY:
        rope["partial_key"] = PARTIAL_KEY[model_type]
    if model_type in LOCAL_THETA_KEY:
        thetas = cls.default_theta
        if not isinstance(thetas, dict):
            thetas = {"global": thetas, "local": thetas}
        rope["theta"] = thetas["global"]
        rope["local_theta"] = thetas["local"]
        rope["local_theta_key"] = LOCAL_THETA_KEY[model_type]
        rope["scaled_layers"] = SCALED_LAYERS[model_type]
        return rope
    rope["theta"] = cls.default_theta
    settings = dict(config.rope_parameters or {})
    if model_type in OWN_ROPE:
        rope["when_absent"] = settings
    elif settings.get("partial_rotary_factor") is not None:
        rope["partial"] = settings["partial_rotary_factor"]
    return rope


def entry_of(model_type):
    cls = CONFIG_MAPPING[model_type]
    base = {field.name for field in dataclasses.fields(PretrainedConfig)} - KEPT_BASE_FIELDS
    renamed = dict(cls.attribute_map)
    defaults = {}
    for field in dataclasses.fields(cls):
        if field.name not in base:
            defaults[renamed.get(field.name, field.name)] = field_default(field)
    path = inspect.getfile(cls).split("/transformers/")[1]
    entry = {"class": f"{cls.__name__} in {path}"}
    if renamed:
        entry["aliases"] = renamed
    if model_type in RENAMED:
        entry["renamed"] = RENAMED[model_type]
    config = cls()
    if "rope_parameters" in defaults:
        entry["rope"] = rope_of(model_type, cls, config)
    if defaults["id2label"] is None:
        defaults.pop("id2label")
        if config.num_labels != 2:
            entry["labels"] = config.num_labels
    entry["defaults"] = defaults
    return entry


def wrapped(pairs, indent):
    """Pairs of key and value, as many on a line as fit 100 columns."""
    lines = [""]
    for key, value in pairs:
        text = f"{json.dumps(key)}: {json.dumps(value)}, "
        if lines[-1] and len(lines[-1] + text) > 100 - indent:
            lines.append("")
        lines[-1] += text
    return "\n".join(" " * indent + line.rstrip() for line in lines).rstrip(",")


def written(entries, note):
    lines = ["{", f'  "plimsoll_source": {json.dumps(note)}']
    for model_type, entry in entries.items():
        lines[-1] += ","
        lines.append(f"  {json.dumps(model_type)}: {{")
        for part, value in entry.items():
            if part != "defaults":
                lines.append(f"    {json.dumps(part)}: {json.dumps(value)},")
        lines += ['    "defaults": {', wrapped(entry["defaults"].items(), 6), "    }", "  }"]
    return "\n".join([*lines, "}", ""])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if transformers.__version__ != VERSION:
        sys.exit(f"[transformers] version {transformers.__version__}, expected {VERSION}")
    note = (f"Configuration classes of transformers {VERSION}, written by "
            "tools/make_class_defaults.py. A key with the value null has no size of its own: it is "
            "switched off, or plimsoll/formats/class_rules.cpp derives it as the class does. rope: "
            "what completes rotary settings (plimsoll/formats/rope_parameters.hpp); renamed: old keys "
            "that win over the new one; labels: classes "
            "of a classifier, 2 when absent.")
    entries = {model_type: entry_of(model_type) for model_type in sorted(MODEL_TYPES)}
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(written(entries, note))


if __name__ == "__main__":
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    main()
