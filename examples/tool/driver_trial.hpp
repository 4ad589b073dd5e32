// SPDX-License-Identifier: MIT
// A driver that nobody has told of may end the process: that is found out in another one.
#pragma once

#include <intaglio/gpu/device.hpp>

#include <string>

namespace intaglio::tool {

/// Before this process makes a pipeline on a device whose driver nobody has told of (gpu/known_drivers.hpp), the tool,
/// in a process of its own, computes a token of the embedded model there. What ended well is not tried again: the cache
/// keeps a file for the driver and its version. Nothing is tried where the tool is not found beside this program.
/// The variable INTAGLIO_DRIVER_TRIAL says "off", or "always": drivers that are known, too.
/// @throws device_error: the driver ended that process, or it did not end in 3 minutes
void try_driver(const gpu::device& on);

/// Why a status tells of a process that did not end by itself; empty where it did.
std::string violent_end(int status);

}  // namespace intaglio::tool
