#include "plimsoll/engine/train/resume.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/checkpoint/reader.hpp"
#include "plimsoll/checkpoint/verify.hpp"
#include "plimsoll/engine/checkpoint/sharded_state.hpp"
#include "plimsoll/engine/run/random_state.hpp"
#include "plimsoll/formats/export_config.hpp"
#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::engine {

using checkpoint::Fields;
using checkpoint::RunState;

namespace {

constexpr const char* kCursor = "position";
constexpr const char* kFile = "file";

template <class T>
std::string text(const T& value) {
  return fmt::format("{}", value);
}

std::int64_t number_of(const Fields& fields, const char* key) {
  const auto found = fields.find(key);
  const std::string value = found == fields.end() ? "" : found->second;
  std::int64_t number = -1;
  const char* end = value.data() + value.size();
  const auto [stop, problem] = std::from_chars(value.data(), end, number);
  if (problem == std::errc{} && stop == end && number >= 0) return number;
  throw std::runtime_error(
      fmt::format("[--resume] {}=\"{}\" in the checkpoint, expected a whole number", key, value));
}

// What the user asked for does not go with the checkpoint; all ranks see the same.
[[noreturn]] void refuse(const std::string& what) {
  comm::Cause cause;
  cause.rank = cause.reporter = 0;
  cause.operation = "resume";
  cause.text = what;
  throw TrainingFailed(cause, ExitCode::kBadInput);
}

// A line of JSON without what belongs to its place.
std::string without_comma(std::string line) {
  line.erase(0, line.find_first_not_of(' '));
  if (line.ends_with(',')) line.pop_back();
  return line;
}

std::string value_of(const Fields& fields, const std::string& key) {
  const auto found = fields.find(key);
  return found == fields.end() ? "nothing" : found->second;
}

void expect_same_rows(const RunState& saved, const RunState& now) {
  for (const auto& [key, value] : now.data) {
    if (key == kCursor || key == kFile || value_of(saved.data, key) == value) continue;
    refuse(fmt::format(
        "[--resume] {}={}, expected {} as in the checkpoint: rows would come in another order", key,
        value, value_of(saved.data, key)));
  }
}

// The network of a description, by what decides what it computes; the description has been read before.
network::NetworkSpec function_of(const std::string& described) {
  network::NetworkSpec spec = or_throw(formats::load_described_model(described, "checkpoint"));
  spec.title.clear();
  spec.assumptions.clear();
  return spec;
}

// The first difference of the two as transformers spells them; "" where it has no such spelling.
std::string first_difference(const network::NetworkSpec& was, const network::NetworkSpec& is) {
  const auto lines_of = [](const network::NetworkSpec& spec) {
    return std::istringstream(
        formats::export_config(spec, "", network::DType::kFloat32).value_or(""));
  };
  std::istringstream old_lines = lines_of(was);
  std::istringstream new_lines = lines_of(is);
  std::string old_line;
  std::string new_line;
  while (std::getline(old_lines, old_line) && std::getline(new_lines, new_line)) {
    if (old_line == new_line) continue;
    return fmt::format("{}, expected {}", without_comma(new_line), without_comma(old_line));
  }
  return "";
}

// Tensors of the same shapes may belong to another function: another theta, another activation.
void expect_same_model(const RunState& saved, const RunState& now) {
  if (saved.model == now.model) return;
  const network::NetworkSpec was = function_of(saved.model);
  const network::NetworkSpec is = function_of(now.model);
  if (was == is) return;
  const std::string difference = first_difference(was, is);
  if (!difference.empty()) {
    refuse(fmt::format("[--resume] MODEL has {} as in the checkpoint", difference));
  }
  refuse(
      "[--resume] MODEL computes another function than the one in the checkpoint, expected the "
      "same");
}

// Moments of two optimizers may look alike.
void expect_same_optimizer(const RunState& saved, const RunState& now) {
  const std::string is = value_of(now.settings, "optimizer");
  const std::string was = value_of(saved.settings, "optimizer");
  if (is == was) return;
  refuse(fmt::format("[--resume] optimizer={}, expected {} as in the checkpoint", is, was));
}

void list_changes(const Fields& saved, const Fields& now, std::vector<std::string>& changes) {
  for (const auto& [key, value] : now) {
    const std::string was = value_of(saved, key);
    if (was != value) changes.push_back(fmt::format("{} {} -> {}", key, was, value));
  }
}

constexpr std::int64_t kNoCheckpoint = -1;

// On rank 0: the step of the newest valid checkpoint, or none.
std::int64_t choose(const std::string& folder, std::vector<std::string>& told) {
  const checkpoint::Newest newest = or_throw(checkpoint::newest_valid(folder));
  for (const checkpoint::Skipped& skipped : newest.skipped) {
    told.push_back(fmt::format("skipped {}: {}", skipped.folder, skipped.reason));
  }
  if (newest.found) {
    if (!checkpoint::ended_at(folder)) {
      told.emplace_back("the run before did not come to its end");
    }
    return newest.found->step;
  }
  // A run that died in its first save had nothing yet to lose.
  const bool lost = std::any_of(newest.skipped.begin(), newest.skipped.end(),
                                [](const auto& skipped) { return !skipped.unfinished; });
  if (lost) {
    throw std::runtime_error(
        fmt::format("[--resume] no valid checkpoint in {}; {}", folder, fmt::join(told, "; ")));
  }
  told.push_back(fmt::format("no checkpoint in {}: begins at step 1", folder));
  return kNoCheckpoint;
}

std::int64_t chosen_by_rank_0(comm::Communicator& world, const std::string& folder,
                              std::vector<std::string>& told) {
  std::int64_t step = kNoCheckpoint;
  if (world.rank() == 0) step = choose(folder, told);
  world.broadcast(comm::view(std::span<std::int64_t>(&step, 1)), 0, {"resume"}).wait();
  return step;
}

void restore_random(checkpoint::Reader& reader, const comm::Communicator& world,
                    std::uint64_t seed) {
  const checkpoint::Manifest& manifest = reader.manifest();
  if (manifest.ranks == world.size()) {
    set_random_state(or_throw(reader.read_blob(world.rank(), "random")));
    return;
  }
  const auto step = static_cast<std::uint64_t>(manifest.step);
  const auto rank = static_cast<std::uint64_t>(world.rank());
  at::manual_seed(seed + step * 0xbf58476d1ce4e5b9U + rank * 0x9e3779b97f4a7c15U);
}

std::string summary(const checkpoint::Manifest& manifest, const RunState& now) {
  std::vector<std::string> changes;
  list_changes(manifest.run.settings, now.settings, changes);
  list_changes(manifest.run.schedule, now.schedule, changes);
  std::string line = fmt::format("resumed after step {}", manifest.step);
  if (!changes.empty()) line += fmt::format(", changed: {}", fmt::join(changes, ", "));
  return line;
}

}  // namespace

