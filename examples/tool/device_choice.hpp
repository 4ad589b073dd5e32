// SPDX-License-Identifier: MIT
// Opens the device that --device names. Includes Vulkan.
#pragma once

#include "commands.hpp"
#include "console.hpp"
#include "driver_trial.hpp"

#include <intaglio/gpu/device.hpp>

#include <future>

namespace intaglio::tool {

/// On another thread, as far as there is one. @param copies as in gpu::device_options
inline std::future<gpu::device> begin_opening(const common_options& common, bool copies = false) {
  gpu::device_options options;
  options.selector = common.device;
  options.copies = copies;
  if (common.validate && options.validate == gpu::validation::off) options.validate = gpu::validation::synchronization;
  return std::async([options] { return gpu::device(options); });
}
/// What begin_opening() began, or one anew.
inline gpu::device open_device(const common_options& common, std::future<gpu::device> begun = {}) {
  if (!begun.valid()) begun = begin_opening(common);
  gpu::device out = begun.get();
  if (const std::string words = out.note(); !words.empty()) note("note: " + words);
  try_driver(out);
  return out;
}

/// @throws device_error: the validation layer had something to say
inline void require_no_messages(const gpu::device& on) {
  if (const auto count = on.validation_message_count(); count != 0)
    throw device_error(on.label(), "validate",
                       "expected no message of the validation layer, found " + std::to_string(count));
}

}  // namespace intaglio::tool
