// Ranks that save a sharded module, or load it at any number of ranks and any stage:
//   engine_ranks checkpoint_ranks RANKS save STAGE KIND DIR         train, save after step 3
//   engine_ranks checkpoint_ranks RANKS load STAGE KIND DIR BACK    load from DIR; compare; save to BACK; train
// KIND: fp32, or mixed (bf16 over fp32 masters). The model has sizes that nothing divides, tensors of
// fewer elements than ranks, a tied head, a frozen block, dropout, and buffers that every rank has
// changed for itself before saving. After loading, all weights and moments have to be the bits that the
// saving ranks had (DIR/reference), buffers rank 0's on every rank, no rank may have read more than it
// holds, and the next steps have to be those of one process that loads the same checkpoint and takes the
// ranks' rows as micro-batches.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/comm/self.hpp"
#include "plimsoll/engine/checkpoint/sharded_state.hpp"
#include "plimsoll/zero.hpp"

#include "tests/dist/engine_ranks.hpp"
#include "tests/dist/sharded_model.hpp"
#include "tests/dist/trouble.hpp"

namespace plimsoll::tests {
namespace {

using engine::zero::Sharder;

constexpr int kSavedStep = 3;
constexpr int kMoreSteps = 4;
constexpr std::int64_t kSavedRows = 2;
constexpr double kOffset = 0.25;           // on rank 0
constexpr std::int64_t kSeen = 1LL << 40;  // on rank 0

struct SavedCase {
  Stage stage = Stage::kParameters;
  bool mixed = false;
};

// A sharded model with its optimizer.
struct SavedRun {
  SavedRun(const SavedCase& c, Communicator& w, std::uint64_t seed) : world(w), model(make(seed)) {
    ZeroSettings settings;
    settings.stage = c.stage;
    if (c.mixed) {
      settings.compute = at::kBFloat16;
      settings.master = at::kFloat;
    }
    seen = model->register_buffer("seen", at::zeros({}, at::kLong));
    module.emplace(fully_shard(model, world, settings));
    for (std::size_t i = 0; i < model->blocks.size(); ++i) {
      model->calls[i] = module->wrap(model->blocks[i]);
    }
    module->initialise();
    optimizer.emplace(module->sharder(), Optimizer::kAdamW, OptimizerSettings{});
  }

  static TinyModel make(std::uint64_t seed) {
    at::manual_seed(seed);
    TinyShape shape;
    shape.dropout = 0.1;
    TinyModel model(shape);
    for (const at::Tensor& p : model->blocks[1]->parameters()) p.set_requires_grad(false);
    return model;
  }

  // Every rank's are others, as running means of its own rows are.
  void change_buffers() {
    model->offset.fill_(kOffset + world.rank());
    seen.fill_(kSeen + world.rank());
  }
  bool has_buffers_of_rank_0() {
    return at::equal(model->offset, at::full_like(model->offset, kOffset)) &&
           seen.item<std::int64_t>() == kSeen;
  }

  // `rows_of` ranks' rows per micro-batch of this process; returns the sum of its losses.
  double step(int step, int ranks_here) {
    double losses = 0;
    for (int m = 0; m < ranks_here; ++m) {
      const int rank = ranks_here == 1 ? world.rank() : m;
      at::manual_seed(static_cast<std::uint64_t>(7 + step + 1000 * rank));
      const TinyShape shape;
      const at::Tensor ids = at::randint(shape.vocabulary, {kSavedRows, shape.sequence}, at::kLong);
      const at::Tensor targets =
          at::randint(shape.vocabulary, {kSavedRows, shape.sequence}, at::kLong);
      at::Tensor loss = module->run([&] { return model->loss(ids, targets); }, m + 1 == ranks_here);
      loss.backward();
      losses += loss.item<double>();
    }
    engine::zero::StepOptions options;
    options.micro_batches = ranks_here;
    options.clip = 0.05;
    optimizer->step(options);
    module->zero_grad();
    return losses;
  }

  Sharder& sharder() { return module->sharder(); }

