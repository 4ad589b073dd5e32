// SPDX-License-Identifier: MIT
// The host's part: a window of GLFW, its Vulkan instance, device, queue and swapchain. It shows a text as its title.
#pragma once

#define GLFW_INCLUDE_VULKAN
#include <GLFW/glfw3.h>

#include <cstdint>
#include <intaglio/gpu/host_features.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

class window {
 public:
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  std::mutex queue_mutex;
  intaglio::gpu::host_features enabled;

  window() {
    glfwInit();
    glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
    window_ = glfwCreateWindow(320, 200, "consumer", nullptr, nullptr);
    if (window_ == nullptr) throw std::runtime_error("expected a window, found none: is there a display?");
    open_instance();
    open_device();
    open_swapchain();
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() {
    vkDeviceWaitIdle(device);
    vkDestroySemaphore(device, acquired_, nullptr);
    for (const VkSemaphore each : painted_) vkDestroySemaphore(device, each, nullptr);
    vkDestroyCommandPool(device, pool_, nullptr);
    vkDestroySwapchainKHR(device, swapchain_, nullptr);
    vkDestroyDevice(device, nullptr);
    vkDestroySurfaceKHR(instance, surface_, nullptr);
    vkDestroyInstance(instance, nullptr);
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  bool is_open() {
    glfwPollEvents();
    return glfwWindowShouldClose(window_) == 0;
  }

  /// Paints a frame in one colour and shows the text; holds the queue's mutex while it uses the queue.
  void draw(const std::string& text) {
    glfwSetWindowTitle(window_, text.c_str());
    std::uint32_t image = 0;
    expect(vkAcquireNextImageKHR(device, swapchain_, UINT64_MAX, acquired_, VK_NULL_HANDLE, &image));
    const std::lock_guard lock(queue_mutex);
    expect(vkQueueWaitIdle(queue));
    expect(vkResetCommandPool(device, pool_, 0));
    record(images_[image], static_cast<float>(text.size() % 64) / 64);
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    auto work = made<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    work.waitSemaphoreCount = work.signalSemaphoreCount = work.commandBufferCount = 1;
    work.pWaitSemaphores = &acquired_, work.pSignalSemaphores = &painted_[image];
    work.pWaitDstStageMask = &stage, work.pCommandBuffers = &commands_;
    expect(vkQueueSubmit(queue, 1, &work, VK_NULL_HANDLE));
    auto show = made<VkPresentInfoKHR>(VK_STRUCTURE_TYPE_PRESENT_INFO_KHR);
    show.waitSemaphoreCount = show.swapchainCount = 1;
    show.pWaitSemaphores = &painted_[image], show.pSwapchains = &swapchain_, show.pImageIndices = &image;
    expect(vkQueuePresentKHR(queue, &show));
  }

 private:
  template <class Structure>
  static Structure made(VkStructureType type) {
    Structure out{};
    out.sType = type;
    return out;
  }
  static void expect(VkResult result) {
    if (result != VK_SUCCESS) throw std::runtime_error("a Vulkan call of the host failed: " + std::to_string(result));
  }

  void open_instance() {
    std::uint32_t count = 0;
    const char** const names = glfwGetRequiredInstanceExtensions(&count);
    auto about = made<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
    about.apiVersion = VK_API_VERSION_1_3;
    auto info = made<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    info.pApplicationInfo = &about, info.enabledExtensionCount = count, info.ppEnabledExtensionNames = names;
    expect(vkCreateInstance(&info, nullptr, &instance));
    expect(glfwCreateWindowSurface(instance, window_, nullptr, &surface_));
  }

  void open_device() {
    std::uint32_t count = 1;
    vkEnumeratePhysicalDevices(instance, &count, &physical);
    if (count == 0) throw std::runtime_error("expected a Vulkan device, found none");
    intaglio::gpu::feature_chain features;
    enabled = intaglio::gpu::features_for(
        reinterpret_cast<PFN_vkGetInstanceProcAddr>(glfwGetInstanceProcAddress(nullptr, "vkGetInstanceProcAddr")),
        instance, physical);
    enabled.enable_in(features);
    const float priority = 1;
    auto one = made<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    one.queueFamilyIndex = queue_family, one.queueCount = 1, one.pQueuePriorities = &priority;
    std::vector<const char*> extensions = enabled.extensions;
    extensions.push_back("VK_KHR_swapchain");
    auto info = made<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
    info.pNext = features.head();
    info.queueCreateInfoCount = 1, info.pQueueCreateInfos = &one;
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    expect(vkCreateDevice(physical, &info, nullptr, &device));
    vkGetDeviceQueue(device, queue_family, 0, &queue);
  }

  void open_swapchain() {
    VkBool32 shows = VK_FALSE;
    expect(vkGetPhysicalDeviceSurfaceSupportKHR(physical, queue_family, surface_, &shows));
    if (shows == VK_FALSE) throw std::runtime_error("expected a queue that shows pictures, found one that does not");
    VkSurfaceCapabilitiesKHR can{};
    expect(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(physical, surface_, &can));
    std::uint32_t count = 1;
    VkSurfaceFormatKHR format{};
    vkGetPhysicalDeviceSurfaceFormatsKHR(physical, surface_, &count, &format);
    auto info = made<VkSwapchainCreateInfoKHR>(VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR);
    info.surface = surface_, info.minImageCount = can.minImageCount + 1;
    info.imageFormat = format.format, info.imageColorSpace = format.colorSpace;
    info.imageExtent = can.currentExtent, info.imageArrayLayers = 1;
    info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT, info.preTransform = can.currentTransform;
    info.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR, info.presentMode = VK_PRESENT_MODE_FIFO_KHR;
    expect(vkCreateSwapchainKHR(device, &info, nullptr, &swapchain_));
    expect(vkGetSwapchainImagesKHR(device, swapchain_, &count, nullptr));
    images_.resize(count);
    expect(vkGetSwapchainImagesKHR(device, swapchain_, &count, images_.data()));
    auto pool = made<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    pool.queueFamilyIndex = queue_family;
    expect(vkCreateCommandPool(device, &pool, nullptr, &pool_));
    auto commands = made<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    commands.commandPool = pool_, commands.commandBufferCount = 1;
    expect(vkAllocateCommandBuffers(device, &commands, &commands_));
    const auto semaphore = made<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
    expect(vkCreateSemaphore(device, &semaphore, nullptr, &acquired_));
    painted_.resize(count);
    for (VkSemaphore& each : painted_) expect(vkCreateSemaphore(device, &semaphore, nullptr, &each));
  }

  void record(VkImage image, float shade) {
    auto begin = made<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    expect(vkBeginCommandBuffer(commands_, &begin));
    auto turn = made<VkImageMemoryBarrier>(VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER);
    turn.image = image, turn.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    turn.newLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, turn.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 0,
                         nullptr, 1, &turn);
    const VkClearColorValue colour{{shade, 0.4f, 0.6f, 1}};
    vkCmdClearColorImage(commands_, image, turn.newLayout, &colour, 1, &turn.subresourceRange);
    turn.oldLayout = turn.newLayout, turn.newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR;
    turn.srcAccessMask = turn.dstAccessMask, turn.dstAccessMask = 0;
    vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr,
                         0, nullptr, 1, &turn);
    expect(vkEndCommandBuffer(commands_));
  }

  GLFWwindow* window_ = nullptr;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  std::vector<VkImage> images_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkSemaphore acquired_ = VK_NULL_HANDLE;
  std::vector<VkSemaphore> painted_;  // one an image
};