RunState run_state(const plan::Job& job, const TrainingOptions& options, const TokenFile& file,
                   std::int64_t cursor, std::int64_t optimizer_steps) {
  RunState run;
  run.model = options.model;
  run.optimizer_steps = optimizer_steps;
  const LearningRate& rate = options.learning_rate;
  run.schedule = {{"lr", text(rate.peak)},
                  {"schedule", text(name(rate.decay))},
                  {"warm_up", text(rate.warm_up)},
                  {"steps", text(rate.steps)}};
  run.data = {{kFile, file.path()},
              {kCursor, text(cursor)},
              {"seed", text(options.seed)},
              {"tokens", text(file.size())},
              {"token_bytes", text(file.token_bytes())},
              {"held_out", text(options.held_out)},
              {"seq", text(job.sequence)}};
  run.settings = {{"ranks", text(job.ranks)},
                  {"zero", text(static_cast<int>(job.stage))},
                  {"batch", text(job.batch)},
                  {"accumulate", text(job.accumulate)},
                  {"precision", text(plan::name(job.precision))},
                  {"optimizer", text(plan::name(job.optimizer))},
                  {"dropout", text(job.dropout)},
                  {"clip", text(options.clip)}};
  return run;
}

Resumed resume(const RunState& now, const TrainingOptions& options, zero::NetworkShards& shards) {
  Resumed resumed;
  zero::Sharder& sharder = shards.sharder();
  comm::Communicator& world = sharder.world();
  const std::string& folder = options.save.folder;
  const std::int64_t step = chosen_by_rank_0(world, folder, resumed.told);
  if (step == kNoCheckpoint) return resumed;
  auto reader = or_throw(checkpoint::Reader::open(
      (std::filesystem::path(folder) / checkpoint::step_name(step)).string()));
  const checkpoint::Manifest& manifest = reader.manifest();
  expect_same_optimizer(manifest.run, now);
  if (auto same = check_tensors(manifest, sharder); !same) refuse(format_error(same.error()));
  expect_same_model(manifest.run, now);
  expect_same_rows(manifest.run, now);
  or_throw(read_state(reader, sharder));
  shards.optimizer().set_steps(manifest.run.optimizer_steps);
  restore_random(reader, world, options.seed);
  resumed.step = step;
  resumed.cursor = number_of(manifest.run.data, kCursor);
  if (world.rank() == 0) resumed.told.push_back(summary(manifest, now));
  return resumed;
}

}  // namespace plimsoll::engine
