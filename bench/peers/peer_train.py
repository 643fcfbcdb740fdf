#!/usr/bin/env python3
"""Peers for a side-by-side benchmark: single | ddp | zero1 | fsdp2 | fsdp2_zero2, GPT or Llama style, CPU + gloo.
  single process :  python peer_train.py --mode single ...
  N ranks        :  torchrun --nproc_per_node N peer_train.py --mode fsdp2 ...   (or env RANK/WORLD_SIZE/MASTER_*)
--batch is per rank.  Prints one JSON line (rank 0).  --paced 1: one step per line on stdin, each answered
with "WALL CPU" (seconds); the JSON line follows at the end of the input.  --reference FILE (mode single) writes losses + parameter checksums.
Init and tokens are closed forms (see DESCRIPTION) that a C++ program can reproduce bit for bit."""
import argparse, json, os, sys, time, math, statistics as st
import numpy as np

DESCRIPTION = r"""
HASH   splitmix64(x): x += 0x9E3779B97F4A7C15; z = x; z = (z ^ (z>>30)) * 0xBF58476D1CE4E5B9; z = (z ^ (z>>27)) * 0x94D049BB133111EB; return z ^ (z>>31)   (all mod 2^64)
INIT   per named parameter: seed = FNV-1a 32 bit of the name's bytes (h=2166136261; for each byte: h^=b; h*=16777619 mod 2^32).
       element i of the row-major flattened parameter: m = splitmix64((uint64(seed) << 32) + i) >> 40            (24-bit integer)
       v = (double(m) - 8388608.0) * (S / 8388608.0), S = 0.034641016151377546 (= 0.02*sqrt(3), so std is 0.02);   S/8388608.0 is one double constant
       weight of a norm layer: float(1.0 + v); every other parameter: float(v)      (one rounding double -> float)
TOKENS stream position j (uint64): k = j % 3; b = splitmix64(j/3 + 12345) % V; token = b if k==0, t1=(b*5+7)%V if k==1, (t1*5+7)%V if k==2.
       step t (from 0), global batch row g (0..G-1), column c (0..seq): j = (t*G + g)*(seq+1) + c.  inputs = columns 0..seq-1, targets = columns 1..seq.
       rank r of N owns rows r*G/N .. (r+1)*G/N-1.   loss = mean over all G*seq targets; gradients are averaged over ranks.
GPT    x = wte[tok] + wpe[pos], both looked up; per block: x += proj(attn(ln1(x))); x += mlp.proj(gelu_exact(mlp.fc(ln2(x)))); logits = ln_f(x) @ wte^T.
       names: wte.weight [V,d], wpe.weight [seq,d], blocks.{i}.ln1.weight, .ln1.bias, .attn.qkv.weight [3d,d] (rows: q, k, v; each h heads x hd), .attn.proj.weight [d,d],
       .ln2.weight, .ln2.bias, .mlp.fc.weight [4d,d], .mlp.proj.weight [d,4d], ln_f.weight, ln_f.bias. No biases in linears. LayerNorm eps 1e-5. SDPA causal, scale 1/sqrt(hd).
LLAMA  x = tok.weight[tok]; per block: x += wo(attn(rope(wq h), rope(wk h), wv h)), h = norm1(x); x += w2(silu(w1 h) * w3 h), h = norm2(x); logits = head(norm(x)).
       names: tok.weight [V,d], blocks.{i}.norm1.weight, .attn.wq.weight [h*hd,d], .attn.wk.weight [kv*hd,d], .attn.wv.weight [kv*hd,d], .attn.wo.weight [d,h*hd], .norm2.weight,
       .mlp.w1.weight [f,d] (gate), .mlp.w3.weight [f,d] (up), .mlp.w2.weight [d,f] (down), norm.weight, head.weight [V,d] (untied).
       RMSNorm eps 1e-5: x * rsqrt(mean(x^2)+eps) * w, computed in the run dtype. RoPE: half-split pairs (i, i+hd/2), angle = pos * theta^(-2i/hd), theta 10000, cos/sin tables
       computed in double and rounded to the run dtype: (x1*cos - x2*sin, x2*cos + x1*sin). Query head q uses kv head q / (h/kv).
OPT    AdamW, one group, decoupled weight decay on EVERY parameter (norms and biases too): p *= 1 - lr*wd; m = b1*m+(1-b1)*g; v = b2*v+(1-b2)*g*g;
       p -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps).  constant lr, no clipping, no schedule. loss of step t is before update t.
"""
def splitmix64(x):
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
def fnv(name):
    h = 2166136261
    for b in name.encode(): h = ((h ^ b) * 16777619) & 0xFFFFFFFF
    return h
