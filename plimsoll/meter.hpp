// Memory of training steps of your own torch::nn::Module, byte by byte.
//
// Measure a real step:
//   plimsoll::Meter meter;
//   { plimsoll::PhaseScope phase(meter, {plimsoll::Phase::kForward}); loss = model->forward(x); }
//   { plimsoll::PhaseScope phase(meter, {plimsoll::Phase::kBackward}); loss.backward(); }
//   const plimsoll::Timeline timeline = meter.finish();
//
// Foresee a step that does not fit this machine, in milliseconds and without memory:
//   auto model = plimsoll::on_meta([&] { return Decoder(shape); });
//   const plimsoll::Timeline timeline = plimsoll::dry_run(model, ids);
//
// Read either one:
//   for (const auto& phase : plimsoll::timeline::phase_figures(timeline)) ...  start, end, peak
//   plimsoll::timeline::find_peak(timeline).bytes                              the highest instant
//   timeline.events                                                            everything
//
// At one thread the two agree event by event for the operations that tests/engine/dry_test.cpp
// lists. Manuals: engine/meter/meter.hpp (what is counted), engine/dry/dry_run.hpp,
// engine/dry/meta_mode.hpp (what a dry run reproduces), timeline/timeline.hpp.
#pragma once

#include "plimsoll/engine/dry/dry_run.hpp"
#include "plimsoll/engine/meter/meter.hpp"
#include "plimsoll/timeline/timeline.hpp"

namespace plimsoll {

using engine::dry_run;
using engine::dry_run_with_loss;
using engine::Flavour;
using engine::MetaMode;
using engine::Meter;
using engine::on_meta;
using engine::PhaseScope;
using engine::retag;
using engine::TagScope;
using timeline::Phase;
using timeline::Tag;
using timeline::Timeline;

}  // namespace plimsoll
