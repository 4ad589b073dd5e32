// SPDX-License-Identifier: MIT
// A device opened for compute: chosen by rule or by the user's word, or lent by a host program.
#pragma once

#include <intaglio/gpu/connection.hpp>

#include <cctype>
#include <charconv>

namespace intaglio::gpu {

/// How a device is chosen and opened.
struct device_options {
  std::string selector{};  ///< index, UUID or part of the name; empty: by rule
  validation validate = validation_from_environment();
  bool allow_cpu = true;                      ///< a CPU driver may be taken when there is no GPU
  bool robust = false;                        ///< bounds-checked buffer accesses where the device has them
  std::vector<feature> require{};             ///< beyond required_features()
  PFN_vkGetInstanceProcAddr entry = nullptr;  ///< null: the system's loader
};

/// The Vulkan objects of a host program. It keeps them alive longer than anything made here, and made the device with
/// at least required_features(); of other features only those in `enabled` are used. After work that did not end in
/// time (device_lost) it keeps them as long as the process: see docs/gpu.md.
struct host_device {
  PFN_vkGetInstanceProcAddr entry = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  feature_set enabled = required_features();
  std::mutex* queue_mutex =
      nullptr;  ///< held while the queue is used; null: the host takes care that nobody else uses it then
};

namespace detail {

/// GPU before CPU: discrete, integrated, virtual, other, CPU.
constexpr int rank(device_type type) {
  constexpr std::array<int, 5> order{0, 1, 2, 4, 3};
  return order[static_cast<std::size_t>(type)];
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

inline std::string missing_text(const device_description& of) {
  std::string out = "driver version " + std::to_string(of.driver_version) + " lacks ";
  for (std::size_t i = 0; i < of.missing.size(); ++i) out += (i == 0 ? "" : ", ") + of.missing[i];
  return out;
}

inline std::string listing(const std::vector<device_description>& devices) {
  std::string out;
  for (const auto& each : devices)
    out += "\n  " + std::to_string(each.index) + ": " + each.label() + ", " + std::string(name(each.type)) + ", " +
           uuid_text(each.uuid) + (each.missing.empty() ? "" : ", " + missing_text(each));
  return out;
}

}  // namespace detail

/// Picks from list_devices(): by index, by UUID, by part of the name (case ignored); by rule the first usable of the
/// best type.
/// @error device_error: nothing matches, the match lacks a feature (each is named), or only a CPU is there and is not
/// allowed
inline const device_description& choose_device(const std::vector<device_description>& devices,
                                               const std::string& selector, bool allow_cpu) {
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

/// An open device. Movable; buffers, pipelines and recordings made on it keep it open as long as they live.
class device {
 public:
  /// Opens a device of its own.
  /// @error device_error: no loader, no driver, no device, no match, a missing feature; out_of_memory, device_lost by
  /// the driver
  explicit device(const device_options& options = {}) {
    translated([&] { open(options); });
  }

  /// Works on a host program's device and queue.
  /// @error device_error: a handle is null, or a required feature was not enabled
  explicit device(const host_device& host) {
    translated([&] { borrow(host); });
  }

  /// The same physical device opened once more, in the same instance and with the same features: its queue waits for no
  /// other one's work.
  /// @error as of opening
  device another() const {
    return translated([&] {
      on_->require_alive("open the device once more");
      device out(nullptr);
      out.on_ = std::make_shared<connection>();
      out.on_->from = on_->from;
      out.on_->physical = on_->physical;
      out.on_->description = on_->description;
      out.on_->label = on_->label;
      out.on_->queue_family = on_->queue_family;
      out.create(on_->enabled);
      return out;
    });
  }

  const device_description& description() const noexcept { return on_->description; }
  const device_limits& limits() const noexcept { return on_->description.limits; }
  const std::string& label() const noexcept { return on_->label; }
  /// True where the feature is there and switched on.
  bool has(feature which) const noexcept { return contains(on_->enabled, which); }
  const feature_set& enabled() const noexcept { return on_->enabled; }
  /// One sentence for the user, empty when there is nothing to say: a CPU was taken.
  std::string note() const {
    if (description().type != device_type::cpu) return {};
    return translated([&] { return "no GPU was chosen: computing on the CPU device " + label(); });
  }

  const device_counters& counters() const noexcept { return on_->counters; }
  /// What the validation layer said so far; empty when it is off.
  std::vector<std::string> validation_messages() const {
    return translated([&] { return on_->from->messages().messages(); });
  }
  std::size_t validation_message_count() const { return on_->from->messages().count(); }
  bool validated() const noexcept { return on_->from->validated(); }
  bool lost() const noexcept { return on_->lost; }

  /// For the other headers of this room and for host programs that mix in calls of their own.
  const std::shared_ptr<connection>& on() const noexcept { return on_; }
  const dispatch_table& call() const noexcept { return on_->call; }
  VkDevice handle() const noexcept { return on_->handle; }

 private:
  explicit device(std::nullptr_t) {}

  void open(const device_options& options) {
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
    create(wanted);
  }

  void create(const feature_set& wanted) {
    std::vector<const char*> extensions;
    for (const auto& entry : feature_table)
      if (entry.extension != nullptr && contains(wanted, entry.id)) extensions.push_back(entry.extension);
    feature_chain chain;
    chain.link_extensions([&](std::string_view extension) {
      return std::any_of(extensions.begin(), extensions.end(),
                         [&](std::string_view each) { return each == extension; });
    });
    enable(chain, wanted);

    const float priority = 1.0F;
    vk::DeviceQueueCreateInfo queue;
    queue.queueFamilyIndex = on_->queue_family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    vk::DeviceCreateInfo info;
    info.pNext = chain.head();
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    const dispatch_table& call = on_->from->call();
    on_->check(call.vkCreateDevice(on_->physical, native(info), nullptr, &on_->handle), "open the device");
    look_up();
    on_->enabled = wanted;
    on_->call.vkGetDeviceQueue(on_->handle, on_->queue_family, 0, &on_->queue);
    call.vkGetPhysicalDeviceMemoryProperties(on_->physical, &on_->memory);
  }

  void borrow(const host_device& host) {
    if (host.instance == VK_NULL_HANDLE || host.physical == VK_NULL_HANDLE || host.device == VK_NULL_HANDLE ||
        host.queue == VK_NULL_HANDLE)
      throw device_error("", "use the host program's device",
                         "instance, physical device, device and queue must all be given; one of them is null");
    const auto from = std::make_shared<instance>(loader(host.entry), host.instance);
    const auto physical = from->physical_devices();
    const auto place = std::find(physical.begin(), physical.end(), host.physical);
    on_ = std::make_shared<connection>();
    on_->from = from;
    on_->physical = host.physical;
    on_->owned = false;
    on_->host_mutex = host.queue_mutex;
    on_->queue = host.queue;
    on_->queue_family = host.queue_family;
    on_->description = describe(*from, host.physical, static_cast<std::uint32_t>(place - physical.begin()));
    on_->label = on_->description.label();
    on_->enabled = host.enabled & on_->description.features;
    for (const auto& entry : feature_table)
      if (entry.required && !contains(on_->enabled, entry.id))
        on_->description.missing.push_back("enabled feature " + std::string(entry.name));
    if (!on_->description.missing.empty())
      throw device_error(on_->label, "use the host program's device", detail::missing_text(on_->description));
    on_->handle = host.device;
    look_up();
    from->call().vkGetPhysicalDeviceMemoryProperties(on_->physical, &on_->memory);
  }

  void look_up() {
    on_->call.init(on_->from->handle(), on_->from->source().entry(), on_->handle,
                   on_->from->call().vkGetDeviceProcAddr);
  }

  std::shared_ptr<connection> on_;
};

/// Opens an instance just to list the devices.
/// @error as of `instance` and list_devices
inline std::vector<device_description> list_devices(PFN_vkGetInstanceProcAddr entry = nullptr) {
  return translated([&] { return list_devices(instance(entry != nullptr ? loader(entry) : loader())); });
}

}  // namespace intaglio::gpu
