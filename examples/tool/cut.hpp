// SPDX-License-Identifier: MIT
// Models over several devices: what --devices and --cut ask for. Includes Vulkan.
#pragma once

#include "device_choice.hpp"
#include "stream_read.hpp"

#include <intaglio/runtime/cut_session.hpp>

#include <algorithm>
#include <future>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace intaglio::tool {

/// The devices that --devices names, in its order. A device that is named several times is opened once: its stages take
/// turns on its queue.
inline std::vector<gpu::device> open_devices(const model_options& model, const common_options& common) {
  std::map<std::string, std::future<gpu::device>> opening;
  for (const std::string& each : model.devices) {
    common_options one = common;
    one.device = each;
    if (!opening.contains(each)) opening.emplace(each, begin_opening(one, true));
  }
  std::map<std::string, gpu::device> opened;
  std::vector<gpu::device> out;
  for (const std::string& each : model.devices) {
    const auto found = opened.find(each);
    out.push_back(found != opened.end()
                      ? found->second
                      : opened.emplace(each, open_device(common, std::move(opening.at(each)))).first->second);
  }
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
