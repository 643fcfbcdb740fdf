#include "plimsoll/report/doctor.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

std::string engine_text(const Doctor& d) {
  if (!d.engine) return "not in this build";
  return fmt::format("libtorch {}, {}", d.libtorch.value_or("of unknown version"),
                     d.cuda_backend ? "CPU and CUDA" : "CPU");
}

std::string ranks_text(const Doctor& d) {
  if (!d.engine) return "planned, not run";
  return std::string("processes of this host (--ranks R)") +
         (d.mpi ? ", or of mpirun" : "; no MPI in this build");
}

std::string facts_text(const Doctor& d) {
  std::string text = fmt::format("of libtorch {} on the CPU", d.known_libtorch);
  if (!d.engine) return text + "; nothing here to compare them with";
  return text + (d.facts_apply ? ": they apply" : ": they may be off for this version");
}

std::string memory_text(const Doctor& d) {
  if (!d.memory_total) return "unknown";
  const std::string total = human(Bytes{*d.memory_total});
  if (!d.memory_available) return total;
  return fmt::format("{}, {} of it available", total, human(Bytes{*d.memory_available}));
}

}  // namespace

std::string doctor_text(const Doctor& d, const TextStyle& style) {
  Table table({{"", Align::kLeft}, {"", Align::kWrap}});
  table.row({"planner",
             fmt::format("ready: {} built-in models, config.json of {}, inline minigpt: and cnn:",
                         d.builtin_models, fmt::join(d.model_types, ", "))});
  table.row({"", fmt::format("parameters alone (`params`) of {}",
                             fmt::join(d.counted_model_types, ", "))});
  table.row({"engine", engine_text(d)});
  table.row({"ranks", ranks_text(d)});
  table.row({"byte-exact facts", facts_text(d)});
  table.row({"cores", fmt::format("{}", d.cores)});
  table.row({"memory", memory_text(d)});
  table.row({"threads", d.threads});
  std::string text = bold(fmt::format("plimsoll {}", d.version), style) + "\n" + table.text(style);
  if (d.missing.empty()) return text + "\nNothing is missing.\n";
  text += "\n" + bold("Missing", style) + "\n";
  for (const Missing& missing : d.missing) {
    text += "  - " +
            wrapped(fmt::format("{}. {}", missing.what, missing.how_to_get), 4, 4, style.width) +
            "\n";
  }
  return text;
}

Json doctor_json(const Doctor& d) {
  Json missing = Json::array();
  for (const Missing& m : d.missing) {
    missing.push_back({{"what", m.what}, {"how_to_get", m.how_to_get}});
  }
  Json json;
  json["schema"] = "plimsoll.doctor/1";
  json["version"] = d.version;
  json["planner"] = {{"model_types", d.model_types},
                     {"counted_model_types", d.counted_model_types},
                     {"builtin_models", d.builtin_models}};
  json["engine"] = {{"available", d.engine},
                    {"libtorch", d.libtorch ? Json(*d.libtorch) : Json(nullptr)},
                    {"cuda", d.cuda_backend},
                    {"mpi", d.mpi},
                    {"known_libtorch", d.known_libtorch},
                    {"facts_apply", d.facts_apply}};
  json["machine"] = {{"cores", d.cores},
                     {"memory_total", number_or_null(d.memory_total)},
                     {"memory_available", number_or_null(d.memory_available)},
                     {"threads", d.threads}};
  json["missing"] = std::move(missing);
  return json;
}

}  // namespace plimsoll::report
