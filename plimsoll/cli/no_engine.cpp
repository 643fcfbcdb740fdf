// Builds without libtorch: what needs the engine says what is missing and how to get it.
#include "plimsoll/cli/engine_info.hpp"
#include "plimsoll/cli/measure.hpp"

namespace plimsoll::cli {
namespace {

const char* const kMissing = "the engine is not in this build, which plans only";
const char* const kHowToGet =
    "`./run plimsoll measure ...` installs libtorch and builds it; by hand: cmake --preset ci with "
    "PLIMSOLL_LIBTORCH=/path/to/torch";

tl::unexpected<Error> missing() {
  return fail("measure", kMissing, kHowToGet, ExitCode::kEnvironment);
}

}  // namespace

EngineInfo engine_info() {
  EngineInfo info;
  info.missing = report::Missing{
      "measure: the engine needs libtorch, and this build was made without it", kHowToGet};
  return info;
}

Result<report::Reconciliation> reconcile(const network::NetworkSpec&, const plan::Job&,
                                         const MeasureOptions&, Progress&) {
  return missing();
}

Result<report::AffineFit> measure_fit_batch(const network::NetworkSpec&, const plan::Job&,
                                            const MeasureOptions&, Progress&) {
  return missing();
}

Result<report::FamiliesReport> measure_families(const network::NetworkSpec&, const plan::Job&,
                                                const MeasureOptions&, Progress&) {
  return missing();
}

Result<report::SweepReport> measure_sweep(const network::NetworkSpec&, const plan::Job&,
                                          const MeasureOptions&, Progress&) {
  return missing();
}

Result<report::BisectReport> measure_bisect(const network::NetworkSpec&, const plan::Job&,
                                            const MeasureOptions&, Progress&) {
  return missing();
}

}  // namespace plimsoll::cli
