// SPDX-License-Identifier: MIT
// Tests an unknown driver in another process, since such a driver may end the process.
#pragma once

#include <intaglio/gpu/device.hpp>

#include <string>

namespace intaglio::tool {

/// Call it before this process makes a pipeline on a device with an unknown driver (gpu/known_drivers.hpp). The tool
/// then computes a token of the embedded model on the device in a process of its own. After a success it is not tried
/// again: the cache keeps a file for the driver and its version. Nothing is tried where the tool is not found beside
/// this program. The variable INTAGLIO_DRIVER_TRIAL is "off", or "always" to test known drivers too.
/// @throws device_error: the driver ended that process, or it did not end in 3 minutes
void try_driver(const gpu::device& on);

/// The reason, by its status, why a process did not end by itself; empty where it did.
std::string violent_end(int status);

}  // namespace intaglio::tool
