// SPDX-License-Identifier: MIT
// The Vulkan part of a program that is not intaglio: it opens a device with the features that intaglio names and draws
// pictures.
#pragma once

#include <array>
#include <cstdint>
#include <intaglio/gpu/device.hpp>
#include <intaglio/gpu/host_features.hpp>
#include <stdexcept>
#include <vector>

class host_program {
 public:
  PFN_vkGetInstanceProcAddr entry = intaglio::gpu::loader().entry();
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  intaglio::gpu::host_features enabled;

  host_program() {
    VkApplicationInfo about{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "embed", 1, nullptr, 0, VK_API_VERSION_1_3};
    VkInstanceCreateInfo instance_info{
        VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &about, 0, nullptr, 0, nullptr};
    expect(function<PFN_vkCreateInstance>("vkCreateInstance")(&instance_info, nullptr, &instance));
    std::uint32_t count = 1;
    function<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance, &count, &physical);
    if (count == 0) throw std::runtime_error("no Vulkan device");

    intaglio::gpu::feature_chain features;  // what this program needs goes into the same chain
    enabled = intaglio::gpu::features_for(entry, instance, physical);
    enabled.enable_in(features);
    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info{
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, queue_family, 1, &priority};
    VkDeviceCreateInfo device_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   features.head(),
                                   0,
                                   1,
                                   &queue_info,
                                   0,
                                   nullptr,
                                   static_cast<std::uint32_t>(enabled.extensions.size()),
                                   enabled.extensions.data(),
                                   nullptr};
    expect(function<PFN_vkCreateDevice>("vkCreateDevice")(physical, &device_info, nullptr, &device));
    function<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(device, queue_family, 0, &queue);
    make_picture();
  }
  host_program(const host_program&) = delete;
  host_program& operator=(const host_program&) = delete;
  ~host_program() {
    function<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(device);
    function<PFN_vkDestroyFence>("vkDestroyFence")(device, drawn_, nullptr);
    function<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(device, pool_, nullptr);
    function<PFN_vkDestroyBuffer>("vkDestroyBuffer")(device, picture_, nullptr);
    function<PFN_vkFreeMemory>("vkFreeMemory")(device, memory_, nullptr);
    function<PFN_vkDestroyDevice>("vkDestroyDevice")(device, nullptr);
    function<PFN_vkDestroyInstance>("vkDestroyInstance")(instance, nullptr);
  }

  /// Paints a frame in one colour on the queue that the model uses too.
  void draw(int frame) {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr,
                                   VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
    expect(function<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer")(commands_, &begin));
    function<PFN_vkCmdFillBuffer>("vkCmdFillBuffer")(commands_, picture_, 0, picture_bytes,
                                                     static_cast<std::uint32_t>(frame) * 0x010203u);
    expect(function<PFN_vkEndCommandBuffer>("vkEndCommandBuffer")(commands_));
    VkSubmitInfo work{VK_STRUCTURE_TYPE_SUBMIT_INFO, nullptr, 0, nullptr, nullptr, 1, &commands_, 0, nullptr};
    expect(function<PFN_vkQueueSubmit>("vkQueueSubmit")(queue, 1, &work, drawn_));
  }
  void wait_for_picture() {
    expect(function<PFN_vkWaitForFences>("vkWaitForFences")(device, 1, &drawn_, VK_TRUE, 1'000'000'000));
    expect(function<PFN_vkResetFences>("vkResetFences")(device, 1, &drawn_));
  }

 private:
  static constexpr VkDeviceSize picture_bytes = 4 * 320 * 200;

  static void expect(VkResult result) {
    if (result != VK_SUCCESS)
      throw std::runtime_error("Vulkan call of the host program: " + intaglio::gpu::result_name(result));
  }
  template <class Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(entry(instance, name));
  }

  void make_picture() {
    VkBufferCreateInfo buffer{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                              nullptr,
                              0,
                              picture_bytes,
                              VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                              VK_SHARING_MODE_EXCLUSIVE,
                              0,
                              nullptr};
    expect(function<PFN_vkCreateBuffer>("vkCreateBuffer")(device, &buffer, nullptr, &picture_));
    VkMemoryRequirements needs{};
    function<PFN_vkGetBufferMemoryRequirements>("vkGetBufferMemoryRequirements")(device, picture_, &needs);
    std::uint32_t type = 0;
    while ((needs.memoryTypeBits >> type & 1u) == 0) ++type;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, type};
    expect(function<PFN_vkAllocateMemory>("vkAllocateMemory")(device, &allocate, nullptr, &memory_));
    expect(function<PFN_vkBindBufferMemory>("vkBindBufferMemory")(device, picture_, memory_, 0));
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr,
                                 VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, queue_family};
    expect(function<PFN_vkCreateCommandPool>("vkCreateCommandPool")(device, &pool, nullptr, &pool_));
    VkCommandBufferAllocateInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_,
                                         VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    expect(function<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(device, &commands, &commands_));
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    expect(function<PFN_vkCreateFence>("vkCreateFence")(device, &fence, nullptr, &drawn_));
  }

  VkBuffer picture_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence drawn_ = VK_NULL_HANDLE;
};
