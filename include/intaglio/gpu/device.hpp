// SPDX-License-Identifier: MIT
// How a device is opened: defines what gpu/device_handle.hpp declares.
#pragma once

#include <intaglio/gpu/connection.hpp>
#include <intaglio/gpu/device_handle.hpp>

#include <cctype>
#include <charconv>

namespace intaglio::gpu {

namespace detail {

/// Order of preference: discrete GPU, integrated GPU, virtual GPU, other, CPU.
constexpr int rank(device_type type) {
  constexpr std::array<int, 5> order{0, 1, 2, 4, 3};
  return order[static_cast<std::size_t>(type)];
}

/// The text with ASCII letters in lower case.
inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The features that a device lacks, with its driver's version.
inline std::string missing_text(const device_description& of) {
  std::string out = "driver version " + std::to_string(of.driver_version) + " lacks ";
  for (std::size_t i = 0; i < of.missing.size(); ++i) out += (i == 0 ? "" : ", ") + of.missing[i];
  return out;
}

/// Devices for an error's text, one on each line.
[[gnu::cold]] inline std::string listing(const std::vector<device_description>& devices) {
  std::string out;
  for (const auto& each : devices)
    out += "\n  " + std::to_string(each.index) + ": " + each.label() + ", " + std::string(name(each.type)) + ", " +
           uuid_text(each.uuid) + (each.missing.empty() ? "" : ", " + missing_text(each));
  return out;
}

}  // namespace detail

[[gnu::cold]] INTAGLIO_DEFINITION const device_description& choose_device(
    const std::vector<device_description>& devices, const std::string& selector, bool allow_cpu) {
  if (selector.empty()) {
    const device_description* best = nullptr;
    for (const auto& each : devices)
      if (each.missing.empty() && (best == nullptr || detail::rank(each.type) < detail::rank(best->type))) best = &each;
    if (best == nullptr)
      throw device_error("", "choose a device", "no device has all that intaglio needs:" + detail::listing(devices));
    if (best->type == device_type::cpu && !allow_cpu)
      throw device_error("", "choose a device",
                         "only a CPU device is there, and it was not asked for:" + detail::listing(devices));
    return *best;
  }
  const device_description* found = nullptr;
  std::uint32_t index = 0;
  const auto [end, status] = std::from_chars(selector.data(), selector.data() + selector.size(), index);
  const bool is_index = status == std::errc{} && end == selector.data() + selector.size();
  const std::string wanted = detail::lower(selector);
  for (const auto& each : devices) {
    const bool matches =
        is_index ? each.index == index
                 : uuid_text(each.uuid) == wanted || detail::lower(each.name).find(wanted) != std::string::npos;
    if (matches && (found == nullptr || (!found->missing.empty() && each.missing.empty()))) found = &each;
  }
  if (found == nullptr)
    throw device_error("", "choose a device",
                       "no device matches '" + printable(selector) +
                           "' as index, UUID or part of a name; there are:" + detail::listing(devices));
  if (!found->missing.empty()) throw device_error(found->label(), "choose a device", detail::missing_text(*found));
  return *found;
}

INTAGLIO_DEFINITION device::device(const device_options& options) {
  translated([&] { open(options); });
}

INTAGLIO_DEFINITION device::device(const host_device& host) {
  translated([&] { borrow(host); });
}

INTAGLIO_DEFINITION device device::another() const {
  return translated([&] {
    on_->require_alive("open the device once more");
    device out(nullptr);
    out.on_ = std::make_shared<connection>();
    out.on_->from = on_->from;
    out.on_->physical = on_->physical;
    out.on_->description = on_->description;
    out.on_->label = on_->label;
    out.on_->queue_family = on_->queue_family;
    out.create(on_->enabled, false);
    return out;
  });
}

INTAGLIO_DEFINITION const device_description& device::description() const noexcept { return on_->description; }

INTAGLIO_DEFINITION const device_limits& device::limits() const noexcept { return on_->description.limits; }

INTAGLIO_DEFINITION const std::string& device::label() const noexcept { return on_->label; }

INTAGLIO_DEFINITION bool device::has(feature which) const noexcept { return contains(on_->enabled, which); }

INTAGLIO_DEFINITION const feature_set& device::enabled() const noexcept { return on_->enabled; }

INTAGLIO_DEFINITION std::string device::note() const {
  if (description().type != device_type::cpu) return {};
  return translated([&] { return "no GPU was chosen: computing on the CPU device " + label(); });
}

INTAGLIO_DEFINITION const device_counters& device::counters() const noexcept { return on_->counters; }

INTAGLIO_DEFINITION std::vector<std::string> device::validation_messages() const {
  return translated([&] { return on_->from->messages().messages(); });
}

INTAGLIO_DEFINITION std::size_t device::validation_message_count() const { return on_->from->messages().count(); }

INTAGLIO_DEFINITION bool device::validated() const noexcept { return on_->from->validated(); }

INTAGLIO_DEFINITION bool device::lost() const noexcept { return on_->lost; }

INTAGLIO_DEFINITION VkDevice device::handle() const noexcept { return on_->handle; }

INTAGLIO_DEFINITION void device::open(const device_options& options) {
  const auto from =
      std::make_shared<instance>(options.entry != nullptr ? loader(options.entry) : loader(), options.validate);
  auto devices = list_devices(*from);
  for (auto& each : devices)
    for (const feature wanted : options.require)
      if (!contains(each.features, wanted) && !contains(required_features(), wanted))
        each.missing.push_back("feature " + std::string(name(wanted)));
  const device_description& chosen = choose_device(devices, options.selector, options.allow_cpu);
  const auto physical = from->physical_devices();
  if (chosen.index >= physical.size()) throw device_error(chosen.label(), "open the device", "it has gone");

  on_ = std::make_shared<connection>();
  on_->from = from;
  on_->physical = physical[chosen.index];
  on_->description = chosen;
  on_->label = chosen.label();
  on_->queue_family = *chosen.queue_family;
  feature_set wanted = chosen.features;
  if (!options.robust)
    wanted.reset(static_cast<std::size_t>(feature::robust_buffer_access))
        .reset(static_cast<std::size_t>(feature::robust_buffer_access2));
  create(wanted, options.copies);
}

INTAGLIO_DEFINITION void device::create(const feature_set& wanted, bool copies) {
  const std::vector<const char*> extensions = extensions_of(wanted);
  feature_chain chain;
  link_and_enable(chain, wanted);

  const float priority = 1.0F;
  const auto copy_family = copies ? on_->description.copy_family : std::nullopt;
  std::array<VkDeviceQueueCreateInfo, 2> queues;
  queues.fill(typed<VkDeviceQueueCreateInfo>{});
  queues[0].queueFamilyIndex = on_->queue_family;
  queues[1].queueFamilyIndex = copy_family.value_or(0);
  for (auto& each : queues) each.queueCount = 1, each.pQueuePriorities = &priority;
  typed<VkDeviceCreateInfo> info;
  info.pNext = chain.head();
  info.queueCreateInfoCount = copy_family ? 2 : 1;
  info.pQueueCreateInfos = queues.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const dispatch_table& call = on_->from->call();
  on_->check(call.vkCreateDevice(on_->physical, &info, nullptr, &on_->handle), "open the device");
  look_up();
  on_->enabled = wanted;
  on_->call.vkGetDeviceQueue(on_->handle, on_->queue_family, 0, &on_->queue);
  if (copy_family) {
    on_->copy_family = *copy_family;
    on_->call.vkGetDeviceQueue(on_->handle, *copy_family, 0, &on_->copy_queue);
  }
  call.vkGetPhysicalDeviceMemoryProperties(on_->physical, &on_->memory);
}

INTAGLIO_DEFINITION void device::borrow(const host_device& host) {
  if (host.instance == VK_NULL_HANDLE || host.physical == VK_NULL_HANDLE || host.device == VK_NULL_HANDLE ||
      host.queue == VK_NULL_HANDLE)
    throw device_error("", "use the host program's device",
                       "instance, physical device, device and queue must all be given; one of them is null");
  const auto from = std::make_shared<instance>(loader(host.entry), host.instance);
  const auto physical = from->physical_devices();
  const auto found = std::find(physical.begin(), physical.end(), host.physical);
  on_ = std::make_shared<connection>();
  on_->from = from;
  on_->physical = host.physical;
  on_->owned = false;
  on_->host_mutex = host.queue_mutex;
  on_->queue = host.queue;
  on_->queue_family = host.queue_family;
  on_->description = describe(*from, host.physical, static_cast<std::uint32_t>(found - physical.begin()));
  on_->label = on_->description.label();
  on_->enabled = host.enabled & on_->description.features;
  if (!on_->description.missing.empty())
    throw device_error(on_->label, "use the host program's device", detail::missing_text(on_->description));
  std::string unlisted;
  for (const auto& entry : feature_table)
    if (entry.required && !contains(host.enabled, entry.id))
      unlisted.append(unlisted.empty() ? "" : ", ").append(entry.name);
  if (!unlisted.empty())
    throw device_error(on_->label, "use the host program's device", "host_device::enabled does not list " + unlisted);
  on_->handle = host.device;
  look_up();
  from->call().vkGetPhysicalDeviceMemoryProperties(on_->physical, &on_->memory);
}

INTAGLIO_DEFINITION void device::look_up() {
  on_->call = on_->from->call();
  on_->call.look_up(on_->handle, on_->from->call().vkGetDeviceProcAddr);
}

INTAGLIO_DEFINITION std::vector<device_description> list_devices(PFN_vkGetInstanceProcAddr entry) {
  return translated([&] { return list_devices(instance(entry != nullptr ? loader(entry) : loader())); });
}

}  // namespace intaglio::gpu
