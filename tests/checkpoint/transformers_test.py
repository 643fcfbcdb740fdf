#!/usr/bin/env python3
"""Small random models of transformers, through plimsoll's checkpoints and back.

For GPT-2 and Llama models, tied and not, in fp32 and bf16, saved whole and as shards: what
resave_weights writes has the same tensors, transformers loads it without a missing or surplus name,
and its logits are the same bits. Exits 77, which CTest calls skipped, where transformers is missing.

usage: transformers_test.py RESAVE_WEIGHTS
"""

import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

transformers.logging.set_verbosity_error()


def gpt2(**more):
    return transformers.GPT2Config(vocab_size=31, n_positions=16, n_embd=24, n_layer=2, n_head=4,
                                   bos_token_id=1, eos_token_id=2, resid_pdrop=0.0, embd_pdrop=0.0,
                                   attn_pdrop=0.0, **more)


def llama(**more):
    return transformers.LlamaConfig(vocab_size=37, hidden_size=24, intermediate_size=40,
                                    num_hidden_layers=2, num_attention_heads=6,
                                    num_key_value_heads=2, max_position_embeddings=32,
                                    bos_token_id=1, eos_token_id=2, **more)


CASES = {
    "gpt2": (gpt2(), torch.float32, "50GB"),
    "gpt2 untied, n_inner": (gpt2(tie_word_embeddings=False, n_inner=20), torch.float32, "50GB"),
    "gpt2 bf16": (gpt2(), torch.bfloat16, "50GB"),
    "llama": (llama(), torch.float32, "50GB"),
    "llama tied, biases": (llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
                           torch.float32, "50GB"),
    "llama fp16, shards": (llama(), torch.float16, "12KB"),
    "llama theta": (llama(rope_theta=5000.0, rms_norm_eps=1e-4, head_dim=8), torch.float32, "50GB"),
}


def random_model(config, dtype):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()
    for parameter in model.parameters():  # norms and biases too: nothing stays at 0 or 1
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def logits(model):
    tokens = torch.arange(2 * 7).reshape(2, 7) % model.config.vocab_size
    with torch.no_grad():
        return model(tokens).logits


def check(name, resave, folder):
    config, dtype, shard = CASES[name]
    model = random_model(config, dtype)
    given, out = folder / "given", folder / "out"
    model.save_pretrained(given, max_shard_size=shard)
    subprocess.run([resave, given, out], check=True)
    loaded, info = transformers.AutoModelForCausalLM.from_pretrained(
        out, dtype=dtype, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        assert not info.get(problem), (name, problem, info[problem])
    ours, theirs = dict(loaded.named_parameters()), dict(model.named_parameters())
    assert ours.keys() == theirs.keys(), name
    for key, value in theirs.items():
        assert torch.equal(ours[key], value), (name, key)
    assert torch.equal(logits(loaded.eval()), logits(model)), name
    print(f"{name}: {len(theirs)} tensors and the logits are equal")


def main():
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            check(name, sys.argv[1], pathlib.Path(folder))


if __name__ == "__main__":
    main()
