#include "bench/gpt_shapes.hpp"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "plimsoll/engine/meter/meter.hpp"

namespace plimsoll::bench {

using nlohmann::json;

json config_of(const Shape& s, int batch) {
  return {{"arch", "gpt"},         {"layers", s.layers},  {"dim", s.dim},
          {"heads", s.heads},      {"kv_heads", s.heads}, {"ffn", 4 * s.dim},
          {"vocab", s.vocabulary}, {"seq", s.sequence},   {"global_batch", batch},
          {"dtype", "fp32"},       {"lr", 3e-4},          {"betas", {0.9, 0.95}},
          {"eps", 1e-8},           {"weight_decay", 0.1}};
}

std::vector<std::string> peer_arguments(const Shape& s, const std::string& mode) {
  return {"--mode",   mode,
          "--paced",  "1",
          "--layers", fmt::format("{}", s.layers),
          "--dim",    fmt::format("{}", s.dim),
          "--heads",  fmt::format("{}", s.heads),
          "--vocab",  fmt::format("{}", s.vocabulary),
          "--seq",    fmt::format("{}", s.sequence),
          "--batch",  fmt::format("{}", s.batch)};
}

std::int64_t metered_peak(tests::ClosedFormRun& run) {
  timeline::PeakSink sink;
  engine::Meter meter(sink);
  meter.begin_phase({timeline::Phase::kForward, 0, 0});
  run.step();
  meter.end_phase();
  return meter.start_bytes() + sink.peak(0).bytes;
}

void check_loss(double ours, const json& peer) {
  const double theirs = peer["losses"][0];
  if (std::abs(ours - theirs) > 1e-5 * theirs) {
    throw std::runtime_error(fmt::format("first loss {} against the peer's {}", ours, theirs));
  }
}

}  // namespace plimsoll::bench
