#include "plimsoll/plan/adaptation.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll::plan {
namespace {

using network::Matrix;

Result<void> validate_lora(const network::Lora& lora, const network::NetworkSpec& spec) {
  const std::vector<Matrix> known = network::matrices_of(spec);
  if (known.empty()) {
    return fail("--lora", fmt::format("{} has no matrices with adapters, expected no --lora",
                                      name(spec.family)));
  }
  if (lora.rank < 1 || lora.rank > spec.width) {
    return fail("--lora",
                fmt::format("rank={}, expected 1 to the width {}", lora.rank, spec.width));
  }
  for (Matrix target : lora.targets) {
    if (std::find(known.begin(), known.end(), target) != known.end()) continue;
    std::vector<std::string_view> names;
    for (Matrix matrix : known) names.push_back(name(matrix));
    return fail("--lora", fmt::format("targets={} is not a matrix of {}, expected {}", name(target),
                                      spec.title, fmt::join(names, ", ")));
  }
  return {};
}

Result<void> validate_freeze(const network::Network& network, const Job& job) {
  for (const network::FreezeRule& rule : job.freeze) {
    const auto matched = [&](const network::Parameter& p) {
      return network::matches(rule, p, network.labels.at(p.label));
    };
    if (std::any_of(network.parameters.begin(), network.parameters.end(), matched)) continue;
    return fail("--freeze", fmt::format("'{}' matches no parameter of the model", rule.text),
                fmt::format("its first parameter is {}; * stands for any characters",
                            network.parameters.front().name));
  }
  if (network.parameter_count().trainable > 0) return {};
  return fail(job.freeze.empty() ? "--lora" : "--freeze",
              "every parameter is frozen, expected some that learn");
}

}  // namespace

Result<void> validate_adaptation(const Job& job, const network::NetworkSpec& spec) {
  if (job.lora) {
    if (auto ok = validate_lora(*job.lora, spec); !ok) return ok;
  }
  if (!job.adapts()) return {};
  network::BuildOptions options = job.build_options();
  options.batch = 1;
  options.sequence = 1;  // parameters are the same
  options.loss_chunks = 1;
  return validate_freeze(network::build_network(spec, options), job);
}

}  // namespace plimsoll::plan
