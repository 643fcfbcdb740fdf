#!/usr/bin/env python3
"""A step of Llama 3 8B (forward, backward, AdamW) under torch's FakeTensorMode: no data, every
operation dispatched. For each line on stdin one step; prints "WALL CPU" in seconds. At the end of
the input one line of JSON: {"build_s": seconds, "params": number}."""
import argparse
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode


class Block(nn.Module):
    def __init__(self, d, h, kv, f):
        super().__init__()
        self.h, self.kv, self.hd = h, kv, d // h
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.q, self.k, self.v = linear(d, d), linear(d, kv * self.hd), linear(d, kv * self.hd)
        self.o, self.gate, self.up, self.down = linear(d, d), linear(d, f), linear(d, f), linear(f, d)
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)

    def forward(self, x):
        b, t, _ = x.shape
        heads = lambda y, n: y.view(b, t, n, self.hd).transpose(1, 2)
        y = self.n1(x)
        q, k, v = heads(self.q(y), self.h), heads(self.k(y), self.kv), heads(self.v(y), self.kv)
        k, v = (z.repeat_interleave(self.h // self.kv, 1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, -1))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, vocabulary, d, layers, h, kv, f):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, d)
        self.blocks = nn.ModuleList(Block(d, h, kv, f) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seq", type=int, default=2048)
    seq = parser.parse_args().seq
    torch.set_num_threads(1)
    with FakeTensorMode():
        begin = time.perf_counter()
        model = Model(128256, 4096, 32, 32, 8, 14336)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        build = time.perf_counter() - begin
        ids = torch.zeros(1, seq, dtype=torch.long)
        for _ in sys.stdin:
            wall, cpu = time.perf_counter(), time.process_time()
            model(ids, ids).backward()
            optimizer.step()
            optimizer.zero_grad()
            print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
    params = sum(p.numel() for p in model.parameters())
    print(json.dumps(dict(build_s=build, params=params)), flush=True)


if __name__ == "__main__":
    main()
