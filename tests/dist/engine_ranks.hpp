// The tests with libtorch that are started as ranks, in one program: what a source pays for libtorch's
// headers is paid once for all of them.
//   engine_ranks NAME ARGS...
//
// Each function is a main of its own, described with its arguments at the top of NAME.cpp. It gets main's
// argc and argv as they are, NAME included: launch() starts every rank with the same words. Returned is
// the exit code; 0 says that everything holds.
#pragma once

namespace plimsoll::tests {

// A sharded module against one process, bit for bit.
int module_ranks(int argc, char** argv);
// Random sharded jobs: calculated = dry-run = measured, event by event.
int job_ranks(int argc, char** argv);
// Model states at rest by stage: the table of docs/zero.md.
int states_ranks(int argc, char** argv);
// The troubles of trouble.hpp.
int trouble_ranks(int argc, char** argv);
// Ranks against one process with all rows in one batch, and against recorded runs of PyTorch.
int joined_batch_ranks(int argc, char** argv);
// A training run in which the last rank fails at a chosen place.
int fault_ranks(int argc, char** argv);
// Logits computed from weights of transformers.
int init_ranks(int argc, char** argv);
// Checkpoints saved and loaded at any number of ranks and any stage.
int checkpoint_ranks(int argc, char** argv);

}  // namespace plimsoll::tests
