// SPDX-License-Identifier: MIT
// Models over several devices: what --devices and --cut ask for. Includes Vulkan.
#pragma once

#include "device_choice.hpp"
#include "stream_read.hpp"

#include <intaglio/runtime/cut_session.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace intaglio::tool {

/// The devices that --devices names, in its order. The same one may be named several times and is opened as often.
inline std::vector<gpu::device> open_devices(const model_options& model, const common_options& common) {
  std::vector<std::future<gpu::device>> opening;
  for (const std::string& each : model.devices) {
    common_options one = common;
    one.device = each;
    opening.push_back(begin_opening(one));
  }
  std::vector<gpu::device> out;
  for (auto& each : opening) out.push_back(open_device(common, std::move(each)));
  return out;
}

/// Where the model is cut: as --cut says, else by memory and by how fast devices of several names read it.
inline cut_options cut_choice(std::span<const gpu::device> on, const std::vector<std::uint32_t>& after) {
  cut_options out{after, {}};
  const bool alike =
      std::all_of(on.begin(), on.end(), [&](const gpu::device& each) { return each.label() == on.front().label(); });
  if (!after.empty() || alike) return out;
  for (const gpu::device& each : on) out.rates.push_back(stream_read_rate(each));
  return out;
}

}  // namespace intaglio::tool
