// Saved tensors in comparable form: the calculated records and the lists in tests/truth/hf.
//
// A save reads "Mm (64, 128) float32 32768 of 98304 activation of group 3". A group is a run of saves
// by nodes of one name, in the order of forward; saves within it are sorted, because the measured
// lists sort a node's tensors by name. An activation names the group that saved its storage first:
// that says which saves share storages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/network/autograd/autograd.hpp"

namespace plimsoll::test {

struct Save {
  std::string node;
  std::string what;     // shape, dtype, bytes, bytes of the storage, whose
  std::string storage;  // key of an activation's storage; "" for parameters, buffers and inputs
};

inline std::vector<std::string> comparable(const std::vector<Save>& saves) {
  std::map<std::string, std::size_t> first_group;
  std::vector<std::vector<std::string>> groups;
  const std::string* node = nullptr;
  for (const Save& save : saves) {
    if (node == nullptr || *node != save.node) groups.emplace_back();
    node = &save.node;
    std::string text = save.node + " " + save.what;
    if (!save.storage.empty()) {
      const auto [found, fresh] = first_group.emplace(save.storage, groups.size() - 1);
      text += fmt::format(" of group {}", found->second);
    }
    groups.back().push_back(text);
  }
  std::vector<std::string> lines;
  for (std::vector<std::string>& group : groups) {
    std::sort(group.begin(), group.end());
    lines.insert(lines.end(), group.begin(), group.end());
  }
  return lines;
}

inline std::string torch_name(network::DType dtype) {
  if (dtype == network::DType::kFloat32) return "float32";
  if (dtype == network::DType::kBFloat16) return "bfloat16";
  return std::string(network::name(dtype));
}

inline const char* whose(timeline::Tag tag) {
  if (tag == timeline::Tag::kParameters) return "parameter";
  if (tag == timeline::Tag::kBuffers) return "buffer";
  return tag == timeline::Tag::kInputs ? "input" : "activation";
}

// "MmBackward0" -> "Mm", and the nodes that plimsoll calls otherwise.
inline std::string node_name(const std::string& torch) {
  static const std::map<std::string, std::string> kOther = {
      {"ScaledDotProductFlashAttentionForCpu", "FlashAttention"},
      {"MaxPool2DWithIndices", "MaxPool2"}};
  const std::string name = torch.substr(0, torch.find("Backward0"));
  const auto found = kOther.find(name);
  return found == kOther.end() ? name : found->second;
}

// `inputs_share`: ids and labels are views of one storage, whose size is not that of either.
inline std::string what_text(const std::string& shape, const std::string& dtype, std::int64_t bytes,
                             std::int64_t storage, const std::string& owner, bool inputs_share) {
  const bool unknown = owner == "input" && inputs_share;
  return fmt::format("{} {} {} of {} {}", shape, dtype, bytes,
                     unknown ? "shared" : std::to_string(storage), owner);
}

inline std::vector<std::string> calculated_saves(const std::vector<network::SavedRecord>& records,
                                                 bool inputs_share = false) {
  std::vector<Save> saves;
  for (const network::SavedRecord& r : records) {
    const std::string owner = whose(r.tag);
    saves.push_back({r.node,
                     what_text(to_text(r.shape), torch_name(r.dtype), r.bytes, r.storage_bytes,
                               owner, inputs_share),
                     owner == "activation" ? std::to_string(r.block) : ""});
  }
  return comparable(saves);
}

// Entries are [node, argument, shape, dtype, bytes, bytes of the storage, what]; what = "new",
// "same_storage_as:INDEX", "param:NAME", "buffer:NAME" or "input:NAME".
inline std::vector<std::string> measured_saves(const nlohmann::json& list,
                                               bool inputs_share = false) {
  std::vector<Save> saves;
  for (const nlohmann::json& entry : list) {
    const std::string what = entry.at(6);
    const std::string word = what.substr(0, what.find(':'));
    std::string owner = word == "param" ? "parameter" : word;
    std::string storage;
    if (word == "new" || word == "same_storage_as") {
      owner = "activation";
      storage = word == "new" ? std::to_string(saves.size()) : what.substr(what.find(':') + 1);
    }
    network::Dims shape;
    for (const nlohmann::json& size : entry.at(2)) shape.push_back(size);
    saves.push_back(
        {node_name(entry.at(0)),
         what_text(to_text(shape), entry.at(3), entry.at(4), entry.at(5), owner, inputs_share),
         storage});
  }
  return comparable(saves);
}

// The first line in which two lists differ, or "".
inline std::string first_difference(const std::vector<std::string>& calculated,
                                    const std::vector<std::string>& measured) {
  for (std::size_t i = 0; i < std::max(calculated.size(), measured.size()); ++i) {
    const std::string ours = i < calculated.size() ? calculated[i] : "nothing";
    const std::string theirs = i < measured.size() ? measured[i] : "nothing";
    if (ours != theirs) return fmt::format("{}: calculated {}, measured {}", i, ours, theirs);
  }
  return "";
}

// Bytes and storages by the type of the node that saved each activation first.
using BytesByNode = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

inline BytesByNode bytes_by_node(const std::vector<network::SavedRecord>& records) {
  BytesByNode result;
  std::set<timeline::BlockId> seen;
  for (const network::SavedRecord& r : records) {
    if (whose(r.tag) != std::string("activation") || !seen.insert(r.block).second) continue;
    auto& [bytes, storages] = result[r.node];
    bytes += r.storage_bytes;
    ++storages;
  }
  return result;
}

inline BytesByNode measured_bytes_by_node(const nlohmann::json& by_op) {
  BytesByNode result;
  for (const auto& [node, figures] : by_op.items()) {
    result[node_name(node)] = {figures.at(0), figures.at(1)};
  }
  return result;
}

}  // namespace plimsoll::test
