// Ranks that begin with weights of transformers and write what they compute:
//   engine_ranks init_ranks RANKS STAGE PRECISION MODEL WEIGHTS OUT
// Every rank takes the same tokens, 0 1 2 ... in rows of 7 (modulo V), and writes its logits in fp64 to
// OUT.<rank>. No rank may read more of WEIGHTS than what it holds, and of transposed matrices the rest
// of two rows of each of its pieces.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/engine/checkpoint/pretrained_weights.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/engine/zero/launch.hpp"
#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/network/families/families.hpp"

#include "tests/dist/engine_ranks.hpp"

namespace plimsoll::tests {
namespace {

using checkpoint::PretrainedWeights;
using engine::zero::OwnedPiece;
using engine::zero::Sharder;

constexpr std::int64_t kPromptRows = 2;
constexpr std::int64_t kPromptTokens = 7;

struct InitWords {
  shard::Stage stage = shard::Stage::kNothing;
  std::string precision;
  std::string model;
  std::string weights;
  std::string out;
};

plan::Job prompt_job(const InitWords& words, int ranks) {
  plan::Job job;
  job.batch = kPromptRows;
  job.sequence = kPromptTokens;
  job.ranks = ranks;
  job.stage = words.stage;
  job.hold_logits = true;
  if (words.precision == "fp64") job.precision = plan::Precision::kFp64;
  if (words.precision == "mixed") job.precision = plan::Precision::kMixed;
  return job;
}

// Bytes in the file of what this rank holds, with `rows` rows more of each piece, up to the parameter.
std::int64_t held_bytes(const PretrainedWeights& weights, const Sharder& sharder,
                        std::int64_t rows) {
  std::int64_t bytes = 0;
  for (const OwnedPiece& piece : sharder.held()) {
    const shard::Parameter& parameter = sharder.parameters()[piece.parameter];
    const std::int64_t row = parameter.shape.size() == 2 ? parameter.shape[1] : 0;
    const std::int64_t elements =
        std::min(element_count(parameter), piece.in_parameter.size() + rows * row);
    bytes += elements * network::size_of(weights.dtype(piece.parameter));
  }
  return bytes;
}

void read_weights_of(const network::NetworkSpec& spec, const std::string& path, Sharder& sharder) {
  PretrainedWeights weights =
      or_throw(PretrainedWeights::open(path, spec, checkpoint::shapes_of(sharder.parameters())));
  const std::int64_t before = weights.bytes_read();
  or_throw(engine::read_weights(weights, sharder));
  const std::int64_t bytes = weights.bytes_read() - before;
  const std::int64_t least = held_bytes(weights, sharder, 0);
  const std::int64_t most = held_bytes(weights, sharder, 2);
  if (bytes >= least && bytes <= most) return;
  throw std::runtime_error(fmt::format("bytes read={}, expected {} to {}", bytes, least, most));
}

void write_logits(comm::Communicator& world, const InitWords& words) {
  at::set_num_threads(1);
  const network::NetworkSpec spec = or_throw(formats::load_model(words.model));
  const plan::Job job = prompt_job(words, world.size());
  const network::Network network = network::build_network(spec, job.build_options());
  engine::RunnerOptions options;
  options.world = &world;
  options.always_shards = true;
  engine::Runner runner(network, job, options);
  read_weights_of(spec, words.weights, runner.shards()->sharder());
  const at::Tensor logits = runner.logits([&] {
    const at::Tensor tokens =
        at::arange(kPromptRows * kPromptTokens, at::kLong).remainder(spec.vocabulary);
    runner.input(network::InputKind::kTokens).copy_(tokens.view({kPromptRows, kPromptTokens}));
  });
  const at::Tensor wide = logits.to(at::kDouble).contiguous();
  std::ofstream file(fmt::format("{}.{}", words.out, world.rank()), std::ios::binary);
  file.write(static_cast<const char*>(wide.const_data_ptr()),
             static_cast<std::streamsize>(wide.nbytes()));
  if (!file.flush()) throw std::runtime_error("the logits could not be written");
}

}  // namespace

int init_ranks(int argc, char** argv) {
  if (argc != 8) return 2;
  const InitWords words{static_cast<shard::Stage>(std::atoi(argv[3])), argv[4], argv[5], argv[6],
                        argv[7]};
  return engine::zero::launch(argc, argv, std::atoi(argv[2]), [&](comm::Communicator& world) {
    write_logits(world, words);
    return 0;
  });
}

}  // namespace plimsoll::tests
