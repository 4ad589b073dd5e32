// SPDX-License-Identifier: MIT
// A report of Vulkan on this machine for bug reports: sections of keys and values, to print or to turn into JSON. It
// does not throw for what it finds: a missing loader or driver is its most useful finding.
#pragma once

#include <intaglio/gpu/device.hpp>

namespace intaglio::gpu {

/// Keys and values under one title.
struct report_section {
  std::string title;
  std::vector<std::pair<std::string, std::string>> entries;
};

/// The sections of a report, in their order.
using report = std::vector<report_section>;

/// The lines of a report, keys aligned.
inline std::string report_text(const report& of) {
  std::string out;
  for (const auto& section : of) {
    out += section.title + "\n";
    std::size_t width = 0;
    for (const auto& [key, value] : section.entries) width = (std::max)(width, key.size());
    for (const auto& [key, value] : section.entries)
      out += "  " + key + std::string(width - key.size() + 2, ' ') + value + "\n";
  }
  return out;
}

namespace detail {

inline std::string triple_text(const std::array<std::uint32_t, 3>& of) {
  return std::to_string(of[0]) + " x " + std::to_string(of[1]) + " x " + std::to_string(of[2]);
}

inline std::string subgroup_operations_text(std::uint32_t operations) {
  constexpr std::pair<std::uint32_t, const char*> names[] = {
      {VK_SUBGROUP_FEATURE_BASIC_BIT, "basic"},
      {VK_SUBGROUP_FEATURE_VOTE_BIT, "vote"},
      {VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "arithmetic"},
      {VK_SUBGROUP_FEATURE_BALLOT_BIT, "ballot"},
      {VK_SUBGROUP_FEATURE_SHUFFLE_BIT, "shuffle"},
      {VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT, "shuffle_relative"},
      {VK_SUBGROUP_FEATURE_CLUSTERED_BIT, "clustered"},
      {VK_SUBGROUP_FEATURE_QUAD_BIT, "quad"}};
  std::string out;
  for (const auto& [bit, text] : names)
    if ((operations & bit) != 0) out.append(out.empty() ? "" : " ").append(text);
  return out.empty() ? "none" : out;
}

}  // namespace detail

/// Describes one device as a section: identity, driver, memory, limits, features, and the requirements of intaglio that
/// it lacks.
inline report_section report_device(const device_description& of) {
  report_section out{"device " + std::to_string(of.index), {}};
  const auto add = [&](std::string key, std::string value) {
    out.entries.emplace_back(std::move(key), std::move(value));
  };
  const device_limits& limits = of.limits;
  char ids[32];
  std::snprintf(ids, sizeof ids, "%04x:%04x", of.vendor_id, of.device_id);
  add("name", of.name);
  add("type", std::string(name(of.type)));
  add("usable",
      of.missing.empty() ? "yes" : "no, it lacks " + of.missing.front() + (of.missing.size() > 1 ? " and more" : ""));
  for (const auto& missing : of.missing) add("missing", missing);
  add("uuid", uuid_text(of.uuid));
  add("vendor:device", ids);
  add("driver", of.driver_name + " " + of.driver_info);
  add("driver version", std::to_string(of.driver_version));
  add("driver uuid", uuid_text(of.driver_uuid));
  add("vulkan", version_text(of.api_version));
  for (const auto& heap : of.heaps) add(heap.device_local ? "heap, device" : "heap, host", bytes_text(heap.size_bytes));
  add("largest allocation", bytes_text(limits.max_allocation_bytes));
  add("largest buffer", bytes_text(limits.max_buffer_bytes));
  add("push constants", std::to_string(limits.max_push_constant_bytes) + " bytes");
  add("shared memory", bytes_text(limits.max_shared_memory_bytes));
  add("workgroup", std::to_string(limits.max_workgroup_invocations) + " invocations, " +
                       detail::triple_text(limits.max_workgroup_size));
  add("workgroups", detail::triple_text(limits.max_workgroup_count));
  add("subgroup", std::to_string(limits.subgroup_size) + " (" + std::to_string(limits.min_subgroup_size) + " to " +
                      std::to_string(limits.max_subgroup_size) +
                      (limits.subgroup_size_selectable ? ", selectable)" : ", not selectable)"));
  add("subgroup operations", detail::subgroup_operations_text(limits.subgroup_operations));
  add("int8 dot product", limits.int8_dot_product_accelerated ? "accelerated" : "not accelerated");
  std::string shapes;
  for (const auto& each : of.matrix_shapes) shapes.append(shapes.empty() ? "" : ", ").append(each.text());
  add("cooperative matrices", shapes.empty() ? "none" : shapes);
  add("int8 products of chunks", multiplies_int8(of.matrix_shapes) ? "by cooperative matrices" : "by dot products");
  add("f16 products of chunks", multiplies_f16(of.matrix_shapes) ? "by cooperative matrices" : "in tiles");
  add("timestamps", limits.timestamp_bits == 0
                        ? "none"
                        : std::to_string(limits.timestamp_bits) + " bits of " +
                              std::to_string(static_cast<double>(limits.timestamp_period_ns)) + " ns");
  std::string present, absent;
  for (const auto& entry : feature_table)
    (contains(of.features, entry.id) ? present : absent).append(" ").append(entry.name);
  add("features", present.empty() ? "none" : present.substr(1));
  add("without", absent.empty() ? "nothing" : absent.substr(1));
  return out;
}

/// Describes loader, layers and every device. Failures become entries of the report.
/// @param entry null: the system's loader
/// @error out_of_memory: of the host
inline report examine(PFN_vkGetInstanceProcAddr entry = nullptr) {
  return translated([&] {
    report out{{"vulkan", {}}};
    const auto add = [&](std::string key, std::string value) {
      out.front().entries.emplace_back(std::move(key), std::move(value));
    };
    for (const char* variable : {"VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT",
                                 "VK_INSTANCE_LAYERS", "LP_NATIVE_VECTOR_WIDTH", "INTAGLIO_VALIDATE"})
      if (const char* value = std::getenv(variable); value != nullptr) add(variable, printable(value));
    add("headers", version_text(VK_HEADER_VERSION_COMPLETE));
    try {
      const loader from = entry != nullptr ? loader(entry) : loader();
      add("loader", version_text(from.api_version()));
      if (const auto ask = from.global<PFN_vkEnumerateInstanceLayerProperties>("vkEnumerateInstanceLayerProperties");
          ask != nullptr)
        for (const auto& layer : enumerate<VkLayerProperties>("", "list the Vulkan layers", ask))
          add("layer", detail::fixed_text(layer.layerName) + " " + version_text(layer.specVersion));
      const instance opened(from);
      const auto devices = list_devices(opened);
      for (const auto& each : devices) out.push_back(report_device(each));
      try {
        const device_description chosen = choose_device(devices, "", true);
        add("chosen", std::to_string(chosen.index) + ": " + chosen.label());
      } catch (const device_error& none) { add("chosen", std::string("none: ") + none.what()); }
    } catch (const device_error& problem) { add("problem", problem.what()); }
    return out;
  });
}

}  // namespace intaglio::gpu