  Communicator& world;
  TinyModel model;
  at::Tensor seen;
  std::optional<ShardedModule> module;
  std::optional<ShardOptimizer> optimizer;
};

// All states of all tensors, one after the other, joined from the ranks' shares as integers: sums with
// zeros keep every bit. Collective.
std::string joined_states(Sharder& sharder) {
  std::string bytes;
  const std::vector<engine::SavedPiece> share = engine::share_of(sharder);
  const std::vector<checkpoint::Tensor> tensors = engine::tensors_of(sharder);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::int64_t elements = checkpoint::element_count(tensors[t]);
    for (const checkpoint::TensorState& state : tensors[t].states) {
      const std::int64_t size = network::size_of(state.dtype);
      const at::ScalarType integers = size == 2 ? at::kShort : size == 8 ? at::kLong : at::kInt;
      at::Tensor whole = at::zeros({elements}, at::kLong);
      for (const engine::SavedPiece& piece : share) {
        if (piece.tensor != t || piece.kind != state.kind) continue;
        whole.narrow(0, piece.elements.begin, piece.elements.size())
            .copy_(piece.data.view(integers));
      }
      auto* numbers = whole.data_ptr<std::int64_t>();
      const comm::View view{numbers, elements, comm::DType::kInt64};
      if (elements > 0) sharder.world().all_reduce(view, view).wait();
      bytes.append(reinterpret_cast<const char*>(numbers),
                   static_cast<std::size_t>(elements) * sizeof(*numbers));
    }
  }
  return bytes;
}

void save_run(SavedRun& run, const std::string& folder, int step) {
  const checkpoint::SavePlan plan{folder, step, run.world.size(), run.sharder().settings().stage,
                                  engine::tensors_of(run.sharder())};
  if (run.world.rank() == 0) or_throw(checkpoint::prepare(plan));
  run.world.barrier().wait();
  or_throw(engine::write_share(plan, run.world.rank(), engine::share_of(run.sharder()), {}));
  run.world.barrier().wait();
  const std::string reference = joined_states(run.sharder());
  if (run.world.rank() != 0) return;
  checkpoint::RunState state;
  state.optimizer_steps = run.optimizer->steps();
  or_throw(checkpoint::commit(plan, state));
  std::ofstream(folder + "/reference", std::ios::binary) << reference;
}

void load_run(SavedRun& run, const std::string& folder) {
  auto reader =
      or_throw(checkpoint::Reader::open(folder + "/" + checkpoint::step_name(kSavedStep)));
  or_throw(engine::check_tensors(reader.manifest(), run.sharder()));
  or_throw(engine::read_state(reader, run.sharder()));
  run.optimizer->set_steps(reader.manifest().run.optimizer_steps);
  std::int64_t held = 0;
  for (const engine::zero::OwnedPiece& piece : run.sharder().held()) {
    for (const at::Tensor& t : {piece.weights, piece.first, piece.second}) {
      if (t.defined()) held += static_cast<std::int64_t>(t.nbytes());
    }
  }
  for (const auto& buffer : run.sharder().buffers()) {
    held += static_cast<std::int64_t>(buffer.tensor.nbytes());
  }
  if (reader.bytes_read() > held) {
    throw std::runtime_error(
        fmt::format("bytes read={}, expected at most {}", reader.bytes_read(), held));
  }
}

void expect_equal(bool equal, const std::string& what) {
  if (!equal) throw std::runtime_error(what + " differs");
}

std::string parameters_of(SavedRun& run) {
  run.module->gather();
  std::string bytes;
  for (const at::Tensor& p : run.model->parameters()) {
    const at::Tensor flat = p.detach().contiguous();
    if (flat.numel() > 0) bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  run.module->release();
  return bytes;
}

void go_on(SavedRun& run, const SavedCase& c, const std::string& folder) {
  const auto self = comm::make_self();
  std::optional<SavedRun> alone;
  if (run.world.rank() == 0) {
    alone.emplace(SavedCase{Stage::kNothing, c.mixed}, *self, 5);
    load_run(*alone, folder);
    expect_equal(parameters_of(*alone) == parameters_of(run), "what forward reads");
  } else {
    parameters_of(run);
  }
  for (int s = kSavedStep; s < kSavedStep + kMoreSteps; ++s) {
    const double own = run.step(s, 1);
    const double sum = sum_over_ranks(run.world, own);
    if (alone) {
      expect_equal(alone->step(s, run.world.size()) == sum, fmt::format("loss of step {}", s));
    }
  }
  const std::string states = joined_states(run.sharder());
  if (alone) expect_equal(joined_states(alone->sharder()) == states, "the state after more steps");
}

int save_or_load(Communicator& world, const std::vector<std::string>& words) {
  at::set_num_threads(1);
  const SavedCase c{static_cast<Stage>(std::stoi(words[1])), words[2] == "mixed"};
  const std::string& folder = words[3];
  if (words[0] == "save") {
    SavedRun run(c, world, 11);
    for (int s = 0; s < kSavedStep; ++s) run.step(s, 1);
    run.change_buffers();
    save_run(run, folder, kSavedStep);
    return 0;
  }
  SavedRun run(c, world, 99);
  load_run(run, folder);
  expect_equal(run.has_buffers_of_rank_0(), "a buffer after loading");
  const std::string states = joined_states(run.sharder());
  std::ifstream file(folder + "/reference", std::ios::binary);
  const std::string reference((std::istreambuf_iterator<char>(file)), {});
  expect_equal(reference == states, "the state after loading");
  save_run(run, words[4], kSavedStep);
  go_on(run, c, folder);
  return 0;
}

}  // namespace

int checkpoint_ranks(int argc, char** argv) {
  if (argc < 7) return 2;
  const std::vector<std::string> words(argv + 3, argv + argc);
  return plimsoll::launch(argc, argv, std::atoi(argv[2]),
                          [&](Communicator& world) { return save_or_load(world, words); });
}

}  // namespace plimsoll::tests
