// SPDX-License-Identifier: MIT
// Opens the device that --device names. Includes Vulkan.
#pragma once

#include "commands.hpp"
#include "console.hpp"

#include <intaglio/gpu/device.hpp>

namespace intaglio::tool {

inline gpu::device open_device(const common_options& common) {
  gpu::device_options options;
  options.selector = common.device;
  if (common.validate && options.validate == gpu::validation::off) options.validate = gpu::validation::synchronization;
  gpu::device out(options);
  if (const std::string words = out.note(); !words.empty()) note("note: " + words);
  return out;
}

/// @throws device_error: the validation layer had something to say
inline void require_no_messages(const gpu::device& on) {
  if (const auto count = on.validation_message_count(); count != 0)
    throw device_error(on.label(), "validate", "expected no message of the validation layer, found " + std::to_string(count));
}

}  // namespace intaglio::tool
