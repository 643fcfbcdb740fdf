// The two GPTs that training is measured on, for us and for peers/peer_train.py: the same closed-form
// weights, tokens and AdamW.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/engine/closed_form_run.hpp"

namespace plimsoll::bench {

struct Shape {
  std::string_view name;
  int layers, dim, heads, vocabulary, sequence, batch;  // batch: of one rank
  std::size_t pairs;                                    // of steps in one process
  std::size_t sharded_pairs;  // of steps on ranks, for each of four matchups
};
inline constexpr Shape kGpt10M{"GPT 10M", 6, 384, 6, 256, 256, 4, 41, 31};
inline constexpr Shape kGpt124M{"GPT 124M", 12, 768, 12, 50304, 256, 1, 25, 9};

// What tests::ClosedFormRun needs; `batch` of all ranks together.
nlohmann::json config_of(const Shape& shape, int batch);
// What peer_train.py needs; `mode` is its --mode.
std::vector<std::string> peer_arguments(const Shape& shape, const std::string& mode);

// The highest bytes of this process during one more step, everything that was alive before included.
std::int64_t metered_peak(tests::ClosedFormRun& run);
// Both start from the same weights and tokens, so their first losses must be the same; throws otherwise.
void check_loss(double ours, const nlohmann::json& peer);

}  // namespace plimsoll::bench
