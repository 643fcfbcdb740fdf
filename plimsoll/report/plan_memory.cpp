#include "plimsoll/report/plan_memory.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/report/plan_figures.hpp"

namespace plimsoll::report {
namespace {

using plan::MaybeBytes;
using plan::Memory;
using plan::MemoryLine;

std::string place(const plan::Instant& at) {
  std::string text = fmt::format("in {}", timeline::name(at.phase.phase));
  if (!at.operation.empty()) text += fmt::format(", at {}", at.operation);
  return text;
}

// --- text

void add_row(Table& table, const std::string& name, const MaybeBytes& size,
             const std::string& meaning) {
  if (!size.bytes) {
    table.row({name, "-", "", size.reason});
    return;
  }
  table.row({name, grouped(*size.bytes), human(Bytes{*size.bytes}), meaning});
}

std::string allocated_meaning(const Memory& memory) {
  if (!memory.allocated_at) return "the CPU allocator rounds nothing";
  return fmt::format("in blocks of the caching allocator; highest {}", place(*memory.allocated_at));
}

std::string reserved_meaning(const Memory& memory) {
  if (!memory.reserved_at) return "";
  return fmt::format("in its segments, {} of them unused; highest {}",
                     human(Bytes{memory.unused_at_reserved_peak}), place(*memory.reserved_at));
}

std::string readable(std::string name) {
  for (char& c : name) {
    if (c == '_') c = ' ';
  }
  return "  " + name;
}

std::string line_meaning(const MemoryLine& line) {
  return fmt::format("{}: {}", network::name(line.evidence), line.source);
}

// Lines without bytes say nothing, unless they are what is missing.
bool is_worth_a_row(const MemoryLine& line, bool cpu) {
  if (!line.size.bytes) return !cpu;
  return *line.size.bytes > 0;
}

std::string out_of_memory_text(const plan::OutOfMemoryText& failed) {
  return fmt::format(
      "out of memory in step {} {}: {} B more do not fit, {} B are allocated, {} B "
      "reserved",
      failed.at.phase.step, place(failed.at), grouped(failed.request), grouped(failed.allocated),
      grouped(failed.reserved));
}

// --- JSON

Json maybe(const MaybeBytes& size) { return size.bytes ? Json(*size.bytes) : Json(nullptr); }

Json instant_json(const plan::Instant& at) {
  return {{"step", at.phase.step},
          {"phase", timeline::name(at.phase.phase)},
          {"micro_batch", at.phase.micro_batch},
          {"operation", at.operation}};
}

Json line_json(const MemoryLine& line) {
  Json json;
  json["name"] = line.name;
  json["bytes"] = maybe(line.size);
  if (line.size.bytes) {
    json["evidence"] = network::name(line.evidence);
    json["source"] = line.source;
  } else {
    json["reason"] = line.size.reason;
  }
  return json;
}

Json lines_json(const Memory& memory) {
  Json lines = Json::array();
  for (const MemoryLine& line : memory.lines) lines.push_back(line_json(line));
  return lines;
}

Json assumptions_json(network::Backend backend) {
  Json assumptions = Json::array();
  for (const network::Fact& fact : assumed_facts(backend)) {
    assumptions.push_back({{"what", fact.what}, {"value", fact.value}, {"source", fact.source}});
  }
  return assumptions;
}

Json out_of_memory_json(const plan::OutOfMemoryText& failed) {
  Json json = instant_json(failed.at);
  json["request"] = failed.request;
  json["allocated"] = failed.allocated;
  json["reserved"] = failed.reserved;
  return json;
}

}  // namespace

Section memory_section(const plan::Plan& plan) {
  const Memory& memory = plan.memory;
  const bool cpu = plan.job.backend == network::Backend::kCpu;
  Table table({{"", Align::kLeft}, {""}, {""}, {"", Align::kWrap}});
  add_row(table, "requested", {memory.requested, ""},
          plan.job.infers() ? "by the tensors of the pass" : "by the tensors of the steady step");
  add_row(table, "allocated", memory.allocated, allocated_meaning(memory));
  add_row(table, "reserved", memory.reserved, reserved_meaning(memory));
  add_row(table, "device used", memory.device_used, "reserved and the context");
  for (const MemoryLine& line : memory.lines) {
    if (is_worth_a_row(line, cpu))
      add_row(table, readable(line.name), line.size, line_meaning(line));
  }
  add_row(table, "assumed", {memory.assumed_bytes, ""},
          "sum of the lines above that are only assumed");
  Section section{"Memory", " per rank, at its highest, in bytes", "", std::move(table)};
  if (memory.out_of_memory) section.notes.push_back(out_of_memory_text(*memory.out_of_memory));
  return section;
}

Json memory_json(const plan::Plan& plan) {
  const Memory& memory = plan.memory;
  Json json;
  Json reason = Json::object();
  json["requested"] = memory.requested;
  for (const auto& [key, size] :
       {std::pair{"allocated", &memory.allocated}, std::pair{"reserved", &memory.reserved},
        std::pair{"device_used", &memory.device_used}}) {
    json[key] = maybe(*size);
    if (!size->bytes) reason[key] = size->reason;
  }
  json["assumed_bytes"] = memory.assumed_bytes;
  json["reason"] = std::move(reason);
  if (memory.allocated_at) json["allocated_at"] = instant_json(*memory.allocated_at);
  if (memory.reserved_at) {
    json["reserved_at"] = instant_json(*memory.reserved_at);
    json["unused_at_reserved_peak"] = memory.unused_at_reserved_peak;
  }
  json["lines"] = lines_json(memory);
  json["assumptions"] = assumptions_json(plan.job.backend);
  if (memory.out_of_memory) json["out_of_memory"] = out_of_memory_json(*memory.out_of_memory);
  return json;
}

}  // namespace plimsoll::report
