// SPDX-License-Identifier: MIT
// Facts about drivers that they cannot report themselves. A driver that ends the process is refused by its name.
#pragma once

#include <intaglio/core/compiler.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace intaglio::gpu {

/// What is known of a driver.
enum class driver_state : std::uint8_t {
  unknown,  ///< no report of a run
  has_run,  ///< models ran on it (docs/devices.md)
  crashes   ///< it ends the process
};

/// A driver and what is known of it.
struct known_driver {
  std::uint32_t id;  ///< VkDriverId
  driver_state state;
  std::string_view why;  ///< the reason, for one that crashes
};

/// The drivers that reports exist for.
inline constexpr std::array known_drivers{
    known_driver{4, driver_state::has_run, {}},   // NVIDIA's own
    known_driver{13, driver_state::has_run, {}},  // llvmpipe
    // Seen with the SwiftShader of Chromium 156 (Debian 12), 2026-11-27: `intaglio run` ended by SIGILL.
    known_driver{10, driver_state::crashes, "SwiftShader ends the process while it makes a pipeline of intaglio"},
};

/// The facts about a driver. @param id VkDriverId
constexpr known_driver of_driver(std::uint32_t id) {
  for (const known_driver& each : known_drivers)
    if (each.id == id) return each;
  return {id, driver_state::unknown, {}};
}

}  // namespace intaglio::gpu
