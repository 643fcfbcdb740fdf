#include "plimsoll/plan/semantics.hpp"

#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan {
namespace {

SemanticsFigures figures_of(const network::NetworkSpec& spec, const Job& job) {
  const network::Network network = network::build_network(spec, job.build_options());
  timeline::PeakSink sink;
  const WalkResult result =
      walk(network, job, {.steps = 1, .warm = true, .keep_ledger = true}, sink);
  network::FlopCount flops = result.flops.forward;
  flops += result.flops.backward;
  flops += result.flops.recompute;
  return {sink.peak(0).bytes, count_ledger(result.ledger).distinct.bytes, flops.total_full()};
}

}  // namespace

HuggingFace hugging_face_of(const network::NetworkSpec& spec, const Job& job) {
  if (job.semantics == Semantics::kHuggingFace) {
    return {std::nullopt, "this plan is in transformers' operations itself"};
  }
  Job other = job;
  other.semantics = Semantics::kHuggingFace;
  if (const auto valid = validate(other, spec); !valid) return {std::nullopt, valid.error().what};
  try {
    return {figures_of(spec, other), ""};
  } catch (const OverflowError& overflow) {
    return {std::nullopt, overflow.what()};
  }
}

}  // namespace plimsoll::plan
