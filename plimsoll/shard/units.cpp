#include "plimsoll/shard/units.hpp"

#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::shard {
namespace {

// Refuses two equal names.
Result<void> distinct_names(const std::vector<Parameter>& parameters) {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (seen.emplace(parameters[i].name, i).second) continue;
    return fail("units", fmt::format("two parameters are called {}, expected distinct names",
                                     parameters[i].name));
  }
  return {};
}

Result<std::unordered_map<std::string_view, std::int32_t>> index_blocks(
    const std::vector<std::string>& blocks) {
  std::unordered_map<std::string_view, std::int32_t> index;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].empty()) return fail("units", "a block has no name, expected one");
    if (index.emplace(blocks[i], static_cast<std::int32_t>(i)).second) continue;
    return fail("units", fmt::format("block {} is wrapped twice, expected once", blocks[i]));
  }
  return index;
}

// The block with the longest name that `name` lies in, or -1.
std::int32_t block_of(std::string_view name,
                      const std::unordered_map<std::string_view, std::int32_t>& blocks) {
  for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = name.rfind('.', dot - 1)) {
    const auto found = blocks.find(name.substr(0, dot));
    if (found != blocks.end()) return found->second;
  }
  return -1;
}

tl::unexpected<Error> tie_across(const Parameter& a, const Unit& unit_a, const Parameter& b,
                                 const Unit& unit_b) {
  return fail("units",
              fmt::format("{} (unit {}) and {} (unit {}) are one tensor, expected both in one unit",
                          a.name, unit_a.name, b.name, unit_b.name),
              "wrap a module that holds both, or leave both to the root");
}

}  // namespace

std::int64_t element_count(const Parameter& parameter) {
  std::int64_t count = 1;
  for (std::int64_t size : parameter.shape) count = checked_mul(count, size);
  return count;
}

Result<Units> group_by_index(const std::vector<Parameter>& parameters,
                             const std::vector<std::int32_t>& block_of,
                             const std::vector<std::string>& names) {
  check(block_of.size() == parameters.size(), "one block index per parameter");
  if (auto ok = distinct_names(parameters); !ok) return tl::unexpected(ok.error());
  Units result;
  for (const std::string& name : names) result.units.push_back({name, {}, {}, false});
  result.units.push_back({"root", {}, {}, true});
  result.unit_of.resize(parameters.size());
  std::unordered_map<std::uint64_t, std::size_t> first;  // by identity
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int32_t block = block_of[i];
    check(block >= -1 && block < static_cast<std::int32_t>(names.size()), "a block without a name");
    const std::size_t u = block < 0 ? result.root() : static_cast<std::size_t>(block);
    result.unit_of[i] = u;
    if (parameters[i].identity != 0) {
      const auto [seen, fresh] = first.emplace(parameters[i].identity, i);
      const std::size_t other = seen->second;
      if (!fresh && result.unit_of[other] != u) {
        return tie_across(parameters[other], result.units[result.unit_of[other]], parameters[i],
                          result.units[u]);
      }
      if (!fresh) {
        result.units[u].aliases.push_back({other, i});
        continue;
      }
    }
    result.units[u].parameters.push_back(i);
  }
  return result;
}

Result<Units> group_by_blocks(const std::vector<Parameter>& parameters,
                              const std::vector<std::string>& blocks) {
  const auto index = index_blocks(blocks);
  if (!index) return tl::unexpected(index.error());
  std::vector<std::int32_t> of;
  of.reserve(parameters.size());
  for (const Parameter& p : parameters) of.push_back(block_of(p.name, *index));
  return group_by_index(parameters, of, blocks);
}

}  // namespace plimsoll::shard
