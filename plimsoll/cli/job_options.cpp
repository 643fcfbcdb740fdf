#include "plimsoll/cli/job_options.hpp"

namespace plimsoll::cli {

std::vector<Option> job_options() {
  const std::string job = "Job";
  const std::string run = "Whose run";
  const std::string ranks = "Ranks";
  const std::string inference = "Inference";
  return {
      {"--batch", "N", "rows of a micro-batch (1)", job},
      {"--seq", "N", "tokens per row (the model's positions, at most 4096)", job},
      {"--accumulate", "N", "micro-batches per step (1)", job},
      {"--precision", "NAME",
       "fp64, fp32, bf16, fp16, mixed, autocast, zero-paper, megatron (fp32; mixed on a device)",
       job},
      {"--master-dtype", "DTYPE", "of master weights: none, fp32 (the recipe's)", job},
      {"--grad-dtype", "DTYPE", "of gradients that the optimizer reads (the recipe's)", job},
      {"--state-dtype", "DTYPE", "of optimizer states (the recipe's)", job},
      {"--loss-dtype", "DTYPE", "of logits in the loss (the recipe's)", job},
      {"--optimizer", "NAME", "adamw, sgd, sgd-momentum, lion, adafactor, adamw-8bit (adamw)", job},
      {"--optimizer-impl", "NAME", "plimsoll, torch-python, torch-cpp, torch-fused (plimsoll)",
       job},
      {"--attention", "NAME", "auto, flash, efficient, math, eager (auto: what the library takes)",
       job},
      {"--checkpoint", "NAME", "recompute activations: none, block, matmuls (none)", job},
      {"--dropout", "P", "probability (0)", job},
      {"--loss-chunks", "N", "logits and loss in N chunks of rows, one at a time (1)", job},
      {"--lora", "SPEC", "adapters, the rest frozen: rank=8,targets=q,v[,alpha=16] (none)", job},
      {"--freeze", "LIST", "embeddings, head, layers:0-5, *.mlp.*: what does not learn (none)",
       job},
      {"--hold-logits", "", "the caller keeps the logits until the step ends", job},
      {"--targets", "NAME", "separate, shared: targets are the inputs (separate)", job},
      {"--semantics", "NAME", "plimsoll, hf: whose operations (plimsoll)", run},
      {"--backend", "NAME", "cpu, cuda: whose library facts (cpu; cuda with a device)", run},
      {"--device", "NAME", "a name of `plimsoll devices`, or a size such as 24GiB (none)", run},
      {"--reserve", "SIZE", "kept free on the device for its context (the device's)", run},
      {"--threads", "N", "threads of CPU kernels, which decide their scratch (1)", run},
      {"--ranks", "R", "data-parallel ranks (1; train under mpirun: its ranks)", ranks},
      {"--zero", "STAGE", "what ranks divide: 0, 1, 2, 3, see docs/zero.md (0)", ranks},
      {"--prefetch", "N", "units gathered ahead at stage 3 (1)", ranks},
      {"--reshard-root", "", "stage 3: release the root after forward, gather it again", ranks},
      {"--no-sync", "", "reduce gradients once a step, not after every micro-batch", ranks},
      {"--snapshot", "", "a checkpoint is being written from a copy of the state", ranks},
      {"--mode", "NAME", "train, prefill, decode; the last two in plan and explain (train)",
       inference},
      {"--context", "N", "decode: tokens in the cache, the new one among them (--seq)", inference},
      {"--kv-dtype", "DTYPE", "of the cache: fp16, bf16, fp32, fp8, int8 (what products read)",
       inference},
  };
}

}  // namespace plimsoll::cli