S = 0.034641016151377546
def closed_form(name, shape, is_norm):
    n = int(np.prod(shape)); base = np.uint64(fnv(name) << 32)
    m = splitmix64(base + np.arange(n, dtype=np.uint64)) >> np.uint64(40)
    v = (m.astype(np.float64) - 8388608.0) * (S / 8388608.0)
    if is_norm: v = 1.0 + v
    return v.astype(np.float32).reshape(shape)
def tokens(step, G, seq, V, rows):
    j = (np.uint64(step * G) + np.asarray(rows, dtype=np.uint64)[:, None]) * np.uint64(seq + 1) + np.arange(seq + 1, dtype=np.uint64)[None, :]
    k = j % np.uint64(3); b = splitmix64(j // np.uint64(3) + np.uint64(12345)) % np.uint64(V)
    t1 = (b * np.uint64(5) + np.uint64(7)) % np.uint64(V); t2 = (t1 * np.uint64(5) + np.uint64(7)) % np.uint64(V)
    return np.where(k == 0, b, np.where(k == 1, t1, t2)).astype(np.int64)

def status(key):
    for l in open("/proc/self/status"):
        if l.startswith(key): return int(l.split()[1]) * 1024
def lo_bytes():
    for l in open("/proc/net/dev"):
        if l.strip().startswith("lo:"): return int(l.split(":")[1].split()[0])
    return 0

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--mode", default="single", choices=["single", "ddp", "zero1", "fsdp2", "fsdp2_zero2"])
    ap.add_argument("--arch", default="gpt", choices=["gpt", "llama"])
    for k, d in dict(layers=6, dim=384, heads=6, kv_heads=0, ffn=0, vocab=256, seq=256, batch=4, steps=10, threads=1, paced=0).items(): ap.add_argument(f"--{k}", type=int, default=d)
    ap.add_argument("--dtype", default="fp32", choices=["fp32", "fp64", "bf16"])      # bf16 = fp32 masters, bf16 compute (FSDP2 policy / autocast elsewhere)
    ap.add_argument("--compile", default="no"); ap.add_argument("--checkpoint", default="none", choices=["none", "block"])
    ap.add_argument("--lr", type=float, default=3e-4); ap.add_argument("--text", default="")
    ap.add_argument("--optim", default="fused", choices=["fused", "foreach", "loop"])
    ap.add_argument("--reference", default=""); ap.add_argument("--meter", type=int, default=1); ap.add_argument("--dcp", default="")
    a = ap.parse_args()
    import torch, torch.nn as nn, torch.nn.functional as F
    import torch.distributed as dist
    from torch.utils.checkpoint import checkpoint as ckpt
    torch.set_num_threads(a.threads)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if a.mode != "single": dist.init_process_group("gloo")
    torch.manual_seed(0); rss0 = status("VmRSS")
    d, V, T, h = a.dim, a.vocab, a.seq, a.heads; kv = a.kv_heads or h; ffn = a.ffn or 4 * d; hd = d // h
    dt = torch.float64 if a.dtype == "fp64" else torch.float32
    lin = lambda i, o: nn.Linear(i, o, bias=False)
    class Attn(nn.Module):
        def __init__(s): super().__init__(); s.qkv = lin(d, 3 * d); s.proj = lin(d, d)
        def forward(s, x):
            B, L, _ = x.shape; q, k, v = s.qkv(x).split(d, 2)
            q, k, v = (t.view(B, L, h, hd).transpose(1, 2) for t in (q, k, v))
            return s.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, L, d))
    class MLP(nn.Module):
        def __init__(s): super().__init__(); s.fc = lin(d, ffn); s.proj = lin(ffn, d)
        def forward(s, x): return s.proj(F.gelu(s.fc(x)))
    class Block(nn.Module):
        def __init__(s): super().__init__(); s.ln1 = nn.LayerNorm(d); s.attn = Attn(); s.ln2 = nn.LayerNorm(d); s.mlp = MLP()
        def forward(s, x): x = x + s.attn(s.ln1(x)); return x + s.mlp(s.ln2(x))
    class GPT(nn.Module):
        def __init__(s):
            super().__init__(); s.wte = nn.Embedding(V, d); s.wpe = nn.Embedding(T, d); s.blocks = nn.ModuleList(Block() for _ in range(a.layers)); s.ln_f = nn.LayerNorm(d)
        def forward(s, tok, tgt):
            x = s.wte(tok) + s.wpe(torch.arange(T))
            for b in s.blocks: x = ckpt(b, x, use_reentrant=False) if a.checkpoint == "block" else b(x)
            return F.cross_entropy(F.linear(s.ln_f(x), s.wte.weight).view(-1, V).to(dt), tgt.view(-1))
    class RMS(nn.Module):
        def __init__(s): super().__init__(); s.weight = nn.Parameter(torch.ones(d))
        def forward(s, x): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * s.weight
    class LAttn(nn.Module):
        def __init__(s): super().__init__(); s.wq = lin(d, h * hd); s.wk = lin(d, kv * hd); s.wv = lin(d, kv * hd); s.wo = lin(h * hd, d)
        def forward(s, x, cos, sin):
            B, L, _ = x.shape
            q = s.wq(x).view(B, L, h, hd).transpose(1, 2); k = s.wk(x).view(B, L, kv, hd).transpose(1, 2); v = s.wv(x).view(B, L, kv, hd).transpose(1, 2)
            def rope(t): t1, t2 = t[..., : hd // 2], t[..., hd // 2:]; return torch.cat((t1 * cos - t2 * sin, t2 * cos + t1 * sin), -1)
            q, k = rope(q), rope(k)
            if kv != h: k, v = k.repeat_interleave(h // kv, 1), v.repeat_interleave(h // kv, 1)
            return s.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, L, h * hd))
    class LMLP(nn.Module):
        def __init__(s): super().__init__(); s.w1 = lin(d, ffn); s.w3 = lin(d, ffn); s.w2 = lin(ffn, d)
        def forward(s, x): return s.w2(F.silu(s.w1(x)) * s.w3(x))
    class LBlock(nn.Module):
        def __init__(s): super().__init__(); s.norm1 = RMS(); s.attn = LAttn(); s.norm2 = RMS(); s.mlp = LMLP()
        def forward(s, x, cos, sin): x = x + s.attn(s.norm1(x), cos, sin); return x + s.mlp(s.norm2(x))
    class Llama(nn.Module):
        def __init__(s):
            super().__init__(); s.tok = nn.Embedding(V, d); s.blocks = nn.ModuleList(LBlock() for _ in range(a.layers)); s.norm = RMS(); s.head = lin(d, V)
            ang = np.arange(T)[:, None] * (10000.0 ** (-2.0 * np.arange(hd // 2) / hd))[None, :]
            s.cs = (torch.tensor(np.cos(ang)).to(dt), torch.tensor(np.sin(ang)).to(dt))
        def forward(s, tok, tgt):
            x = s.tok(tok); cos, sin = (c.to(x.dtype) for c in s.cs)
            for b in s.blocks: x = ckpt(b, x, cos, sin, use_reentrant=False) if a.checkpoint == "block" else b(x, cos, sin)
            return F.cross_entropy(s.head(s.norm(x)).view(-1, V).to(dt), tgt.view(-1))
    # skip the stock random init (slow); fill from the closed form
    with torch.nn.utils.init_empty_weights() if hasattr(torch.nn.utils, "init_empty_weights") else torch.device("meta"): m = GPT() if a.arch == "gpt" else Llama()
    if a.arch == "llama":
        ang = np.arange(T)[:, None] * (10000.0 ** (-2.0 * np.arange(hd // 2) / hd))[None, :]; m.cs = (torch.tensor(np.cos(ang)).to(dt), torch.tensor(np.sin(ang)).to(dt))
    def init_all(model):
        for n, p in model.named_parameters():
            full = torch.from_numpy(closed_form(n, p.shape, ("ln" in n or "norm" in n) and n.endswith("weight"))).to(dt)
            if hasattr(p, "to_local"):     # DTensor, dim-0 shard
                from torch.distributed.tensor import distribute_tensor
                with torch.no_grad(): p.to_local().copy_(distribute_tensor(full, p.device_mesh, p.placements, src_data_rank=None).to_local())
            else:
                with torch.no_grad(): p.copy_(full)
    nparam = sum(p.numel() for p in m.parameters())
    fsdp = a.mode.startswith("fsdp2")
    if fsdp:
        from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (world,)); kw = dict(mesh=mesh, reshard_after_forward=a.mode == "fsdp2")
        if a.dtype == "bf16": kw["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for b in m.blocks: fully_shard(b, **kw)
        fully_shard(m, **kw)
    m.to_empty(device="cpu"); m = m.to(dt); init_all(m)
    if a.arch == "gpt": pass
    net = m
    if a.mode in ("ddp", "zero1"): net = nn.parallel.DistributedDataParallel(m, gradient_as_bucket_view=True)
    oa = dict(lr=a.lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, **({"fused": True} if a.optim == "fused" else {"foreach": a.optim == "foreach"}))
    if a.mode == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        opt = ZeroRedundancyOptimizer(m.parameters(), optimizer_class=torch.optim.AdamW, **oa)
    else: opt = torch.optim.AdamW(m.parameters(), **oa)
    G = a.batch * world; rows = range(rank * a.batch, (rank + 1) * a.batch)
    txt = np.frombuffer(open(a.text, "rb").read(), dtype=np.uint8).astype(np.int64) if a.text else None
    def batch(t):
        if txt is not None: k = np.array([np.arange(T + 1) + ((t * G + g) * T) % (len(txt) - T - 1) for g in rows]); x = txt[k]
        else: x = tokens(t, G, T, V, list(rows))
        x = torch.from_numpy(x); return x[:, :-1].clone(), x[:, 1:].clone()
    amp = torch.autocast("cpu", torch.bfloat16, enabled=a.dtype == "bf16" and not fsdp)
    def step(t):
        x, y = batch(t)
        with amp: loss = net(x, y)
        loss.backward(); gn = None
        if a.reference: gn = math.sqrt(sum(float((p.grad.double() ** 2).sum()) for p in m.parameters()))
        opt.step(); opt.zero_grad(set_to_none=True); return loss.detach(), gn
    losses, times, gns, wire = [], [], [], []
    for t, _ in enumerate(sys.stdin if a.paced else range(a.steps)):
        if world > 1: dist.barrier()
        b0, c0, t0 = lo_bytes(), time.process_time(), time.perf_counter(); l, gn = step(t)
        if world > 1: l = l.clone(); dist.all_reduce(l); l /= world
        times.append(time.perf_counter() - t0)
        if a.paced: print(times[-1], time.process_time() - c0, flush=True)
        losses.append(float(l)); gns.append(gn)
        if world > 1: dist.barrier()
        wire.append((lo_bytes() - b0) / world)
    a.steps = len(times)
    hwm = status("VmHWM")
    loc = lambda p: (p.to_local() if hasattr(p, "to_local") else p)
    nb = lambda ts: sum(t.numel() * t.element_size() for t in ts if torch.is_tensor(t))
    ost = (opt.optim if a.mode == "zero1" else opt).state
    resident = nb([loc(p) for p in m.parameters()]) + nb([loc(v) for s in ost.values() for v in s.values() if torch.is_tensor(v)])
    if a.mode in ("ddp", "zero1"): resident += nb([p for p in m.parameters()])     # DDP buckets stay allocated
    out = dict(mode=a.mode, arch=a.arch, ranks=world, params=nparam, dtype=a.dtype, checkpoint=a.checkpoint, L=a.layers, d=d, V=V, seq=T, batch_per_rank=a.batch, losses=losses[:5] + losses[-1:] if a.steps > 5 else losses,
               median_ms=round(1e3 * st.median(times[2:]), 1), min_ms=round(1e3 * min(times[1:]), 1), tok_s=round(G * T / st.median(times[2:])), rss_peak_MiB=round((hwm - rss0) / 2**20, 1),
               resident_MiB=round(resident / 2**20, 2), lo_MB_per_rank_step=round(st.median(wire[2:]) / 1e6, 2) if world > 1 else 0)
    if a.meter:      # exact allocator peak and communication of one step, outside the timings
        from torch.profiler import profile, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as prof: step(a.steps)
        ev = prof.profiler.kineto_results.events(); cur = peak = 0
        for e in sorted((e for e in ev if e.name() == "[memory]"), key=lambda e: e.start_ns()): cur += e.nbytes(); peak = max(peak, cur)
        out["step_alloc_peak_MiB"] = round(peak / 2**20, 2); out["peak_MiB"] = round((peak + resident) / 2**20, 2); out["peak_bytes"] = peak + resident
        comm = {}
        for e in ev:
            if e.name().startswith("gloo:"):
                sh = e.shapes(); k = e.name(); c = comm.setdefault(k, [0, 0]); c[0] += 1
                c[1] += 4 * sum(int(np.prod(s)) for s in sh if s) if sh else 0
        out["comm_calls_elems_bytes"] = comm
    if world > 1:
        g = [None] * world; dist.all_gather_object(g, [out["rss_peak_MiB"], out.get("peak_MiB"), out["resident_MiB"]]); out["per_rank_rss_peak_resident"] = g
    if a.dcp:
        import torch.distributed.checkpoint as dcp, shutil
        from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        r = {}
        for rep in range(2):
            if rank == 0: shutil.rmtree(a.dcp, ignore_errors=True)
            if world > 1: dist.barrier()
            t0 = time.perf_counter(); ms, os_ = get_state_dict(m, opt); t1 = time.perf_counter(); dcp.save({"m": ms, "o": os_}, checkpoint_id=a.dcp); t2 = time.perf_counter()
            dcp.load({"m": ms, "o": os_}, checkpoint_id=a.dcp); t3 = time.perf_counter(); set_state_dict(m, opt, model_state_dict=ms, optim_state_dict=os_); t4 = time.perf_counter()
            r[rep] = dict(get_s=round(t1 - t0, 3), save_s=round(t2 - t1, 3), load_s=round(t3 - t2, 3), set_s=round(t4 - t3, 3))
        if rank == 0: r["bytes"] = sum(os.path.getsize(os.path.join(a.dcp, f)) for f in os.listdir(a.dcp)); r["files"] = sorted(os.listdir(a.dcp)); out["dcp"] = r
    if a.reference:
        chk = {n: dict(shape=list(p.shape), sum=float(p.detach().double().sum()), sumsq=float((p.detach().double() ** 2).sum()), first4=[float(x) for x in p.detach().flatten()[:4]]) for n, p in m.named_parameters()}
        cfg = dict(arch=a.arch, layers=a.layers, dim=d, heads=h, kv_heads=kv, ffn=ffn, vocab=V, seq=T, global_batch=G, steps=a.steps, dtype=a.dtype, lr=a.lr, betas=[.9, .95], eps=1e-8, weight_decay=0.1, checkpoint=a.checkpoint)
        x0 = tokens(0, G, T, V, [0])[0, :16].tolist()
        pool = json.load(open(a.reference)) if os.path.exists(a.reference) else dict(description=DESCRIPTION.strip().split("\n"), torch=torch.__version__, cases={})
        init = {}
        for n, p in m.named_parameters():
            f = closed_form(n, p.shape, ("ln" in n or "norm" in n) and n.endswith("weight")); init[n] = dict(sum=float(f.astype(np.float64).sum()), sumsq=float((f.astype(np.float64) ** 2).sum()), first4=[float(v) for v in f.flatten()[:4]])
        pool["cases"][f"{a.arch}_L{a.layers}_d{d}_h{h}_kv{kv}_V{V}_s{T}_G{G}_{a.dtype}"] = dict(config=cfg, first16_tokens_of_row0=x0, losses=losses, grad_norms=gns, params=nparam, init_checksums=init, final_checksums_after_steps=a.steps, final_checksums=chk)
        json.dump(pool, open(a.reference, "w"), indent=1)
    if rank == 0: print(json.dumps(out), flush=True)
    if world > 1: dist.barrier()
    if a.mode != "single": dist.destroy_process_group()
if __name__ == "__main__": main()
