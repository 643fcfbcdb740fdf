// Devices that plimsoll knows by name, from data/devices.json.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "plimsoll/base/error.hpp"
#include "plimsoll/hardware/device.hpp"

namespace plimsoll::formats {

using DevicePtr = std::shared_ptr<const hardware::Device>;  // shared by the jobs of a search

// All of them, in the order of the file.
std::span<const DevicePtr> devices();

// Every link of the file, those between hosts included.
std::span<const hardware::Link> links();

// By name, upper and lower case alike. Errors: an unknown name, with the names that begin alike or
// the nearest one; `where` is the option or command that gave the name.
Result<DevicePtr> find_device(const std::string& name, const std::string& where);

}  // namespace plimsoll::formats
