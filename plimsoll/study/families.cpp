// Saved tensors by shape, at one and two times the batch.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/engine/run/library_calls.hpp"
#include "plimsoll/engine/run/saved_tensors.hpp"
#include "plimsoll/plan/ledger.hpp"
#include "plimsoll/study/runs.hpp"
#include "plimsoll/study/studies.hpp"

namespace plimsoll::study {
namespace {

// Shape, dtype, parameter or not: what names a family.
using FamilyKey = std::tuple<std::string, std::string, bool>;

using BytesByFamily = std::map<FamilyKey, std::int64_t>;

// libtorch's dtype in the words of the calculation; its own where that has none.
std::string dtype_name(at::ScalarType type) {
  for (auto known : {network::DType::kBool, network::DType::kUInt8, network::DType::kInt64,
                     network::DType::kFloat16, network::DType::kBFloat16, network::DType::kFloat32,
                     network::DType::kFloat64}) {
    if (engine::scalar_type(known) == type) return std::string(network::name(known));
  }
  return c10::toString(type);
}

bool is_model_state(timeline::Tag tag) {
  return tag == timeline::Tag::kParameters || tag == timeline::Tag::kBuffers;
}

BytesByFamily measured_families(const network::Network& net, const plan::Job& job) {
  BytesByFamily bytes;
  for (const engine::SavedTensor& s : engine::saved_tensors(net, job, at::kCPU).tensors) {
    network::Dims shape;
    for (std::int64_t d : s.shape) shape.push_back(d);
    bytes[{to_text(shape), dtype_name(s.dtype), is_model_state(s.tag)}] += s.bytes;
  }
  return bytes;
}

FamilyKey key_of(const plan::ShapeFamily& family) {
  return {to_text(family.shape), std::string(network::name(family.dtype)), family.parameters};
}

// The same family at twice the batch: the batch dimension, or rows made of it, doubled.
bool doubles_into(const network::Dims& shape, const network::Dims& doubled) {
  if (shape.size() != doubled.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (doubled[i] == shape[i]) continue;
    network::Dims grown = shape;
    grown[i] *= 2;
    return grown == doubled;
  }
  return false;
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

// One batch: what is calculated, and what a run saved, if it ran.
struct Column {
  std::vector<plan::ShapeFamily> calculated;
  std::optional<BytesByFamily> measured;

  std::optional<std::int64_t> measured_bytes(const plan::ShapeFamily& family) const {
    if (!measured) return std::nullopt;
    const auto found = measured->find(key_of(family));
    return found == measured->end() ? 0 : found->second;
  }
};

Column column_of(const network::NetworkSpec& spec, const plan::Job& job) {
  const network::Network net = network_of(spec, job);
  Column column;
  column.calculated = plan::shape_families(calculated_records(net, job));
  if (!no_measurement(job)) column.measured = measured_families(net, job);
  return column;
}

// The family that `family` becomes at twice the batch; itself when it does not grow.
const plan::ShapeFamily& grown(const plan::ShapeFamily& family,
                               const std::vector<plan::ShapeFamily>& doubled) {
  if (family.parameters) return family;
  const auto found =
      std::find_if(doubled.rbegin(), doubled.rend(), [&](const plan::ShapeFamily& other) {
        return other.dtype == family.dtype && !other.parameters &&
               doubles_into(family.shape, other.shape);
      });
  return found == doubled.rend() ? family : *found;
}

// What only the run saved: nothing is dropped because the calculation does not know it.
void add_unforeseen(const Column& column, report::FamiliesReport& report) {
  if (!column.measured) return;
  std::set<FamilyKey> foreseen;
  for (const plan::ShapeFamily& family : column.calculated) foreseen.insert(key_of(family));
  for (const auto& [key, bytes] : *column.measured) {
    if (foreseen.contains(key)) continue;
    report::FamilyRow row;
    std::tie(row.shape, row.dtype, std::ignore) = key;
    row.measured = bytes;
    report.rows.push_back(std::move(row));
  }
}

report::FamiliesReport families_report(const network::NetworkSpec& spec, const plan::Job& job) {
  const Column once = column_of(spec, job);
  const Column twice = column_of(spec, with_batch(job, 2 * job.batch));
  report::FamiliesReport report;
  report.batch = job.batch;
  report.collisions = collisions(spec, job);
  report.measured_reason = no_measurement(job).value_or("");
  for (const plan::ShapeFamily& family : once.calculated) {
    const plan::ShapeFamily& later = grown(family, twice.calculated);
    report::FamilyRow row;
    row.shape = to_text(family.shape);
    row.dtype = network::name(family.dtype);
    row.saved_by = family.saved_by;
    row.calculated = family.bytes;
    row.calculated_doubled = later.bytes;
    row.measured = once.measured_bytes(family);
    row.measured_doubled = twice.measured_bytes(later);
    if (family.parameters) report.parameter_bytes += family.bytes;
    report.rows.push_back(std::move(row));
  }
  add_unforeseen(once, report);
  return report;
}

}  // namespace

Result<report::FamiliesReport> families(const network::NetworkSpec& spec, const plan::Job& job,
                                        const Options&, Progress& progress) {
  if (job.checkpoint != network::Checkpoint::kNone) {
    return fail("--families", "families are saved tensors, and a checkpointed region saves none",
                "use --checkpoint none");
  }
  return guarded<report::FamiliesReport>([&] {
    prepare_library(job);
    progress.update("families at one and two times the batch");
    return families_report(spec, job);
  });
}

}  // namespace plimsoll::study
