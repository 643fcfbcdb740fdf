// Plans a step with the installed library.
#include <cstdio>

#include <plimsoll/formats/model_source.hpp>
#include <plimsoll/plan/plan.hpp>

int main() {
  const auto spec = plimsoll::formats::load_model("gpt2");
  if (!spec) return 1;
  plimsoll::plan::Job job;
  job.sequence = 1024;
  const auto plan = plimsoll::plan::make_plan(*spec, job);
  if (!plan) return 1;
  std::printf("%lld parameters\n", static_cast<long long>(plan->parameters.all));
}
