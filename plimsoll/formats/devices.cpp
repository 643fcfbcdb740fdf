#include "plimsoll/formats/devices.hpp"

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/letter_case.hpp"

namespace plimsoll::formats {

// Embedded by CMake.
std::span<const std::pair<std::string_view, std::string_view>> device_files();

namespace {

using hardware::Arithmetic;
using hardware::Device;
using hardware::Figure;
using hardware::Link;
using nlohmann::json;

// The file is ours: whatever is wrong with it is our bug. nlohmann's exceptions end as one, too.
class Reader {
 public:
  explicit Reader(const json& file) : file_(file) {
    for (const json& link : file.at("links")) links_.push_back(read_link(link));
    for (const json& device : file.at("devices")) {
      devices_.push_back(std::make_shared<const Device>(read_device(device)));
    }
  }

  std::vector<DevicePtr> take_devices() { return std::move(devices_); }
  std::vector<Link> take_links() { return std::move(links_); }

 private:
  static Evidence read_evidence(const std::string& text) {
    for (const Evidence e : {Evidence::kMeasured, Evidence::kSource, Evidence::kAssumed}) {
      if (name(e) == text) return e;
    }
    check(false, "data/devices.json: unknown evidence " + text);
    return Evidence::kAssumed;
  }

  template <class T>
  Figure<T> read_figure(const json& figure) const {
    Figure<T> result;
    if (!figure.at("value").is_null()) result.value = figure.at("value").get<T>();
    result.evidence = read_evidence(figure.at("evidence"));
    result.source = file_.at("sources").at(figure.at("source").get<std::string>());
    return result;
  }

  Link read_link(const json& link) const {
    return {link.at("name"), link.at("title"), read_figure<double>(link.at("bandwidth")),
            read_figure<double>(link.at("latency"))};
  }

  const Link& link_named(const std::string& wanted) const {
    for (const Link& link : links_) {
      if (link.name == wanted) return link;
    }
    check(false, "data/devices.json: unknown link " + wanted);
    return links_.front();
  }

  Device read_device(const json& entry) const {
    Device device;
    device.name = entry.at("name");
    device.title = entry.at("title");
    device.platform =
        entry.at("backend") == "rocm" ? hardware::Platform::kRocm : hardware::Platform::kCuda;
    device.compute_capability = read_figure<std::int64_t>(entry.at("compute_capability"));
    device.capacity = read_figure<std::int64_t>(entry.at("capacity"));
    device.usable = read_figure<std::int64_t>(entry.at("usable"));
    device.context = read_figure<std::int64_t>(entry.at("context"));
    device.bandwidth = read_figure<double>(entry.at("bandwidth"));
    for (std::size_t i = 0; i < device.peaks.size(); ++i) {
      const std::string arithmetic(name(static_cast<Arithmetic>(i)));
      const json& peak = entry.at("peaks").at(arithmetic);
      device.peaks[i] = {read_figure<double>(peak.at("vector")),
                         read_figure<double>(peak.at("tensor"))};
    }
    for (const json& link : entry.at("links")) device.links.push_back(link_named(link));
    return device;
  }

  const json& file_;
  std::vector<Link> links_;
  std::vector<DevicePtr> devices_;
};

struct Table {
  std::vector<DevicePtr> devices;
  std::vector<Link> links;
};

const Table& table() {
  static const Table kTable = [] {
    const auto& [file, text] = device_files().front();
    const auto parsed = parse_json(text, file);
    check(parsed.has_value(), "data/devices.json does not parse");
    Reader reader(*parsed);
    return Table{reader.take_devices(), reader.take_links()};
  }();
  return kTable;
}

// "h100" is near to no single name but begins two of them.
std::vector<std::string> names_with_prefix(const std::string& prefix) {
  std::vector<std::string> names;
  for (const DevicePtr& device : devices()) {
    if (!prefix.empty() && device->name.starts_with(prefix)) names.push_back(device->name);
  }
  return names;
}

std::string hint_for(const std::string& wanted) {
  const std::vector<std::string> longer = names_with_prefix(wanted);
  if (!longer.empty()) return fmt::format("names: {}", fmt::join(longer, ", "));
  std::vector<std::string> names;
  for (const DevicePtr& device : devices()) names.push_back(device->name);
  const std::string near = wanted.empty() ? "" : nearest_name(wanted, names);
  return near.empty() ? "plimsoll devices lists the names" : "nearest name: " + near;
}

}  // namespace

std::span<const DevicePtr> devices() { return table().devices; }

std::span<const Link> links() { return table().links; }

Result<DevicePtr> find_device(const std::string& name, const std::string& where) {
  const std::string wanted = lower_case(name.substr(0, 64));
  for (const DevicePtr& device : devices()) {
    if (device->name == wanted) return device;
  }
  return fail(where,
              fmt::format("\"{}\", expected a name of `plimsoll devices` or a size such as 24GiB",
                          name.substr(0, 40)),
              hint_for(wanted));
}

}  // namespace plimsoll::formats
