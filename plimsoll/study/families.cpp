// Saved tensors by shape, at one and two times the batch.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/engine/run/library_calls.hpp"
#include "plimsoll/engine/run/saved_tensors.hpp"
#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/study/family_columns.hpp"
#include "plimsoll/study/runs.hpp"
#include "plimsoll/study/studies.hpp"

namespace plimsoll::study {
namespace {

// libtorch's dtype in the words of the calculation; its own where that has none.
std::string dtype_name(at::ScalarType type) {
  for (auto known : {network::DType::kBool, network::DType::kUInt8, network::DType::kInt64,
                     network::DType::kFloat16, network::DType::kBFloat16, network::DType::kFloat32,
                     network::DType::kFloat64}) {
    if (engine::scalar_type(known) == type) return std::string(network::name(known));
  }
  return c10::toString(type);
}

BytesByFamily measured_families(const network::Network& net, const plan::Job& job) {
  BytesByFamily bytes;
  for (const engine::SavedTensor& s : engine::saved_tensors(net, job, at::kCPU).tensors) {
    network::Dims shape;
    for (std::int64_t d : s.shape) shape.push_back(d);
    bytes[{to_text(shape), dtype_name(s.dtype), plan::is_model_state(s.tag)}] += s.bytes;
  }
  return bytes;
}

// Dimensions that no shape can tell apart, such as a sequence as long as the model is wide.
std::vector<std::string> collisions(const network::NetworkSpec& spec, const plan::Job& job) {
  const std::vector<std::pair<std::string, std::int64_t>> sizes = {
      {"B T", job.batch * std::max<std::int64_t>(job.sequence, 1)},
      {"T", job.sequence},
      {"D", spec.width},
      {"F", spec.feed_forward},
      {"V", spec.vocabulary},
      {"H", spec.head_dim},
      {"N", spec.heads}};
  std::vector<std::string> result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t j = i + 1; j < sizes.size(); ++j) {
      const bool one_row = sizes[i].first == "B T" && sizes[j].first == "T" && job.batch == 1;
      if (sizes[i].second != sizes[j].second || sizes[i].second <= 1 || one_row) continue;
      result.push_back(
          fmt::format("{} = {} = {}", sizes[i].first, sizes[j].first, sizes[i].second));
    }
  }
  return result;
}

FamilyColumn column_of(const network::NetworkSpec& spec, const plan::Job& job) {
  const network::Network net = network_of(spec, job);
  FamilyColumn column;
  column.calculated = plan::shape_families(calculated_records(net, job));
  if (!no_measurement(job)) column.measured = measured_families(net, job);
  return column;
}

report::FamiliesReport families_report(const network::NetworkSpec& spec, const plan::Job& job,
                                       Progress& progress) {
  progress.update("families: once the batch");
  const FamilyColumn once = column_of(spec, job);
  progress.update("families: twice the batch");
  const FamilyColumn twice = column_of(spec, with_batch(job, 2 * job.batch));
  report::FamiliesReport report = compare_families(once, twice);
  report.batch = job.batch;
  report.collisions = collisions(spec, job);
  report.measured_reason = no_measurement(job).value_or("");
  return report;
}

}  // namespace

Result<report::FamiliesReport> families(const network::NetworkSpec& spec, const plan::Job& job,
                                        const Options&, Progress& progress) {
  if (job.recomputes()) {
    return fail("--families", "families are saved tensors, and a checkpointed region saves none",
                "use --checkpoint none and no --loss-chunks");
  }
  return guarded<report::FamiliesReport>([&] {
    prepare_library(job);
    return families_report(spec, job, progress);
  });
}

}  // namespace plimsoll::study
