// SPDX-License-Identifier: MIT
// What a dispatch of a plan has addresses of, and memory for it that has not a byte more than the plan states.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/device.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::testing {

/// One address that a kernel is given, and the bytes after it.
struct stated_operand {
  std::string name;
  plan::region where;
  std::uint32_t slot, layer;
  std::uint64_t offset, bytes;
};

struct stated_operands {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<stated_operand> all;
  std::vector<std::size_t> push;       ///< of each push constant; none: the kernel does not read it
  std::vector<std::size_t> arguments;  ///< of each address that the resident dispatch reads from memory, layer
                                       ///< after layer; none as above

  std::vector<std::uint64_t> bytes() const {
    std::vector<std::uint64_t> out;
    for (const auto& each : all) out.push_back(each.bytes);
    return out;
  }
};

/// @return with the bytes that the accesses state; an access that starts at no operand goes on where another ends
inline stated_operands operands_of(const plan::sequence& in, const plan::dispatch& call) {
  const kernels::kernel_interface& face = kernels::interface_of(call.kernel);
  const std::span accesses = std::span(call.accesses).first(call.access_count);
  const std::span operands = std::span(call.push).first(face.push_count());
  stated_operands out;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const plan::operand& own = operands[i];
    std::uint64_t end = own.offset;
    for (const plan::access& a : accesses) {
      if (a.where != own.where || a.slot != own.slot) continue;
      const bool has_operand = std::ranges::any_of(operands, [&](const plan::operand& o) {
        return o.where == a.where && o.slot == a.slot && o.offset == a.offset;
      });
      if (has_operand ? a.offset == own.offset : a.offset == end) end = std::max(end, a.offset + a.bytes);
    }
    out.push.push_back(own.where == plan::region::none ? stated_operands::none : out.all.size());
    if (own.where != plan::region::none)
      out.all.push_back({std::string(face.push[i].name), own.where, own.slot, 0, own.offset, end - own.offset});
  }
  if (call.kernel != kernels::kernel::layers) return out;
  for (std::uint32_t layer = 0; layer < in.layers; ++layer)
    for (const plan::operand& own : in.arguments) {
      if (own.where == plan::region::none) {
        out.arguments.push_back(stated_operands::none);
        continue;
      }
      std::uint64_t bytes = 0;
      for (const plan::dispatch& step : in.period)
        for (const plan::access& a : std::span(step.accesses).first(step.access_count))
          if (a.where == own.where && a.slot == own.slot && a.offset == own.offset &&
              a.layer_stride == own.layer_stride)
            bytes = std::max(bytes, a.bytes);
      const std::uint64_t offset = own.offset + layer * own.layer_stride;
      const std::uint32_t its_layer = own.where == plan::region::arena ? 0 : layer;
      // What one layer leaves is what the next begins with.
      const auto same = [&](const stated_operand& o) {
        return o.where == own.where && o.slot == own.slot && o.layer == its_layer && o.offset == offset;
      };
      const auto found = std::ranges::find_if(out.all, same);
      out.arguments.push_back(static_cast<std::size_t>(found - out.all.begin()));
      if (found == out.all.end())
        out.all.push_back({std::string(plan::name(own.where)), own.where, own.slot, its_layer, offset, bytes});
    }
  return out;
}

/// Operands, each a buffer of its own, all in one allocation, so that what the layer does does not depend on an
/// allocator: the largest, which are read most, at the lowest addresses, where the layer's search begins. They stand
/// far apart, each between two guards of poison, since layer 1.3.239 looks at loads and stores, not at atomic
/// operations.
class exact_operands {
 public:
  static constexpr std::size_t gap = 1U << 20U, guard = 1U << 12U;
  static constexpr std::byte poison{0xa5};

  /// @param bytes of each
  exact_operands(const gpu::device& on, std::span<const std::uint64_t> bytes)
      : addresses(bytes.size()), contents(bytes.size()), buffers_(bytes.size()) {
    std::vector<std::size_t> offsets(bytes.size()), order(bytes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
    std::size_t end = 0;
    std::uint32_t types = std::numeric_limits<std::uint32_t>::max();
    for (const std::size_t i : order) {
      gpu::typed<VkBufferCreateInfo> info;
      info.size = bytes[i];
      info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
      VkBuffer made = VK_NULL_HANDLE;
      demand(on.on()->call.vkCreateBuffer(on.handle(), &info, nullptr, &made));
      buffers_[i] = {on.on(), made};
      VkMemoryRequirements needs{};
      on.on()->call.vkGetBufferMemoryRequirements(on.handle(), made, &needs);
      types &= needs.memoryTypeBits;
      offsets[i] = static_cast<std::size_t>((end + gap) / needs.alignment * needs.alignment);
      end = offsets[i] + static_cast<std::size_t>(needs.size);
    }
    gpu::typed<VkMemoryAllocateFlagsInfo> flags;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    gpu::typed<VkMemoryAllocateInfo> info;
    info.pNext = &flags;
    info.allocationSize = end + gap;
    info.memoryTypeIndex = host_type(on, types);
    VkDeviceMemory memory = VK_NULL_HANDLE;
    demand(on.on()->call.vkAllocateMemory(on.handle(), &info, nullptr, &memory));
    memory_ = {on.on(), memory};
    void* mapped = nullptr;
    demand(on.on()->call.vkMapMemory(on.handle(), memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      demand(on.on()->call.vkBindBufferMemory(on.handle(), buffers_[i].get(), memory, offsets[i]));
      gpu::typed<VkBufferDeviceAddressInfo> which;
      which.buffer = buffers_[i].get();
      addresses[i] = on.on()->call.vkGetBufferDeviceAddress(on.handle(), &which);
      contents[i] = {static_cast<std::byte*>(mapped) + offsets[i], static_cast<std::size_t>(bytes[i])};
      std::fill_n(contents[i].data() - guard, bytes[i] + 2 * guard, poison);
      std::ranges::fill(contents[i], std::byte{0});
    }
  }

  std::vector<std::uint64_t> addresses;
  std::vector<std::span<std::byte>> contents;  ///< the host's view

  /// Nothing was written beside the operands.
  bool intact() const {
    const auto clean = [](const std::byte* from) {
      return std::all_of(from, from + guard, [](std::byte b) { return b == poison; });
    };
    return std::ranges::all_of(contents, [&](std::span<std::byte> each) {
      return clean(each.data() - guard) && clean(each.data() + each.size());
    });
  }

 private:
  static void demand(VkResult result) { REQUIRE(result == VK_SUCCESS); }
  static std::uint32_t host_type(const gpu::device& on, std::uint32_t among) {
    constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkPhysicalDeviceMemoryProperties& memory = on.on()->memory;
    std::uint32_t type = 0;
    while (type < memory.memoryTypeCount &&
           ((among >> type & 1U) == 0 || (memory.memoryTypes[type].propertyFlags & wanted) != wanted))
      ++type;
    REQUIRE(type < memory.memoryTypeCount);
    return type;
  }

  gpu::owned_handle<VkDeviceMemory, &gpu::dispatch_table::vkFreeMemory> memory_;
  std::vector<gpu::owned_handle<VkBuffer, &gpu::dispatch_table::vkDestroyBuffer>> buffers_;
};

}  // namespace intaglio::testing
