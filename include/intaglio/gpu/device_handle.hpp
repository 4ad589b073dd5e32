// SPDX-License-Identifier: MIT
// A device opened for compute: chosen by rule or by the user, or lent by a host program. Only declarations with C
// handles; gpu/device.hpp has the definitions.
#pragma once

#include "intaglio/gpu/device_description.hpp"
#include "intaglio/gpu/validation.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace intaglio::gpu {

/// Counts of the host's expensive calls. Tests compare two readings to show that nothing is made or recorded between
/// tokens.
struct device_counters {
  std::atomic<std::uint64_t> allocations{0};        ///< allocations of device memory
  std::atomic<std::uint64_t> allocated_bytes{0};    ///< bytes that are allocated now
  std::atomic<std::uint64_t> pipelines{0};          ///< pipelines that were made, from the cache or not
  std::atomic<std::uint64_t> recorded_commands{0};  ///< vkCmd* calls
  std::atomic<std::uint64_t> submits{0};            ///< vkQueueSubmit calls
  std::atomic<std::uint64_t> waits{0};              ///< calls that waited for the device
};

/// How a device is chosen and opened.
struct device_options {
  std::string selector{};                               ///< index, UUID or part of the name; empty: by rule
  validation validate = validation_from_environment();  ///< what the validation layer checks
  bool allow_cpu = true;                                ///< a CPU driver may be taken when there is no GPU
  bool robust = false;                                  ///< bounds-checked buffer accesses where the device has them
  std::vector<feature> require{};                       ///< required features beyond required_features()
  PFN_vkGetInstanceProcAddr entry = nullptr;            ///< null: the system's loader
  /// Also takes a queue that only copies, where the device has one: for sessions that are cut over devices
  /// (runtime/cut_session.hpp). A queue is made with its device, so it cannot be asked for later.
  bool copies = false;
};

/// The Vulkan objects of a host program, which keeps them alive longer than anything made here. It made the device with
/// at least required_features(); of other features the library uses only those in `enabled`. After work that did not
/// end in time (device_lost) the host program keeps the objects until the process ends: see docs/gpu.md.
struct host_device {
  PFN_vkGetInstanceProcAddr entry = nullptr;   ///< the entry point of the loader that made the instance
  VkInstance instance = VK_NULL_HANDLE;        ///< made for Vulkan 1.3
  VkPhysicalDevice physical = VK_NULL_HANDLE;  ///< a physical device of the instance
  VkDevice device = VK_NULL_HANDLE;            ///< a device made from the physical device
  VkQueue queue = VK_NULL_HANDLE;              ///< a queue of the device, for compute
  std::uint32_t queue_family = 0;              ///< index of the queue's family
  feature_set enabled = required_features();   ///< features that the device was made with
  std::mutex* queue_mutex = nullptr;  ///< locked while the queue is used; null: the host program ensures that nobody
                                      ///< else uses the queue meanwhile
};

struct connection;

/// Chooses a device from list_devices() by index, by UUID, or by part of the name (case ignored). Without a selector it
/// takes the first usable device of the best type.
/// @error device_error: nothing matches, the match lacks a feature (each is named), or there is only a CPU and it is
/// not allowed
const device_description& choose_device(const std::vector<device_description>& devices, const std::string& selector,
                                        bool allow_cpu);

/// An open device. Movable; buffers, pipelines and recordings made on it keep it open as long as they live.
class device {
 public:
  /// Opens a device of its own.
  /// @error device_error: no loader, no driver, no device, no match, a missing feature; out_of_memory, device_lost by
  /// the driver
  explicit device(const device_options& options = {});
  /// Works on a host program's device and queue.
  /// @error device_error: a handle is null, or a required feature was not enabled
  explicit device(const host_device& host);

  /// Opens the same physical device once more, in its instance and with its features, but without a queue for copies.
  /// The new queue does not wait for the work of other queues.
  /// @error as for the constructor
  device another() const;

  /// The description of the device.
  const device_description& description() const noexcept;
  /// The device's limits that kernels depend on.
  const device_limits& limits() const noexcept;
  /// The device's name, as error messages begin with it.
  const std::string& label() const noexcept;
  /// True where the device has the feature and it is switched on.
  bool has(feature which) const noexcept;
  /// The features that are switched on.
  const feature_set& enabled() const noexcept;
  /// One sentence for the user where a CPU was chosen; else empty.
  std::string note() const;

  /// How often the host allocated, recorded, submitted and waited on this device.
  const device_counters& counters() const noexcept;
  /// The messages of the validation layer so far; empty when it is off.
  std::vector<std::string> validation_messages() const;
  /// Number of the validation layer's messages.
  std::size_t validation_message_count() const;
  /// True where the validation layer is on.
  bool validated() const noexcept;
  /// True once the device was lost; every call on it then throws device_lost.
  bool lost() const noexcept;

  /// The shared connection, for the other headers of gpu/ and for host programs that make Vulkan calls of their own.
  const std::shared_ptr<connection>& on() const noexcept { return on_; }
  /// The Vulkan device.
  VkDevice handle() const noexcept;

 private:
  explicit device(std::nullptr_t) {}
  void open(const device_options& options);
  void create(const feature_set& wanted, bool copies);
  void borrow(const host_device& host);
  void look_up();

  std::shared_ptr<connection> on_;
};

/// Opens an instance only to list the devices.
/// @error as for `instance` and list_devices
std::vector<device_description> list_devices(PFN_vkGetInstanceProcAddr entry = nullptr);

}  // namespace intaglio::gpu
