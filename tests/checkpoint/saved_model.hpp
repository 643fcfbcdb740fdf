// A model of made-up elements, laid out over ranks as the engine does, saved and read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/checkpoint/reader.hpp"
#include "plimsoll/checkpoint/writer.hpp"
#include "plimsoll/network/spec.hpp"
#include "plimsoll/shard/layout.hpp"

#include "tests/property/dice.hpp"

namespace plimsoll::test {

struct Model {
  std::vector<shard::Parameter> parameters;
  shard::Units units;
  std::vector<checkpoint::Tensor> tensors;  // the same list with its states
};

// Three blocks and a root; sizes that nothing divides, fewer rows than ranks, a scalar and an empty
// tensor among them.
Model small_model();
Model random_model(Dice& dice);

// The parameters of a real network in fp32 with two moments; one unit per block.
Model model_of(const network::NetworkSpec& spec);

// The bytes of a range of a state: every element of every tensor and kind is another.
std::vector<std::byte> bytes_of(const Model& model, std::size_t tensor, checkpoint::StateKind kind,
                                const shard::Range& elements);

struct Owned {
  std::size_t tensor = 0;
  shard::Range elements;
};
// What a rank writes or reads: at stage 0 its share of every tensor when `writes`, else everything.
std::vector<Owned> owned(const Model& model, shard::Stage stage, std::int32_t ranks,
                         std::int32_t rank, bool writes);

checkpoint::SavePlan plan_of(const Model& model, const std::string& folder, std::int64_t step,
                             std::int32_t ranks, shard::Stage stage);
checkpoint::RunState run_state(std::int64_t step);

// Flushes nothing: what a test reads again it reads from memory, and flushing takes milliseconds.
class QuickDisk : public checkpoint::Disk {
 public:
  int fsync(int) override { return 0; }
};
checkpoint::Disk& quick_disk();

// Rank by rank in this process: prepare, write, commit; abandons after an Error, as the caller must.
Result<void> save(const Model& model, const checkpoint::SavePlan& plan,
                  checkpoint::Disk& disk = quick_disk());
// The same with elements and a run of one's own.
using Elements = std::function<std::vector<std::byte>(std::size_t tensor, checkpoint::StateKind,
                                                      const shard::Range&)>;
Result<void> save(const Model& model, const checkpoint::SavePlan& plan,
                  const checkpoint::RunState& run, const Elements& elements,
                  checkpoint::Disk& disk = quick_disk());

// Whole files, without their names.
std::string file_text(const std::string& path);
void overwrite(const std::string& path, const std::string& bytes);
std::vector<std::string> names_in(const std::string& folder);  // sorted

}  // namespace plimsoll::test
