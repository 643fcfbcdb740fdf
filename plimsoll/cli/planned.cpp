#include "plimsoll/cli/planned.hpp"

#include "plimsoll/cli/command_line.hpp"
#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::cli {

Result<plan::Plan> planned(const Given& given, Modes modes) {
  const auto spec = formats::load_model(given.positional);
  if (!spec) return tl::unexpected(spec.error());
  const auto job = make_job(given, *spec, modes);
  if (!job) return tl::unexpected(job.error());
  auto plan = plan::make_plan(*spec, *job);
  if (plan && plan->fit) write_commands(plan->fit->changes, given);
  return plan;
}

}  // namespace plimsoll::cli
