// The walk of a network whose equal layers are left out [Note: folding].
#pragma once

#include <optional>

#include "plimsoll/plan/fold/folded_network.hpp"
#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan::fold {

// Pushes the events of the whole network's walk up to the end of its last phase, in their order, and returns
// its FLOPs and traffic; only the numbers of blocks may be others. None, and nothing pushed, when the events
// are not periodic, or something is sized by the whole model (a snapshot). `job` has the build options that
// `folded` was made for. Not with keep_ledger, nor with a `repeats` that asks `sink`, which sees no event
// before the short walk is over.
std::optional<WalkResult> walk(const FoldedNetwork& folded, const Job& job,
                               const WalkOptions& options, timeline::Sink& sink);

}  // namespace plimsoll::plan::fold
