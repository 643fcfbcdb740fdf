// One calculated run in the shape in which tests/truth records measured ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/plan/walk.hpp"

#include "tests/unit/truth_files.hpp"

namespace plimsoll::test {

inline network::NetworkSpec inline_model(const std::string& text) {
  auto spec = formats::read_inline_model(text);
  REQUIRE_MESSAGE(spec.has_value(), text);
  return *spec;
}

// Current bytes at the borders of a stretch of the run, and the highest between them.
struct Span {
  std::int64_t start = 0;
  std::int64_t peak = 0;
  std::int64_t end = 0;
  bool operator==(const Span&) const = default;
};

inline doctest::String toString(const Span& s) {
  return doctest::toString("start " + std::to_string(s.start) + ", peak " + std::to_string(s.peak) +
                           ", end " + std::to_string(s.end));
}

inline Span span_of(const nlohmann::json& phase) {
  return {phase.at("start"), phase.at("peak"), phase.at("end")};
}

// Two steps of a job, as the recorder of truth/hf saw them: 0 bytes = model and inputs exist; forward
// with the loss is one phase; the logits are dropped before backward, the loss before the optimizer.
class Run {
 public:
  Run(const network::NetworkSpec& spec, const plan::Job& job)
      : loss_bytes_(network::size_of(job.recipe().loss)) {
    const network::Network net = network::build_network(spec, job.build_options());
    for (const network::Operation& op : net.operations) layers_.push_back(op.layer);
    plan::WalkOptions options;
    options.keep_ledger = true;
    timeline::PeakSink sink;
    result_ = plan::walk(net, job, options, sink);
    phases_ = sink.phases();
    ledger_ = plan::count_ledger(result_.ledger);
  }

  const std::vector<network::SavedRecord>& saved() const { return result_.ledger; }
  const plan::Ledger& ledger() const { return ledger_; }
  const plan::PassFlops& flops() const { return result_.flops; }

  // Distinct storages that hooks see, inputs and random states not counted: bytes by the layer whose
  // operation saved a storage first, everything else last.
  std::vector<std::int64_t> saved_by_layer(std::int64_t layers) const {
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(layers) + 1);
    for (const network::SavedRecord* r : distinct_saves()) {
      const std::int32_t layer = r->operation == 0 ? -1 : layers_.at(r->operation - 1);
      bytes[static_cast<std::size_t>(layer < 0 ? layers : layer)] += r->storage_bytes;
    }
    return bytes;
  }
  std::int64_t saved_storages() const { return static_cast<std::int64_t>(distinct_saves().size()); }

  // Alive after forward when only the loss is kept.
  std::int64_t retained() const { return of(timeline::Phase::kBackward, 0).start - base(); }

  // "zero_0", "fwd_0", "delout_0", "bwd_0", "delloss_0", "step_0", "zero_1", ...
  Span measured_phase(const std::string& name) const {
    using timeline::Phase;
    const std::size_t line = name.find('_');
    const std::string_view what = std::string_view(name).substr(0, line);
    const std::int32_t step = std::stoi(name.substr(line + 1));
    const timeline::PhaseFigures loss = of(Phase::kLoss, step);
    const timeline::PhaseFigures backward = of(Phase::kBackward, step);
    if (what == "zero") return relative(of(Phase::kZeroGrad, step), 0);
    if (what == "bwd") return relative(backward, 0);
    if (what == "step") return relative(of(Phase::kOptimizer, step), loss_bytes_);
    if (what == "delout") return relative({{}, loss.end, backward.start, loss.end}, 0);
    if (what == "delloss") {
      return relative({{}, backward.end, backward.end - loss_bytes_, backward.end}, 0);
    }
    REQUIRE(what == "fwd");
    timeline::PhaseFigures forward = of(Phase::kForward, step);
    return relative({{}, forward.start, loss.end, std::max(forward.peak, loss.peak)}, 0);
  }

 private:
  std::vector<const network::SavedRecord*> distinct_saves() const {
    std::vector<const network::SavedRecord*> result;
    std::set<timeline::BlockId> seen;
    for (const network::SavedRecord& r : result_.ledger) {
      const bool own = r.tag != timeline::Tag::kParameters && r.tag != timeline::Tag::kBuffers &&
                       r.tag != timeline::Tag::kInputs && r.dtype != network::DType::kUInt8;
      if (own && r.block != 0 && seen.insert(r.block).second) result.push_back(&r);
    }
    return result;
  }

  timeline::PhaseFigures of(timeline::Phase phase, std::int32_t step) const {
    for (const timeline::PhaseFigures& f : phases_) {
      if (f.key.phase == phase && f.key.step == step) return f;
    }
    FAIL("no such phase");
    return {};
  }
  std::int64_t base() const { return of(timeline::Phase::kModel, 0).end; }
  Span relative(const timeline::PhaseFigures& f, std::int64_t gone) const {
    const std::int64_t zero = base() + gone;
    return {f.start - zero, f.peak - zero, f.end - zero};
  }

  std::int64_t loss_bytes_;
  plan::WalkResult result_;
  plan::Ledger ledger_;
  std::vector<std::int32_t> layers_;  // by operation: its layer, or -1
  std::vector<timeline::PhaseFigures> phases_;
};

// Bytes of a variant's logits, from their shape and dtype.
inline std::int64_t logits_bytes(const nlohmann::json& variant) {
  const nlohmann::json& logits = variant.at("logits");
  const auto dtype = network::parse_dtype(logits.at("dtype").get<std::string>());
  REQUIRE(dtype.has_value());
  std::int64_t bytes = network::size_of(*dtype);
  for (const nlohmann::json& size : logits.at("shape")) bytes *= size.get<std::int64_t>();
  return bytes;
}

// Every phase of a measured timeline, or those whose names begin with one of `names`.
inline void check_phases(const Run& run, const nlohmann::json& timeline,
                         const std::vector<std::string>& names = {""}) {
  for (const auto& [name, phase] : timeline.at("phases").items()) {
    const bool wanted = std::any_of(names.begin(), names.end(), [&, full = name](const auto& n) {
      return full.compare(0, n.size(), n) == 0;
    });
    if (!wanted) continue;
    CAPTURE(name);
    CHECK(run.measured_phase(name) == span_of(phase));
  }
}

}  // namespace plimsoll::test
