#include "plimsoll/report/devices.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/base/table.hpp"

namespace plimsoll::report {
namespace {

using hardware::Arithmetic;
using hardware::Device;
using hardware::Figure;
using hardware::Peak;

std::string gib(const Figure<std::int64_t>& bytes) {
  if (!bytes.value) return "-";
  return fmt::format("{:.2f}", static_cast<double>(*bytes.value) / static_cast<double>(kGiB));
}

std::string tera(const std::optional<double>& rate) {
  return rate ? fmt::format("{:.4g}", *rate / 1e12) : "-";
}

std::string link_name(const Device& device) {
  return device.links.empty() ? "" : device.links.front().name;
}

// A figure and where it is from, as one row.
class FigureTable {
 public:
  FigureTable()
      : table_({{"", Align::kLeft}, {""}, {"evidence", Align::kLeft}, {"source", Align::kWrap}}) {}

  void bytes(const std::string& what, const Figure<std::int64_t>& figure) {
    row(what, figure.value ? human(Bytes{*figure.value}) : "", figure.evidence, figure.source);
  }
  void rate(const std::string& what, const Figure<double>& figure, std::string_view unit) {
    row(what, figure.value ? with_prefix(*figure.value, unit) : "", figure.evidence, figure.source);
  }
  std::string text(const TextStyle& style) const { return table_.text(style); }

 private:
  void row(const std::string& what, std::string value, Evidence evidence,
           const std::string& source) {
    const bool known = !value.empty();
    table_.row({what, known ? std::move(value) : "unknown",
                known ? std::string(name(evidence)) : "-", source});
  }

  Table table_;
};

void add_peaks(FigureTable& table, const Device& device) {
  for (std::size_t i = 0; i < device.peaks.size(); ++i) {
    const std::string arithmetic(name(static_cast<Arithmetic>(i)));
    const Peak& peak = device.peaks[i];
    if (peak.vector.value) table.rate(arithmetic + " vector", peak.vector, "FLOP/s");
    if (peak.tensor.value) table.rate(arithmetic + " tensor", peak.tensor, "FLOP/s");
    if (!peak.matmul()) table.rate(arithmetic, peak.tensor, "FLOP/s");
  }
}

template <class T>
Json figure_json(const Figure<T>& figure) {
  return {{"value", figure.value ? Json(*figure.value) : Json(nullptr)},
          {"evidence", name(figure.evidence)},
          {"source", figure.source}};
}

Json device_json(const Device& device) {
  Json json;
  json["name"] = device.name;
  json["title"] = device.title;
  json["platform"] = name(device.platform);
  json["capacity"] = figure_json(device.capacity);
  json["usable"] = figure_json(device.usable);
  json["context"] = figure_json(device.context);
  json["bandwidth"] = figure_json(device.bandwidth);
  for (std::size_t i = 0; i < device.peaks.size(); ++i) {
    json["peaks"][std::string(name(static_cast<Arithmetic>(i)))] = {
        {"vector", figure_json(device.peaks[i].vector)},
        {"tensor", figure_json(device.peaks[i].tensor)}};
  }
  json["links"] = Json::array();
  for (const hardware::Link& link : device.links) {
    json["links"].push_back({{"name", link.name},
                             {"title", link.title},
                             {"bandwidth", figure_json(link.bandwidth)},
                             {"latency", figure_json(link.latency)}});
  }
  return json;
}

}  // namespace

std::string devices_text(std::span<const formats::DevicePtr> devices, const TextStyle& style) {
  Table table({{"name", Align::kLeft},
               {"marketed"},
               {"usable"},
               {"context"},
               {"TB/s"},
               {"fp32"},
               {"tf32"},
               {"bf16"},
               {"fp16"},
               {"fp8"},
               {"links", Align::kLeft}},
              0);
  for (const formats::DevicePtr& device : devices) {
    const auto peak = [&](Arithmetic a) { return tera(device->peak(a).matmul()); };
    table.row({device->name, gib(device->capacity), gib(device->usable), gib(device->context),
               tera(device->bandwidth.value), peak(Arithmetic::kFp32), peak(Arithmetic::kTf32),
               peak(Arithmetic::kBf16), peak(Arithmetic::kFp16), peak(Arithmetic::kFp8),
               link_name(*device)});
  }
  return table.text(style) +
         "\nMemory in GiB, peaks of matrix products in TFLOP/s, dense; - is unknown or not there.\n"
         "plimsoll devices NAME shows every figure with its evidence and source. A size such as\n"
         "24GiB stands for a GPU of that capacity and unknown speed.\n";
}

std::string device_text(const Device& device, const TextStyle& style) {
  FigureTable table;
  table.bytes("marketed", device.capacity);
  table.bytes("usable", device.usable);
  table.bytes("context", device.context);
  table.rate("memory", device.bandwidth, "B/s");
  add_peaks(table, device);
  for (const hardware::Link& link : device.links) {
    table.rate(link.name, link.bandwidth, "B/s");
    table.rate("  latency", link.latency, "s");
  }
  return fmt::format("{}: {}, {}\n", bold(device.name, style), device.title,
                     name(device.platform)) +
         table.text(style);
}

Json devices_json(std::span<const formats::DevicePtr> devices) {
  Json json;
  json["schema"] = "plimsoll.devices/1";
  json["devices"] = Json::array();
  for (const formats::DevicePtr& device : devices) json["devices"].push_back(device_json(*device));
  return json;
}

}  // namespace plimsoll::report
