#include "plimsoll/plan/fit/moves.hpp"

#include <fmt/format.h>

namespace plimsoll::plan {
namespace {

using shard::Stage;

std::string text(std::int64_t value) { return fmt::format("{}", value); }

Move checkpointing(const network::NetworkSpec& spec, const Job& job) {
  Move move{"checkpointing", ChangeCost::kSameStep, {}};
  if (spec.family == network::Family::kCnn) return move;
  const auto add = [&](Checkpoint policy) {
    move.levels.push_back({{{"--checkpoint", std::string(network::name(policy))}},
                           [policy](Job& other) { other.checkpoint = policy; }});
  };
  if (job.checkpoint == Checkpoint::kNone) add(Checkpoint::kMatmuls);
  if (job.checkpoint != Checkpoint::kBlock) add(Checkpoint::kBlock);
  return move;
}

Move higher_stage(const Job& job) {
  Move move{"a higher stage", ChangeCost::kSameStep, {}};
  if (job.ranks == 1) return move;
  for (int stage = static_cast<int>(job.stage) + 1; stage <= 3; ++stage) {
    move.levels.push_back({{{"--zero", text(stage)}},
                           [stage](Job& other) { other.stage = static_cast<Stage>(stage); }});
  }
  return move;
}

// The same rows in more micro-batches.
Move smaller_micro_batches(const Job& job) {
  constexpr std::int64_t kMostMicroBatches = 65536;  // as plan::validate
  Move move{"smaller micro-batches", ChangeCost::kSameStep, {}};
  std::int64_t batch = job.batch;
  std::int64_t count = job.accumulate;
  while (batch % 2 == 0 && count <= kMostMicroBatches / 2) {
    batch /= 2;
    count *= 2;
    move.levels.push_back(
        {{{"--batch", text(batch)}, {"--accumulate", text(count)}}, [batch, count](Job& other) {
           other.batch = batch;
           other.accumulate = static_cast<std::int32_t>(count);
         }});
  }
  const std::int64_t rows = job.batch * job.accumulate;
  if (batch == 1 || rows > kMostMicroBatches) return move;
  move.levels.push_back({{{"--batch", "1"}, {"--accumulate", text(rows)}}, [rows](Job& other) {
                           other.batch = 1;
                           other.accumulate = static_cast<std::int32_t>(rows);
                         }});
  return move;
}

// Stages below 1 divide nothing: more ranks help from stage 1 on.
Move more_ranks(const Job& job) {
  constexpr std::int32_t kMostAdvisedRanks = 1024;  // beyond it advice is no help
  Move move{"more ranks", ChangeCost::kMoreRanks, {}};
  const bool divides = job.stage != Stage::kNothing;
  for (std::int32_t ranks = 2 * job.ranks; ranks <= kMostAdvisedRanks; ranks *= 2) {
    Level level{{{"--ranks", text(ranks)}}, [ranks, divides](Job& other) {
                  other.ranks = ranks;
                  if (!divides) other.stage = Stage::kParameters;
                }};
    if (!divides) level.settings.push_back({"--zero", "3"});
    move.levels.push_back(std::move(level));
  }
  return move;
}

Move narrower_precision(const Job& job) {
  Move move{"a narrower precision", ChangeCost::kOtherArithmetic, {}};
  bool narrower = false;
  for (const Precision precision :
       {Precision::kFp64, Precision::kFp32, Precision::kMixed, Precision::kBf16}) {
    if (narrower) {
      move.levels.push_back({{{"--precision", std::string(name(precision))}},
                             [precision](Job& other) { other.precision = precision; }});
    }
    narrower = narrower || precision == job.precision;
  }
  return move;
}

Move narrower_states(const Job& job) {
  Move move{"narrower states", ChangeCost::kOtherArithmetic, {}};
  if (moments(job.optimizer) == 0 || job.recipe().state != DType::kFloat32) return move;
  move.levels.push_back(
      {{{"--state-dtype", "bf16"}}, [](Job& other) { other.state_dtype = DType::kBFloat16; }});
  return move;
}

Move smaller_optimizer(const Job& job) {
  Move move{"an optimizer with fewer states", ChangeCost::kOtherArithmetic, {}};
  for (const Optimizer optimizer : {Optimizer::kLion, Optimizer::kSgd}) {
    if (moments(optimizer) >= moments(job.optimizer)) continue;
    move.levels.push_back({{{"--optimizer", std::string(name(optimizer))}},
                           [optimizer](Job& other) { other.optimizer = optimizer; }});
  }
  return move;
}

Move shorter_sequence(const network::NetworkSpec& spec, const Job& job) {
  constexpr std::int64_t kShortest = 128;  // shorter ones are another task
  Move move{"a shorter sequence", ChangeCost::kLessWork, {}};
  if (spec.family == network::Family::kCnn) return move;
  const char* option = job.mode == Mode::kDecode ? "--context" : "--seq";
  for (std::int64_t tokens = job.sequence / 2; tokens >= kShortest; tokens /= 2) {
    move.levels.push_back(
        {{{option, text(tokens)}}, [tokens](Job& other) { other.sequence = tokens; }});
  }
  return move;
}

// Of inference, whose rows nothing accumulates.
Move fewer_rows(const Job& job) {
  Move move{"fewer rows", ChangeCost::kLessWork, {}};
  if (!job.infers()) return move;
  for (std::int64_t rows = job.batch / 2; rows >= 1; rows /= 2) {
    move.levels.push_back({{{"--batch", text(rows)}}, [rows](Job& other) { other.batch = rows; }});
  }
  return move;
}

Move narrower_cache(const Job& job) {
  Move move{"a narrower cache", ChangeCost::kOtherArithmetic, {}};
  if (!job.infers()) return move;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat8}) {
    if (network::size_of(dtype) >= network::size_of(job.cache_dtype())) continue;
    move.levels.push_back({{{"--kv-dtype", std::string(network::name(dtype))}},
                           [dtype](Job& other) { other.kv_dtype = dtype; }});
  }
  return move;
}

}  // namespace

std::vector<Move> moves_of(const network::NetworkSpec& spec, const Job& job) {
  std::vector<Move> moves = {checkpointing(spec, job),    higher_stage(job),
                             smaller_micro_batches(job),  more_ranks(job),
                             narrower_precision(job),     narrower_states(job),
                             smaller_optimizer(job),      narrower_cache(job),
                             shorter_sequence(spec, job), fewer_rows(job)};
  std::erase_if(moves, [](const Move& move) { return move.levels.empty(); });
  return moves;
}

}  // namespace plimsoll::plan
