// plimsoll devices [NAME]: what cards and links can do, with the source of each figure.
#include "plimsoll/report/devices.hpp"

#include <nlohmann/json.hpp>

#include "plimsoll/cli/command.hpp"
#include "plimsoll/cli/values.hpp"

namespace plimsoll::cli {
namespace {

Result<Output> run_devices(const Given& given, const TextStyle& style) {
  const bool json = given.has("--json");
  if (given.positional.empty()) {
    const auto all = formats::devices();
    return Output{json ? report::json_text(report::devices_json(all))
                       : report::devices_text(all, style)};
  }
  const auto device = parse_device("devices", given.positional);
  if (!device) return tl::unexpected(device.error());
  if (!json) return Output{report::device_text(**device, style)};
  return Output{report::json_text(report::devices_json({&*device, 1}))};
}

}  // namespace

Command devices_command() {
  return {{"devices",
           "memory, speed and links of known devices, with their sources",
           "[NAME]",
           {{"--json", "", "JSON of schema plimsoll.devices/1"}}},
          run_devices};
}

}  // namespace plimsoll::cli
