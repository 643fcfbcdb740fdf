// Model states at rest on 4 ranks, measured: the table of docs/zero.md.
//   engine_ranks states_ranks [DOCUMENT]
// Prints it; exit 1 when DOCUMENT has another one (UPDATE_GOLDEN: writes it).
//
// Alive at the end of the second step's last reduction, in a run of plimsoll's GPT; by tag, so without
// activations. Formulas are those of the table of stages, for the parameters without padding.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/or_throw.hpp"
#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/engine/zero/launch.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/network/families/families.hpp"

#include "tests/dist/engine_ranks.hpp"
#include "tests/document_table.hpp"

namespace plimsoll::tests {
namespace {

using timeline::Tag;

constexpr int kStatesRanks = 4;
constexpr const char* kStatesModel = "minigpt:d=128,L=4,V=1000,s=64,heads=4";

// Bytes by tag when the last phase `reduce` ends.
timeline::BytesByTag alive_after_reduction(const timeline::Timeline& timeline) {
  timeline::BytesByTag now{}, result{};
  timeline::Phase phase = timeline::Phase::kModel;
  const auto at = [](timeline::BytesByTag& bytes, Tag tag) -> std::int64_t& {
    return bytes[static_cast<std::size_t>(tag)];
  };
  for (const timeline::Event& event : timeline.events) {
    switch (event.kind) {
      case timeline::EventKind::kAllocate:
        at(now, event.tag) += event.bytes;
        break;
      case timeline::EventKind::kRelease:
        at(now, event.tag) -= event.bytes;
        break;
      case timeline::EventKind::kRetag:
        at(now, event.tag) -= event.bytes;
        at(now, event.to) += event.bytes;
        break;
      case timeline::EventKind::kBeginPhase:
        phase = event.phase.phase;
        break;
      case timeline::EventKind::kEndPhase:
        if (phase == timeline::Phase::kReduce) result = now;
        break;
    }
  }
  return result;
}

struct Formula {
  const char* text;
  double bytes;  // per parameter
};

Formula formula(plan::Precision precision, int stage) {
  constexpr double kR = kStatesRanks;
  if (precision == plan::Precision::kFp32) {
    const std::array<Formula, 4> all = {
        {{"16", 16}, {"8 + 8/R", 8 + 8 / kR}, {"4 + 12/R", 4 + 12 / kR}, {"16/R", 16 / kR}}};
    return all.at(static_cast<std::size_t>(stage));
  }
  const std::array<Formula, 4> all = {
      {{"18", 18}, {"4 + 16/R", 4 + 16 / kR}, {"2 + 16/R", 2 + 16 / kR}, {"16/R", 16 / kR}}};
  return all.at(static_cast<std::size_t>(stage));
}

std::string states_row(comm::Communicator& world, plan::Precision precision, int stage) {
  const network::NetworkSpec spec = or_throw(formats::load_model(kStatesModel));
  plan::Job job;
  job.sequence = 64;
  job.ranks = kStatesRanks;
  job.stage = static_cast<shard::Stage>(stage);
  job.precision = precision;
  const network::Network net = network::build_network(spec, job.build_options());
  engine::RecordOptions options;
  options.world = &world;
  const auto alive = alive_after_reduction(engine::record_run(net, job, options));
  std::string text = fmt::format("| {} | {} |", plan::name(precision), stage);
  std::int64_t sum = 0;
  for (Tag tag : {Tag::kParameters, Tag::kMasterCopy, Tag::kGradients, Tag::kOptimizer}) {
    const std::int64_t bytes = alive[static_cast<std::size_t>(tag)];
    sum += bytes;
    text += fmt::format(" {} |", grouped(bytes));
  }
  const auto psi = static_cast<double>(net.parameter_elements());
  const Formula expected = formula(precision, stage);
  const double each = static_cast<double>(sum) / psi;
  // Padding and places at multiples of 64 bytes.
  if (each < expected.bytes || each > 1.005 * expected.bytes) {
    throw std::runtime_error(
        fmt::format("stage {}: {} bytes per parameter, expected {}", stage, each, expected.bytes));
  }
  return text + fmt::format(" {} | {:.3f} | {} = {} |\n", grouped(sum), each, expected.text,
                            expected.bytes);
}

std::string states_table(comm::Communicator& world) {
  std::string text =
      "| precision | stage | parameters | masters | gradients | moments | sum | per parameter | "
      "formula |\n|---|---|---|---|---|---|---|---|---|\n";
  for (auto precision : {plan::Precision::kFp32, plan::Precision::kMixed}) {
    for (int stage = 0; stage <= 3; ++stage) text += states_row(world, precision, stage);
  }
  return text;
}

int check_states(comm::Communicator& world, const std::string& document) {
  at::set_num_threads(1);
  const std::string text = states_table(world);
  if (world.rank() != 0) return 0;
  fmt::print("{}", text);
  if (document.empty()) return 0;
  const std::string now = test::with_table(test::read_document(document), "states", text);
  return test::is_up_to_date(document, now) ? 0 : 1;
}

}  // namespace

int states_ranks(int argc, char** argv) {
  const std::string document = argc > 2 ? argv[2] : "";
  return engine::zero::launch(argc, argv, kStatesRanks, [&](comm::Communicator& world) {
    return check_states(world, document);
  });
}

}  // namespace plimsoll::tests
