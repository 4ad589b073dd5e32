// SPDX-License-Identifier: MIT
// Buffers with device addresses, each with its own memory allocation. A model has few and large ones.
#pragma once

#include <intaglio/gpu/device.hpp>

#include <bit>
#include <span>

namespace intaglio::gpu {

/// Where a buffer's memory is.
enum class placement : std::uint8_t {
  device_local,  ///< fastest for the device; also mapped where device and host share memory
  shared,        ///< mapped, in device memory where the host can map that: small things that the host writes and the
                 ///< device reads
  readback,      ///< mapped and cached by the host: data that the host reads
  host,  ///< mapped, in the host's memory where that is separate: large things that the device reads across the bus
};

/// Which lanes (gpu/connection.hpp) use a buffer.
enum class lanes : std::uint8_t {
  one,   ///< one of them
  both,  ///< both; what one wrote, the other may use after a wait
};

/// How much of a heap is used.
struct heap_status {
  memory_heap heap;
  std::uint64_t available_bytes =
      0;  ///< bytes that the driver still lets this program allocate; without VK_EXT_memory_budget the whole heap
  std::uint64_t used_bytes = 0;  ///< bytes that the program has allocated, as the driver reports it; 0 without
                                 ///< VK_EXT_memory_budget
};

/// The heaps of a device with their free and used bytes. @error device_lost
inline std::vector<heap_status> memory_status(const device& of) {
  return translated([&] {
    typed<VkPhysicalDeviceMemoryProperties2> properties;
    typed<VkPhysicalDeviceMemoryBudgetPropertiesEXT> budget;
    const bool known = of.has(feature::memory_budget);
    if (known) properties.pNext = &budget;
    of.on()->from->call().vkGetPhysicalDeviceMemoryProperties2(of.on()->physical, &properties);
    const VkPhysicalDeviceMemoryProperties& memory = properties.memoryProperties;
    std::vector<heap_status> out;
    for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
      const std::uint64_t limit = budget.heapBudget[i], used = budget.heapUsage[i];
      const bool local = (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
      out.push_back({{memory.memoryHeaps[i].size, local},
                     known ? limit - (std::min)(limit, used) : memory.memoryHeaps[i].size,
                     known ? used : 0});
    }
    return out;
  });
}

/// A buffer for storage, copies and access by device address, with its memory. It is movable; its destructor frees
/// both.
class buffer {
 public:
  buffer() = default;

  /// @param purpose what the buffer is for, as errors name it: "the weights"
  /// @param used which lanes use the buffer
  /// @error argument_error: no bytes; device_error: larger than the device's limit (see allocate_split); out_of_memory
  buffer(const device& on, std::uint64_t size_bytes, placement where, std::string_view purpose,
         lanes used = lanes::one) {
    translated([&] { create(on.on(), size_bytes, where, purpose, used); });
  }

  /// Imports memory of the host as a buffer that the device reads in place, without a copy
  /// (VK_EXT_external_memory_host). Nobody may write to the bytes while the buffer lives.
  /// @param host begins and ends at multiples of device_limits::host_pointer_alignment
  /// @param keeper owns the bytes; held as long as the device may read them
  /// @error argument_error: `host` is not aligned; device_error: the device does not have the extension, or refuses
  /// this memory (drivers do where it is a file's); out_of_memory
  static buffer imported(const device& on, std::span<const std::byte> host, std::shared_ptr<const void> keeper,
                         std::string_view purpose) {
    return translated([&] {
      buffer out;
      out.import(on.on(), host, purpose);
      out.keeper_ = std::move(keeper);
      return out;
    });
  }

