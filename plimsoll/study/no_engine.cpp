// For builds without libtorch: each study says what is missing and how to get it.
#include "plimsoll/study/studies.hpp"

namespace plimsoll::study {
namespace {

tl::unexpected<Error> missing() {
  return fail("measure", "the engine is not in this build, which plans only",
              "`./run plimsoll measure ...` installs libtorch and builds it; by hand: cmake "
              "--preset ci with PLIMSOLL_LIBTORCH=/path/to/torch",
              ExitCode::kEnvironment);
}

}  // namespace

Result<int> on_ranks(std::int32_t, const std::function<int(comm::Communicator&)>&) {
  return missing();
}
bool is_first(const comm::Communicator&) { return true; }

Result<report::Reconciliation> reconcile(const network::NetworkSpec&, const plan::Job&,
                                         const Options&, Progress&) {
  return missing();
}

Result<report::AffineFit> fit_batch(const network::NetworkSpec&, const plan::Job&, const Options&,
                                    Progress&) {
  return missing();
}

Result<report::FamiliesReport> families(const network::NetworkSpec&, const plan::Job&,
                                        const Options&, Progress&) {
  return missing();
}

Result<report::SweepReport> sweep(const network::NetworkSpec&, const plan::Job&, const Options&,
                                  Progress&) {
  return missing();
}

Result<report::BisectReport> bisect(const network::NetworkSpec&, const plan::Job&, const Options&,
                                    Progress&) {
  return missing();
}

}  // namespace plimsoll::study
