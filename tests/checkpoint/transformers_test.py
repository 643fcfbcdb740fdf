#!/usr/bin/env python3
"""Small random models of transformers, through plimsoll's checkpoints and back.

For GPT-2 and Llama models, tied and not, in fp32 and bf16, saved whole and as shards: what
resave_weights writes has the same tensors, transformers loads it without a missing or surplus name,
and its logits are the same bits. With ENGINE_RANKS the engine's own logits are compared, too: from what
transformers saved, on one rank, and from the exported model, on two ranks at stage 3.
Exits 77, which CTest calls skipped, where transformers is missing.

usage: transformers_test.py RESAVE_WEIGHTS [ENGINE_RANKS]
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
transformers.logging.disable_progress_bar()

MOST_TIMES = 4


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
    "gpt2 bf16, shards": (gpt2(), torch.bfloat16, "12KB"),
    "llama": (llama(), torch.float32, "50GB"),
    "llama tied, biases": (llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
                           torch.float32, "50GB"),
    "llama fp16, shards": (llama(), torch.float16, "12KB"),
    "llama bf16, shards": (llama(), torch.bfloat16, "12KB"),
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


def engine_logits(engine_ranks, folder, ranks, stage, precision, out):
    """The logits that plimsoll computes from the weights in a folder, on its last rank."""
    subprocess.run([engine_ranks, "init_ranks", str(ranks), str(stage), precision, folder, folder, out],
                   check=True)
    raw = pathlib.Path(f"{out}.{ranks - 1}").read_bytes()
    return torch.frombuffer(bytearray(raw), dtype=torch.float64).reshape(2, 7, -1)


def check_engine(name, engine_ranks, model, given, out):
    """Both compute in fp32, in another order of additions. What order alone does shows in the error of
    transformers' own fp32 logits against its fp64 ones; plimsoll's may be MOST_TIMES that, no more."""
    exact = logits(model.double())
    own_error = (logits(model.float()).double() - exact).abs().max().item()
    if model.config.model_type == "gpt2":  # llama's norms and rotary tables stay in fp32
        ours = engine_logits(engine_ranks, given, 1, 0, "fp64", out / "logits")
        error = (ours - exact).abs().max().item()
        print(f"{name}, fp64: error {error:.3g}")
        assert error <= MOST_TIMES * own_error * 2.0**-29, name  # 53 bits instead of 24
    for folder, ranks, stage in ((given, 1, 0), (out, 2, 3)):
        ours = engine_logits(engine_ranks, folder, ranks, stage, "fp32", out / "logits")
        error = (ours - exact).abs().max().item()
        print(f"{name}, ranks {ranks}: largest logit {exact.abs().max().item():.3g}, "
              f"error {error:.3g}, that of transformers {own_error:.3g}")
        assert error <= MOST_TIMES * own_error, name


def check(name, resave, engine_ranks, folder):
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
    if engine_ranks:
        check_engine(name, engine_ranks, model, given, out)


def main():
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            check(name, sys.argv[1], (sys.argv + [None])[2], pathlib.Path(folder))


if __name__ == "__main__":
    main()