  buffer(buffer&& other) noexcept
      : keeper_(std::move(other.keeper_)), memory_(std::move(other.memory_)), buffer_(std::move(other.buffer_)),
        size_(std::exchange(other.size_, 0)), taken_(std::exchange(other.taken_, 0)),
        address_(std::exchange(other.address_, 0)), mapped_(std::exchange(other.mapped_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    if (this == &other) return *this;
    release();
    keeper_ = std::move(other.keeper_);
    memory_ = std::move(other.memory_);
    buffer_ = std::move(other.buffer_);
    size_ = std::exchange(other.size_, 0);
    taken_ = std::exchange(other.taken_, 0);
    address_ = std::exchange(other.address_, 0);
    mapped_ = std::exchange(other.mapped_, nullptr);
    return *this;
  }
  ~buffer() { release(); }

  std::uint64_t size_bytes() const noexcept { return size_; }
  VkDeviceAddress address() const noexcept { return address_; }
  VkBuffer handle() const noexcept { return buffer_.get(); }
  /// The host's view of the memory, coherent; empty where the host cannot see it.
  std::span<std::byte> mapped() const noexcept {
    return {mapped_, mapped_ != nullptr ? static_cast<std::size_t>(size_) : 0};
  }
  explicit operator bool() const noexcept { return static_cast<bool>(buffer_); }

 private:
  static constexpr VkMemoryPropertyFlags coherent =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

  void create(const std::shared_ptr<connection>& on, std::uint64_t size, placement where, std::string_view purpose,
              lanes used) {
    check_size(*on, size, purpose);
    typed<VkBufferCreateInfo> info;
    info.size = size;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    const std::array families{on->queue_family, on->copy_family};
    if (used == lanes::both && !on->shares(lane::copies)) {
      info.sharingMode = VK_SHARING_MODE_CONCURRENT;
      info.queueFamilyIndexCount = static_cast<std::uint32_t>(families.size());
      info.pQueueFamilyIndices = families.data();
    }
    VkBuffer made = VK_NULL_HANDLE;
    on->check(on->call.vkCreateBuffer(on->handle, &info, nullptr, &made), "make a buffer for", purpose);
    buffer_ = {on, made};

    VkMemoryRequirements needs{};
    on->call.vkGetBufferMemoryRequirements(on->handle, made, &needs);
    const std::uint32_t type = allocate(*on, needs, where, purpose);
    on->check(on->call.vkBindBufferMemory(on->handle, made, memory_.get(), 0), "bind the memory for", purpose);
    if ((on->memory.memoryTypes[type].propertyFlags & coherent) == coherent) {
      void* host_address = nullptr;
      on->check(on->call.vkMapMemory(on->handle, memory_.get(), 0, VK_WHOLE_SIZE, 0, &host_address),
                "map the memory for", purpose);
      mapped_ = static_cast<std::byte*>(host_address);
    }
    ask_address(*on, made, purpose);
    size_ = size;
  }

  static void check_size(const connection& on, std::uint64_t size, std::string_view purpose) {
    const device_limits& limits = on.description.limits;
    if (size == 0) throw argument_error("size of the buffer for " + std::string(purpose), "at least one byte", "0");
    on.require_alive("allocate memory");
    if (size > limits.max_buffer_bytes || size > limits.max_allocation_bytes)
      throw device_error(on.label, "allocate memory for " + std::string(purpose),
                         bytes_text(size) + " in one piece, the device allows " +
                             bytes_text((std::min)(limits.max_buffer_bytes, limits.max_allocation_bytes)));
  }
  void ask_address(const connection& on, VkBuffer of, std::string_view purpose) {
    typed<VkBufferDeviceAddressInfo> which;
    which.buffer = of;
    address_ = on.call.vkGetBufferDeviceAddress(on.handle, &which);
    if (address_ == 0)
      throw device_error(on.label, "ask the address of " + std::string(purpose), "the driver gives none");
  }

  void import(const std::shared_ptr<connection>& on, std::span<const std::byte> host, std::string_view purpose) {
    check_size(*on, host.size(), purpose);
    if (!contains(on->enabled, feature::external_memory_host))
      throw device_error(on->label, "read " + std::string(purpose) + " in place",
                         "VK_EXT_external_memory_host is not there or not enabled");
    const std::uint64_t step = (std::max<std::uint64_t>)(on->description.limits.host_pointer_alignment, 1);
    if (const auto host_address = reinterpret_cast<std::uintptr_t>(host.data());
        host_address % step != 0 || host.size() % step != 0)
      throw argument_error("memory for " + std::string(purpose), "multiples of " + std::to_string(step) + " bytes",
                           hexadecimal(host_address) + " and " + std::to_string(host.size()) + " bytes");
    constexpr auto kind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    typed<VkExternalMemoryBufferCreateInfo> outside;
    outside.handleTypes = kind;
    typed<VkBufferCreateInfo> info;
    info.pNext = &outside;
    info.size = host.size();
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    VkBuffer made = VK_NULL_HANDLE;
    on->check(on->call.vkCreateBuffer(on->handle, &info, nullptr, &made), "make a buffer for", purpose);
    buffer_ = {on, made};

    VkMemoryRequirements needs{};
    on->call.vkGetBufferMemoryRequirements(on->handle, made, &needs);
    void* const host_address =
        const_cast<std::byte*>(host.data());  // Vulkan's struct has no const; the buffer's usage allows no writes
    typed<VkMemoryHostPointerPropertiesEXT> possible;
    on->check(on->call.vkGetMemoryHostPointerPropertiesEXT(on->handle, kind, host_address, &possible), "read in place",
              purpose);
    const std::uint32_t types = needs.memoryTypeBits & possible.memoryTypeBits;
    if (types == 0 || needs.size > host.size())
      throw device_error(on->label, "read " + std::string(purpose) + " in place", "no type of memory fits");
    typed<VkImportMemoryHostPointerInfoEXT> from;
    from.handleType = kind;
    from.pHostPointer = host_address;
    typed<VkMemoryAllocateFlagsInfo> flags;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    flags.pNext = &from;
    typed<VkMemoryAllocateInfo> allocate;
    allocate.pNext = &flags;
    allocate.allocationSize = host.size();
    allocate.memoryTypeIndex = static_cast<std::uint32_t>(std::countr_zero(types));
    VkDeviceMemory memory = VK_NULL_HANDLE;
    on->check(on->call.vkAllocateMemory(on->handle, &allocate, nullptr, &memory), "read in place", purpose);
    memory_ = {on, memory};
    on->counters.allocations += 1;
    on->check(on->call.vkBindBufferMemory(on->handle, made, memory_.get(), 0), "bind the memory for", purpose);
    ask_address(*on, made, purpose);
    size_ = host.size();
  }

  /// Tries the memory types from the best down. @return the type that had memory
  std::uint32_t allocate(connection& on, const VkMemoryRequirements& needs, placement where, std::string_view purpose) {
    typed<VkMemoryAllocateFlagsInfo> flags;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    typed<VkMemoryAllocateInfo> info;
    info.pNext = &flags;
    info.allocationSize = needs.size;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    std::uint32_t tried = 0;  // one bit for each type
    for (;;) {
      const auto type = best_type(on, needs.memoryTypeBits & ~tried, where);
      if (!type) break;
      tried |= 1U << *type;
      info.memoryTypeIndex = *type;
      VkDeviceMemory memory = VK_NULL_HANDLE;
      result = on.call.vkAllocateMemory(on.handle, &info, nullptr, &memory);
      if (result == VK_SUCCESS) {
        memory_ = {buffer_.on(), memory};
        taken_ = needs.size;
        on.counters.allocations += 1;
        on.counters.allocated_bytes += taken_;
        return *type;
      }
      if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY) break;
    }
    std::uint64_t local = 0;
    for (const auto& heap : on.description.heaps) local += heap.device_local ? heap.size_bytes : 0;
    on.refuse(result, "allocate memory for", purpose,
              bytes_text(needs.size) + " wanted, " + bytes_text(on.counters.allocated_bytes) + " already taken of " +
                  bytes_text(local) + " on the device");
  }

