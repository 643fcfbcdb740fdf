#include "plimsoll/plan/fit/fit_report.hpp"

#include <tuple>

namespace plimsoll::plan {
namespace {

std::vector<Checkpoint> policies(const network::NetworkSpec& spec) {
  if (spec.family == network::Family::kCnn) return {Checkpoint::kNone};
  return {Checkpoint::kNone, Checkpoint::kMatmuls, Checkpoint::kBlock};
}

// One rank has nothing to divide.
int last_stage(const Job& job) { return job.sharded() ? 3 : 0; }

std::vector<FitOption> options_of(NeedSearch& search, const Job& job, const Need& given) {
  std::vector<FitOption> options;
  for (int stage = 0; stage <= last_stage(job); ++stage) {
    for (const Checkpoint checkpoint : policies(search.spec())) {
      Job other = job;
      other.stage = static_cast<shard::Stage>(stage);
      other.checkpoint = checkpoint;
      const std::optional<Need> need = search.of(other);
      if (!need) continue;
      options.push_back({other.stage, checkpoint, *need, need->flops / given.flops,
                         largest_batch(search, other)});
    }
  }
  return options;
}

std::optional<std::size_t> best_of(const std::vector<FitOption>& options) {
  const auto key = [](const FitOption& option) {
    return std::tuple(option.need.flops, option.need.traffic, option.need.bytes);
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (!options[i].need.fits) continue;
    if (!best || key(options[i]) < key(options[*best])) best = i;
  }
  return best;
}

FitReport report_of(const network::NetworkSpec& spec, const Job& job) {
  const network::Network network = network::build_network(spec, job.build_options());
  NeedSearch search(spec);
  FitReport report;
  report.spec = spec;
  report.job = job;
  report.parameters = network.parameter_count();
  report.fit = make_fit(search, job);
  report.closed_form = closed_form_largest(spec, job, report.parameters);
  report.longest_sequence = longest_sequence(search, job);
  report.fewest_ranks = fewest_ranks(search, job);
  report.options = options_of(search, job, report.fit.need);
  report.best = best_of(report.options);
  return report;
}

}  // namespace

Result<FitReport> make_fit_report(const network::NetworkSpec& spec, const Job& job) {
  if (auto ok = network::validate(spec); !ok) return tl::unexpected(ok.error());
  if (auto ok = validate(job, spec); !ok) return tl::unexpected(ok.error());
  if (!job.device) {
    return fail("--device", "no device, expected a name of `plimsoll devices` or a size",
                "--device h100-80g, or --device 24GiB");
  }
  try {
    return report_of(spec, job);
  } catch (const OverflowError& overflow) {
    return fail("fit", overflow.what(),
                "the sizes of the model, the batch or the sequence are beyond any machine");
  }
}

}  // namespace plimsoll::plan
