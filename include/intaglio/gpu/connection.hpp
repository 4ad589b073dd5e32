// SPDX-License-Identifier: MIT
// The connection that all objects of a device share: the VkDevice, its queue, its functions and its counters.
#pragma once

#include <intaglio/gpu/description.hpp>
#include <intaglio/gpu/device_handle.hpp>
#include <intaglio/platform/process.hpp>

#include <atomic>
#include <mutex>

namespace intaglio::gpu {

/// Which of a device's queues runs commands. A device without a queue for copies alone, or opened without it, runs both
/// on one queue.
enum class lane : std::uint8_t {
  work,    ///< dispatches and copies
  copies,  ///< copies alone, beside the work
};

/// An open device. All objects made on it share it, so it closes last. It destroys what it owns and nothing that a host
/// program lent.
struct connection : std::enable_shared_from_this<connection> {
  std::shared_ptr<instance> from;
  dispatch_table call{};
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkQueue copy_queue = VK_NULL_HANDLE;  ///< null: the device was opened with one queue
  std::uint32_t copy_family = 0;        ///< of copy_queue
  bool owned = true;
  std::mutex* host_mutex = nullptr;  ///< the host program's mutex for the queue
  std::mutex queue_mutex;
  device_description description;
  std::string label;
  feature_set enabled;
  VkPhysicalDeviceMemoryProperties memory{};
  device_counters counters;
  std::atomic<std::uint64_t> ended{0};  ///< grows when submissions from any `queue` object were seen to end
  std::atomic<bool> lost{false};        ///< set when nothing is in flight any more, or when everything in flight is
                                        ///< kept alive
  std::atomic<bool> reported{false};    ///< the driver reported the loss
  std::atomic<bool> abandoned{false};   ///< work on it never ended: objects made on it are never destroyed
  std::shared_ptr<connection> kept;     ///< itself, once abandoned
  std::vector<std::shared_ptr<const void>> kept_memory;  ///< memory of the host that work which never ended may still
                                                         ///< read
  platform::process_number process = platform::process_id();

  connection() = default;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() {
    if (owned && handle != VK_NULL_HANDLE && usable()) call.vkDestroyDevice(handle, nullptr);
  }

  /// False in a forked child: a fork has none of the driver's threads, so even destructors must not call the driver.
  bool usable() const noexcept { return process == platform::process_id(); }
  /// True where objects made on the device may be destroyed.
  bool may_destroy() const noexcept { return usable() && !abandoned; }

  /// Waits until nothing is in flight on the queues, whatever thread submitted it. Callers use it after a failed call,
  /// before they destroy objects. The queues of a lost device end in finite time, and then nothing counts as in use
  /// (Vulkan 1.3, 4.2.3 "Lost Device").
  void settle() noexcept {
    if (queue == VK_NULL_HANDLE || abandoned) return;
    const std::lock_guard own(queue_mutex);
    std::unique_lock<std::mutex> host;
    if (host_mutex != nullptr) host = std::unique_lock(*host_mutex);
    for (const VkQueue each : {copy_queue, queue}) {
      if (each == VK_NULL_HANDLE) continue;
      const VkResult result = call.vkQueueWaitIdle(each);
      if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST) return abandon();
    }
  }
  /// The queue of a lane, and its family.
  VkQueue queue_of(lane which) const noexcept { return shares(which) ? queue : copy_queue; }
  std::uint32_t family_of(lane which) const noexcept { return shares(which) ? queue_family : copy_family; }
  /// Whether a lane's commands run on the queue for work.
  bool shares(lane which) const noexcept { return which == lane::work || copy_queue == VK_NULL_HANDLE; }
  /// Marks the device as lost, because the driver reported it.
  void lose() noexcept {
    reported = true;
    settle();
    lost = true;
  }
  /// Abandons a device whose work may run for ever: it and everything that it may use stay alive until the process
  /// ends.
  void abandon() noexcept {
    if (abandoned.exchange(true)) return;
    kept = weak_from_this().lock();
    lost = true;
  }