  /// The type with the most wanted properties among `candidates`. Requests for device-local memory get only
  /// device-local types.
  static std::optional<std::uint32_t> best_type(const connection& on, std::uint32_t candidates, placement where) {
    const bool unified = on.description.type == device_type::integrated || on.description.type == device_type::cpu;
    std::optional<std::uint32_t> best;
    std::uint64_t best_score = 0;
    for (std::uint32_t type = 0; type < on.memory.memoryTypeCount; ++type) {
      if ((candidates >> type & 1U) == 0) continue;
      const VkMemoryType& each = on.memory.memoryTypes[type];
      constexpr VkMemoryPropertyFlags never =
          VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
          VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
      if ((each.propertyFlags & never) != 0) continue;
      const bool local = (each.propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
      const bool host = (each.propertyFlags & coherent) == coherent;
      const bool cached = (each.propertyFlags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
      if (where == placement::device_local ? !local : !host) continue;
      const std::uint64_t score = where == placement::device_local
                                      ? 1U + (host == unified ? 2U : 0U) + (host && unified && cached ? 1U : 0U)
                                  : where == placement::shared ? 1U + (local ? 2U : 0U)
                                  : where == placement::host   ? 1U + (local ? 0U : 2U)
                                                               : 1U + (cached ? 2U : 0U);
      // Among equal types the one in the larger heap: a small window onto device memory is for small things.
      if (!best || score > best_score ||
          (score == best_score && on.memory.memoryHeaps[each.heapIndex].size >
                                      on.memory.memoryHeaps[on.memory.memoryTypes[*best].heapIndex].size)) {
        best = type;
        best_score = score;
      }
    }
    return best;
  }

  void release() noexcept {
    if (memory_) memory_.on()->counters.allocated_bytes -= taken_;
    if (keeper_ && memory_ && !memory_.on()->may_destroy()) memory_.on()->keep(std::move(keeper_));
    buffer_.reset();
    memory_.reset();  // unmaps
    keeper_.reset();
    size_ = taken_ = address_ = 0;
    mapped_ = nullptr;
  }

  std::shared_ptr<const void> keeper_;  ///< owner of imported host memory
  owned_handle<VkDeviceMemory, &dispatch_table::vkFreeMemory> memory_;
  owned_handle<VkBuffer, &dispatch_table::vkDestroyBuffer> buffer_;
  std::uint64_t size_ = 0;
  std::uint64_t taken_ = 0;  ///< bytes of the memory allocation, at least size_
  VkDeviceAddress address_ = 0;
  std::byte* mapped_ = nullptr;
};

/// Allocates a region in as few buffers as the device's limits and its free memory allow.
/// @param unit no buffer except the last ends inside a unit of this number of bytes (a row of a matrix)
/// @param largest a smaller limit than the device's for one buffer, 0: none
/// @error argument_error: unit is 0 or larger than a buffer may be; out_of_memory: not even buffers of 16 MiB can be
/// allocated
inline std::vector<buffer> allocate_split(const device& on, std::uint64_t size_bytes, std::uint64_t unit,
                                          placement where, std::string_view purpose, std::uint64_t largest = 0) {
  return translated([&] {
    std::uint64_t piece = (std::min)(on.limits().max_buffer_bytes, on.limits().max_allocation_bytes);
    if (largest != 0) piece = (std::min)(piece, largest);
    if (unit == 0 || unit > piece)
      throw argument_error("unit of the region for " + std::string(purpose), "1 to " + std::to_string(piece) + " bytes",
                           std::to_string(unit));
    std::vector<buffer> out;
    for (std::uint64_t left = size_bytes; left > 0;) {
      const std::uint64_t size = (std::min)(left, piece / unit * unit);
      try {
        out.emplace_back(on, size, where, purpose);
        left -= size;
      } catch (const out_of_memory& refused) {
        if (refused.result() != static_cast<int>(VK_ERROR_OUT_OF_DEVICE_MEMORY) ||
            size / 2 < (std::max<std::uint64_t>)(unit, 16U << 20U))
          throw;
        piece = size / 2;
      }
    }
    return out;
  });
}

}  // namespace intaglio::gpu
