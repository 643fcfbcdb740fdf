// plimsoll doctor: what this build and this machine have, what they lack, how to get it.
#include "plimsoll/report/doctor.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/engine_info.hpp"
#include "plimsoll/cli/machine.hpp"
#include "plimsoll/cli/version.hpp"
#include "plimsoll/formats/builtin_models.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/formats/inventory/inventory.hpp"
#include "plimsoll/network/library_facts.hpp"

namespace plimsoll::cli {
namespace {

// "2.13.0+cpu" and "2.13.0" behave alike.
std::string_view without_build(std::string_view version) {
  return version.substr(0, version.find('+'));
}

std::string threads_text(const EngineInfo& engine) {
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const std::string by = asked == nullptr || *asked == '\0'
                             ? "OMP_NUM_THREADS is not set"
                             : fmt::format("OMP_NUM_THREADS={}", asked);
  if (!engine.threads) return by;
  return fmt::format("{} ({})", *engine.threads, by);
}

void add_engine(report::Doctor& doctor) {
  const EngineInfo engine = engine_info();
  doctor.engine = engine.available;
  doctor.libtorch = engine.libtorch;
  doctor.cuda_backend = engine.cuda;
  doctor.mpi = engine.mpi;
  doctor.known_libtorch = network::kKnownLibtorch;
  doctor.facts_apply = engine.libtorch && without_build(*engine.libtorch) == doctor.known_libtorch;
  doctor.threads = threads_text(engine);
  if (engine.missing) doctor.missing.push_back(*engine.missing);
  if (engine.available && !doctor.facts_apply) {
    doctor.missing.push_back(
        {fmt::format("libtorch {}: byte-exact agreement was verified with that version alone",
                     doctor.known_libtorch),
         "tools/requirements.txt names it; `./run test` installs it"});
  }
}

Result<Output> run_doctor(const Given& given, const TextStyle& style) {
  report::Doctor doctor;
  doctor.version = version();
  doctor.model_types = formats::planned_model_types();
  for (const std::string& type : formats::counted_model_types()) {
    const auto& planned = doctor.model_types;
    if (std::find(planned.begin(), planned.end(), type) != planned.end()) continue;
    doctor.counted_model_types.push_back(type);
  }
  doctor.builtin_models = static_cast<std::int64_t>(formats::builtin_models().size());
  add_engine(doctor);
  const Machine machine = this_machine();
  doctor.cores = machine.cores;
  doctor.memory_total = machine.memory_total;
  doctor.memory_available = machine.memory_available;
  if (given.has("--json")) return Output{report::json_text(report::doctor_json(doctor))};
  return Output{report::doctor_text(doctor, style)};
}

}  // namespace

Command doctor_command() {
  return {{"doctor",
           "what this build and this machine have and lack",
           "",
           {{"--json", "", "JSON of schema plimsoll.doctor/1"}}},
          run_doctor};
}

}  // namespace plimsoll::cli
