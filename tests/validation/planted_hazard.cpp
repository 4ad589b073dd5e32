// SPDX-License-Identifier: MIT
// Fills one buffer twice without a barrier. Nothing but synchronization validation sees that: CI runs this first, to
// know that the silence of the layer in the tests that follow means something.
#include <vulkan/vulkan.h>

#include "bare_device.hpp"

int main() {
  const bare_device device;
  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = 256;
  buffer_info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer buffer{};
  demand(vkCreateBuffer(device, &buffer_info, nullptr, &buffer), "vkCreateBuffer");
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.allocationSize = needs.size;
  VkDeviceMemory memory{};
  demand(vkAllocateMemory(device, &memory_info, nullptr, &memory), "vkAllocateMemory");
  demand(vkBindBufferMemory(device, buffer, memory, 0), "vkBindBufferMemory");

  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  VkCommandPool pool{};
  demand(vkCreateCommandPool(device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo commands_info{};
  commands_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  commands_info.commandPool = pool;
  commands_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commands_info.commandBufferCount = 1;
  VkCommandBuffer commands{};
  demand(vkAllocateCommandBuffers(device, &commands_info, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  demand(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  vkCmdFillBuffer(commands, buffer, 0, 256, 1);
  vkCmdFillBuffer(commands, buffer, 0, 256, 2);
  demand(vkEndCommandBuffer(commands), "vkEndCommandBuffer");

  vkDestroyCommandPool(device, pool, nullptr);
  vkDestroyBuffer(device, buffer, nullptr);
  vkFreeMemory(device, memory, nullptr);
}
