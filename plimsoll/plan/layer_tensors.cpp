#include "plimsoll/plan/layer_tensors.hpp"

#include <algorithm>
#include <set>

#include "plimsoll/plan/walk.hpp"

namespace plimsoll::plan {
namespace {

using network::SavedRecord;
using timeline::Tag;

constexpr const char* kLayer = "1";  // index of the layer that is shown

// "model.layers.1.mlp" has the component "1".
bool has_component(const std::string& label, const std::string& component) {
  const std::string dotted = "." + label + ".";
  return dotted.find("." + component + ".") != std::string::npos;
}

// A checkpoint keeps its input before the region's first operation runs.
bool is_region_input(const network::Network& network, const SavedRecord& record) {
  constexpr std::size_t kRegion = 1;
  return network.regions.size() > kRegion &&
         record.operation == operation_id(network.regions[kRegion].first) - 1;
}

bool belongs(const network::Network& network, const SavedRecord& record) {
  if (is_region_input(network, record)) return true;
  if (record.operation == 0 || record.operation > network.operations.size()) return false;
  const network::Operation& op = network.operations[record.operation - 1];
  return has_component(network.labels[op.label], kLayer);
}

bool is_activation(const SavedRecord& record) {
  return record.block != 0 && record.tag != Tag::kParameters && record.tag != Tag::kBuffers &&
         record.tag != Tag::kInputs;
}

}  // namespace

std::vector<LayerTensor> layer_tensors(const network::NetworkSpec& spec, const Job& job) {
  network::NetworkSpec two = spec;
  two.layers = 2;
  const network::Network network = network::build_network(two, job.build_options());
  WalkOptions options;
  options.steps = 1;
  options.keep_ledger = true;
  timeline::PeakSink sink;
  const WalkResult result = walk(network, job, options, sink);
  std::vector<LayerTensor> tensors;
  std::set<timeline::BlockId> seen;
  for (const SavedRecord& record : result.ledger) {
    if (!is_activation(record)) continue;
    const bool first = seen.insert(record.block).second;
    if (first && belongs(network, record)) {
      tensors.push_back({record.node, record.shape, record.dtype, record.storage_bytes});
    }
  }
  return tensors;
}

double layer_copies(const std::vector<LayerTensor>& tensors, const network::NetworkSpec& spec,
                    const Job& job) {
  double bytes = 0;
  for (const LayerTensor& tensor : tensors) bytes += static_cast<double>(tensor.bytes);
  return bytes / (static_cast<double>(job.batch) * static_cast<double>(job.sequence) *
                  static_cast<double>(spec.width) *
                  static_cast<double>(network::size_of(job.recipe().compute)));
}

}  // namespace plimsoll::plan
