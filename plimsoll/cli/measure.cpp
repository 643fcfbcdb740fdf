// plimsoll measure MODEL: calculated, dry-run and measured figures, their differences and causes.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/machine.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/formats/model_source.hpp"
#include "plimsoll/plan/recipe_checks.hpp"
#include "plimsoll/study/studies.hpp"

namespace plimsoll::cli {
namespace {

Result<std::optional<report::SweepAxis>> read_sweep(const Given& given) {
  const std::string* text = given.find("--sweep");
  if (text == nullptr) return std::nullopt;
  for (auto axis : {report::SweepAxis::kSequence, report::SweepAxis::kWidth}) {
    if (*text == report::name(axis)) return axis;
  }
  return fail("--sweep", fmt::format("{}, expected seq or width", in_quotes(*text)));
}

Result<study::Options> read_options(const Given& given) {
  study::Options options;
  options.memory_available = this_machine().memory_available;
  options.fit_batch = given.has("--fit-batch");
  options.families = given.has("--families");
  const auto sweep = read_sweep(given);
  if (!sweep) return tl::unexpected(sweep.error());
  options.sweep = *sweep;
  if (const std::string* text = given.find("--bisect")) {
    const auto bytes = parse_size("--bisect", *text);
    if (!bytes) return tl::unexpected(bytes.error());
    options.bisect_bytes = *bytes;
  }
  if (const std::string* text = given.find("--steps")) {
    const auto steps = parse_whole("--steps", *text, 2, 1000);
    if (!steps) return tl::unexpected(steps.error());
    options.steps = static_cast<std::int32_t>(*steps);
  }
  return options;
}

// Asks the engine for one study and stores what it gives.
class Studies {
 public:
  Studies(report::Measurement& measurement, const study::Options& options, Progress& progress)
      : m_(measurement), options_(options), progress_(progress) {}

  template <class Study, class Target>
  void run(bool wanted, Study study, Target& target) {
    if (!wanted || error_) return;
    auto result = study(m_.spec, m_.job, options_, progress_);
    if (result) {
      target = std::move(*result);
    } else {
      error_ = result.error();
    }
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  report::Measurement& m_;
  const study::Options& options_;
  Progress& progress_;
  std::optional<Error> error_;
};

Result<report::Measurement> measure(network::NetworkSpec spec, plan::Job job,
                                    const study::Options& options, Progress& progress) {
  report::Measurement m;
  m.parameters = network::build_network(spec, job.build_options()).parameter_count();
  m.spec = std::move(spec);
  m.job = std::move(job);
  Studies studies(m, options, progress);
  studies.run(true, study::reconcile, m.reconciliation);
  studies.run(options.fit_batch, study::fit_batch, m.fit_batch);
  studies.run(options.families, study::families, m.families);
  studies.run(options.sweep.has_value(), study::sweep, m.sweep);
  studies.run(options.bisect_bytes.has_value(), study::bisect, m.bisect);
  if (studies.error()) return tl::unexpected<Error>(*studies.error());
  return m;
}

// The engine's program does not start where the working directory is gone (engine_program.cpp).
Result<void> check_working_directory() {
  std::error_code problem;
  const std::filesystem::path here = std::filesystem::current_path(problem);
  if (!here.empty()) return {};
  return fail("measure", "the working directory cannot be found: " + problem.message(),
              "it was probably removed; call plimsoll from another one", ExitCode::kEnvironment);
}

Output output_of(const report::Measurement& measurement, const Given& given,
                 const TextStyle& style) {
  const bool named = report::unnamed_differences(measurement.reconciliation).empty();
  Output output;
  output.code = named ? ExitCode::kOk : ExitCode::kCheckFailed;
  output.text = given.has("--json") ? report::json_text(report::measurement_json(measurement))
                                    : report::measurement_text(measurement, style);
  return output;
}

// One rank's share of the command; the first one speaks for all.
int measure_as_rank(comm::Communicator& world, const network::NetworkSpec& spec,
                    const plan::Job& job, study::Options options, const Given& given,
                    const TextStyle& style) {
  options.world = &world;
  const bool first = study::is_first(world);
  LinePrinter printer(STDERR_FILENO);
  NoProgress silence;
  const auto measurement =
      measure(spec, job, options, first ? static_cast<Progress&>(printer) : silence);
  if (!measurement) throw std::runtime_error(format_error(measurement.error()));
  if (!first) return 0;
  const Output output = output_of(*measurement, given, style);
  std::fputs(output.text.c_str(), stdout);
  return static_cast<int>(output.code);
}

Result<Output> measure_on_ranks(const network::NetworkSpec& spec, const plan::Job& job,
                                const study::Options& options, const Given& given,
                                const TextStyle& style) {
  if (options.fit_batch || options.families || options.sweep || options.bisect_bytes) {
    return fail("--ranks", fmt::format("ranks={} with a study, expected one rank", job.ranks),
                "leave --ranks out: activations are the same on every rank");
  }
  const auto code = study::on_ranks(job.ranks, [&](comm::Communicator& world) {
    return measure_as_rank(world, spec, job, options, given, style);
  });
  if (!code) return tl::unexpected(code.error());
  return Output{"", static_cast<ExitCode>(*code)};
}

Result<Output> run_measure(const Given& given, const TextStyle& style) {
  if (auto ok = check_working_directory(); !ok) return tl::unexpected(ok.error());
  const auto spec = formats::load_model(given.positional);
  if (!spec) return tl::unexpected(spec.error());
  const auto job = make_job(given, *spec);
  if (!job) return tl::unexpected(job.error());
  if (auto ok = plan::validate_runs(*job, "measure"); !ok) return tl::unexpected(ok.error());
  const auto options = read_options(given);
  if (!options) return tl::unexpected(options.error());
  if (job->ranks > 1) return measure_on_ranks(*spec, *job, *options, given, style);
  LinePrinter progress(STDERR_FILENO);
  const auto measurement = measure(*spec, *job, *options, progress);
  if (!measurement) return tl::unexpected(measurement.error());
  return output_of(*measurement, given, style);
}

}  // namespace

Command measure_command() {
  Syntax syntax{"measure", "calculated against dry-run and measured, line by line", "MODEL",
                job_options()};
  const std::string studies = "Studies beside the comparison";
  syntax.options.push_back({"--fit-batch", "", "fit A = A0 + k B over batches", studies});
  syntax.options.push_back(
      {"--families", "", "saved tensors by shape, constant and growing", studies});
  syntax.options.push_back({"--sweep", "AXIS", "A over seq or width", studies});
  syntax.options.push_back(
      {"--bisect", "SIZE", "largest batch of the real run within SIZE (24GiB)", studies});
  syntax.options.push_back({"--steps", "N", "steps of each run (3)"});
  syntax.options.push_back({"--json", "", "JSON of schema plimsoll.measure/1"});
  return {std::move(syntax), run_measure};
}

}  // namespace plimsoll::cli
