// The memory notebook's models, jobs and closed forms, from tests/truth/notebook.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/units.hpp"
#include "plimsoll/plan/closed_form.hpp"

#include "tests/golden/truth_run.hpp"

namespace plimsoll::test {

inline const nlohmann::json& notebook() {
  static const nlohmann::json file = truth("notebook.json");
  return file;
}

// A row's keys over those of the table it is part of.
inline nlohmann::json merged(nlohmann::json table, const nlohmann::json& row) {
  table.update(row);
  return table;
}

// {"d": 128, "L": 4, "V": 1000, "s": 64}; the models that the notebook ran have 4 heads.
inline network::NetworkSpec notebook_model(const nlohmann::json& row, int heads = 4) {
  const auto number = [&](const char* key) { return row.at(key).get<std::int64_t>(); };
  return inline_model(fmt::format("minigpt:d={},L={},V={},s={},heads={}", number("d"), number("L"),
                                  number("V"), number("s"), heads));
}

// fp32 on CUDA, the library's choice of attention (memory-efficient), Python's AdamW.
inline plan::Job notebook_job(std::int64_t batch, std::int64_t sequence) {
  plan::Job job;
  job.batch = batch;
  job.sequence = sequence;
  job.backend = network::Backend::kCuda;
  job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
  return job;
}

inline double notebook_coefficient(const network::NetworkSpec& spec) {
  return plan::activation_coefficient(spec, spec.positions, network::DType::kFloat32,
                                      network::Backend::kCuda);
}

// c of the model that the notebook measured.
inline double measured_coefficient() {
  return notebook_coefficient(notebook_model(notebook().at("affine_in_batch")));
}

// Bytes that hooks see, every tensor counted where it is saved.
inline std::int64_t as_saved(const network::NetworkSpec& spec, std::int64_t batch) {
  return Run(spec, notebook_job(batch, spec.positions)).ledger().as_saved.bytes;
}

// Elements of one term of the closed parameter count.
inline std::int64_t term(const network::NetworkSpec& spec, const std::string& name) {
  for (const network::ParameterTerm& t : network::parameter_terms(spec)) {
    if (t.name == name) return t.count;
  }
  FAIL(name);
  return 0;
}

inline std::int64_t parameter_count(const network::NetworkSpec& spec) {
  return network::build_network(spec, notebook_job(1, spec.positions).build_options())
      .parameter_elements();
}

inline plan::ClosedFormPosts closed_form(const nlohmann::json& size, double c, std::int64_t batch) {
  const network::NetworkSpec spec = notebook_model(size);
  return plan::closed_form_posts(parameter_count(spec), c, batch, spec.positions, spec.width,
                                 spec.layers);
}

inline std::optional<std::int64_t> largest_batch(const nlohmann::json& size, double gibibytes,
                                                 bool count_A0) {
  const network::NetworkSpec spec = notebook_model(size);
  return plan::closed_form_largest_batch(gibibytes * static_cast<double>(kGiB),
                                         parameter_count(spec), measured_coefficient(),
                                         spec.positions, spec.width, spec.layers, count_A0);
}

// null: does not fit.
inline nlohmann::json as_json(std::optional<std::int64_t> batch) {
  return batch ? nlohmann::json(*batch) : nlohmann::json();
}

inline std::string printed(double value, int decimals) {
  return fmt::format("{:.{}f}", value, decimals);
}
inline std::string mib(double bytes, int decimals) {
  return printed(bytes / static_cast<double>(kMiB), decimals) + " MiB";
}
inline std::string gib(double bytes) {
  return printed(bytes / static_cast<double>(kGiB), 2) + " GiB";
}
// As the notebook prints: one decimal below 1 GiB, two above.
inline std::string gib_or_mib(double bytes) {
  return bytes < static_cast<double>(kGiB) ? mib(bytes, 1) : gib(bytes);
}

}  // namespace plimsoll::test
