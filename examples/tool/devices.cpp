// SPDX-License-Identifier: MIT
// devices: what --device chooses from.
#include "commands.hpp"
#include "console.hpp"

#include <intaglio/gpu/device.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {

void devices(const devices_options& options) {
  using json = nlohmann::ordered_json;
  const auto found = gpu::list_devices();
  std::optional<std::uint32_t> chosen;
  try {
    chosen = gpu::choose_device(found, "", true).index;
  } catch (const device_error&) {  // the list itself says what is missing
  }
  json list = json::array();
  for (const auto& each : found) {
    std::uint64_t memory = 0;
    for (const auto& heap : each.heaps)
      if (heap.device_local) memory += heap.size_bytes;
    if (options.json) {
      list.push_back({{"index", each.index},
                      {"name", each.name},
                      {"type", name(each.type)},
                      {"uuid", gpu::uuid_text(each.uuid)},
                      {"driver", each.driver_name + " " + each.driver_info},
                      {"vulkan", gpu::version_text(each.api_version)},
                      {"memory_bytes", memory},
                      {"subgroup_size", each.limits.subgroup_size},
                      {"usable", each.missing.empty()},
                      {"missing", each.missing},
                      {"default", chosen == each.index}});
      continue;
    }
    print_line(std::string(chosen == each.index ? "* " : "  ") + std::to_string(each.index) + "  " + each.label());
    print_line("     " + std::string(name(each.type)) + ", " + bytes_text(static_cast<double>(memory)) + ", Vulkan " +
               gpu::version_text(each.api_version) + ", " + gpu::uuid_text(each.uuid));
    std::string missing;
    for (const auto& each_missing : each.missing) missing += (missing.empty() ? "" : ", ") + each_missing;
    if (!missing.empty()) print_line("     not usable: it lacks " + missing);
  }
  if (options.json) print_line(list.dump(-1, ' ', false, json::error_handler_t::replace));
  else note("* is taken without --device");
}

}  // namespace intaglio::tool
