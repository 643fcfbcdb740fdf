#include "plimsoll/plan/fold/folded_walk.hpp"

#include "plimsoll/plan/fold/unfold.hpp"

namespace plimsoll::plan::fold {
namespace {

// What is let go behind the last phase follows no order of layers.
void drop_the_end(timeline::Timeline& timeline) {
  auto& events = timeline.events;
  while (!events.empty() && events.back().kind != timeline::EventKind::kEndPhase) {
    events.pop_back();
  }
}

}  // namespace

std::optional<WalkResult> walk(const FoldedNetwork& folded, const Job& job,
                               const WalkOptions& options, timeline::Sink& sink) {
  check(!options.keep_ledger, "a folded walk has no ledger");
  if (job.snapshot) return std::nullopt;  // one block, sized by the whole model
  timeline::Recorder recorder;
  WalkOptions brief = options;
  brief.weights = &folded.weights();
  WalkResult result = plan::walk(folded.network(), job, brief, recorder);
  drop_the_end(recorder.timeline());
  const auto unfolding = Unfolding::of(folded, recorder.timeline());
  if (!unfolding) return std::nullopt;
  unfolding->push_into(sink);
  return result;
}

}  // namespace plimsoll::plan::fold
