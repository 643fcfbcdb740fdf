// The devices that plimsoll knows by name: a table, or one of them figure by figure.
#pragma once

#include <span>
#include <string>

#include "plimsoll/base/terminal.hpp"
#include "plimsoll/formats/devices.hpp"
#include "plimsoll/report/json.hpp"

namespace plimsoll::report {

std::string devices_text(std::span<const formats::DevicePtr> devices, const TextStyle& style);

// Every figure of one device with its evidence and source.
std::string device_text(const hardware::Device& device, const TextStyle& style);

// Schema plimsoll.devices/1. Unknown figures are null; their source says why.
Json devices_json(std::span<const formats::DevicePtr> devices);

}  // namespace plimsoll::report