  /// Keeps host memory that was lent to the device alive as long as the connection. If there is no memory to note it,
  /// the host memory is released.
  void keep(std::shared_ptr<const void> lent) noexcept {
    const std::lock_guard own(queue_mutex);
    try {
      kept_memory.push_back(std::move(lent));
    } catch (const std::bad_alloc&) {}
  }

  /// Throws where a call did not succeed, and remembers a lost device.
  void check(VkResult result, const char* operation, std::string_view subject = {}) {
    if (result != VK_SUCCESS) [[unlikely]]
      refuse(result, operation, subject);
  }

  [[noreturn]] void refuse(VkResult result, const char* operation, std::string_view subject = {},
                           const std::string& detail = {}) {
    if (result == VK_ERROR_DEVICE_LOST && !lost) lose();
    std::string what(operation);
    if (!subject.empty()) what.append(" ").append(subject);
    fail(result, label, what, detail.empty() && result == VK_ERROR_DEVICE_LOST ? fault_text() : detail);
  }

  /// @error device_error in a forked child; device_lost after the device was lost
  void require_alive(const char* operation) const {
    if (!usable())
      throw device_error(label, operation,
                         "this process was forked after the device was opened; open a device of its own");
    if (lost)
      throw device_lost(label, operation, "the device was lost before; open it anew",
                        static_cast<int>(VK_ERROR_DEVICE_LOST));
  }

  /// The driver's description of a loss that it reported, where VK_EXT_device_fault is on; else empty.
  std::string fault_text() const {
#ifdef VK_EXT_device_fault
    if (!reported || !contains(enabled, feature::device_fault) || call.vkGetDeviceFaultInfoEXT == nullptr) return {};
    typed<VkDeviceFaultCountsEXT> counts;
    if (call.vkGetDeviceFaultInfoEXT(handle, &counts, nullptr) != VK_SUCCESS) return {};
    std::vector<VkDeviceFaultAddressInfoEXT> addresses(counts.addressInfoCount);
    std::vector<VkDeviceFaultVendorInfoEXT> vendor(counts.vendorInfoCount);
    VkDeviceFaultInfoEXT info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT;
    info.pAddressInfos = addresses.data();
    info.pVendorInfos = vendor.data();
    counts.vendorBinarySize = 0;
    if (call.vkGetDeviceFaultInfoEXT(handle, &counts, &info) < 0) return {};
    std::string out = detail::fixed_text(info.description);
    for (std::size_t i = 0; i < addresses.size() && i < counts.addressInfoCount; ++i)
      out += ", address " + hexadecimal(addresses[i].reportedAddress);
    return out;
#else
    return {};
#endif
  }
};

/// A handle of a Vulkan object that depends on a device: destroyed with its owner, movable, not copyable.
template <class Handle, auto Destroy>
class owned_handle {
 public:
  owned_handle() = default;
  owned_handle(std::shared_ptr<connection> on, Handle handle) noexcept : on_(std::move(on)), handle_(handle) {}
  owned_handle(owned_handle&& other) noexcept
      : on_(std::move(other.on_)), handle_(std::exchange(other.handle_, Handle{})) {}
  owned_handle& operator=(owned_handle&& other) noexcept {
    if (this != &other) {
      reset();
      on_ = std::move(other.on_);
      handle_ = std::exchange(other.handle_, Handle{});
    }
    return *this;
  }
  ~owned_handle() { reset(); }

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Handle{}; }
  const std::shared_ptr<connection>& on() const noexcept { return on_; }

  void reset() noexcept {
    if (handle_ != Handle{} && on_->may_destroy()) (on_->call.*Destroy)(on_->handle, handle_, nullptr);
    handle_ = Handle{};
    on_.reset();
  }

 private:
  std::shared_ptr<connection> on_;
  Handle handle_{};
};

}  // namespace intaglio::gpu
