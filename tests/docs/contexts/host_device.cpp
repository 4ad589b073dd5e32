// SPDX-License-Identifier: MIT
// The code around the device of docs/embedding.md: a stand-in for SDL3's function, as its headers declare it, and the
// host's own part.
#include <intaglio/gpu/host_features.hpp>
#include <intaglio/session.hpp>

#include <vector>

extern "C" {
using SDL_FunctionPointer = void (*)();
SDL_FunctionPointer SDL_Vulkan_GetVkGetInstanceProcAddr();
}

struct renderer {
  PFN_vkGetInstanceProcAddr entry;
  VkInstance instance;
  VkPhysicalDevice physical;
  std::uint32_t queue_family;
  PFN_vkCreateDevice create_device;
  PFN_vkGetDeviceQueue get_queue;
  VkDevice device;
  VkQueue queue;
  intaglio::gpu::feature_set enabled;
};

void make_device(renderer& host) {
  // the block
}
