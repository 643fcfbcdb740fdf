// Runs that the studies share: preparing the library, failures as Errors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/error.hpp"
#include "plimsoll/base/progress.hpp"
#include "plimsoll/engine/run/recorded_run.hpp"
#include "plimsoll/network/autograd/autograd.hpp"
#include "plimsoll/network/network.hpp"
#include "plimsoll/plan/job.hpp"

namespace plimsoll::study {

// Sets threads and reference kernels [Note: Reference kernels] for the job; others that the user has chosen
// stay.
void prepare_library(const plan::Job& job);

// Why a real run of this job is impossible here, or none.
std::optional<std::string> no_measurement(const plan::Job& job);

// Calls `body`; libtorch's exceptions and lack of memory become Errors of the environment.
template <class T>
Result<T> guarded(const std::function<T()>& body);

network::Network network_of(const network::NetworkSpec& spec, const plan::Job& job);
plan::Job with_batch(plan::Job job, std::int64_t batch);

// What forward saves, calculated.
std::vector<network::SavedRecord> calculated_records(const network::Network& network,
                                                     const plan::Job& job);
// Saved bytes of one forward pass, as_saved: calculated, and of a real run (none when there can be
// none).
std::int64_t calculated_activations(const network::Network& network, const plan::Job& job);
std::optional<std::int64_t> measured_activations(const network::Network& network,
                                                 const plan::Job& job);

// Highest bytes of two steps: calculated and measured.
std::int64_t calculated_peak(const network::Network& network, const plan::Job& job);
std::int64_t measured_peak(const network::Network& network, const plan::Job& job,
                           std::string_view what, Progress& progress);

// A whole run under the meter that tells its steps, as "WHAT, step 1 of 3".
timeline::Timeline told_run(const network::Network& network, const plan::Job& job,
                            engine::RecordOptions options, std::string_view what,
                            Progress& progress);

Error environment_error(const std::string& what);

template <class T>
Result<T> guarded(const std::function<T()>& body) {
  try {
    return body();
  } catch (const OverflowError& error) {
    return fail("measure", error.what());
  } catch (const InternalError&) {
    throw;
  } catch (const std::exception& error) {
    return tl::unexpected<Error>(environment_error(error.what()));
  }
}

}  // namespace plimsoll::study
