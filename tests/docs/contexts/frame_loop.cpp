// SPDX-License-Identifier: MIT
// The code around the frame loop of docs/embedding.md: stand-ins for SDL3's functions, as its headers declare them, and
// the host's own part.
#include <intaglio/gpu/features.hpp>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>

#include <mutex>
#include <string>

extern "C" {
using SDL_FunctionPointer = void (*)();
struct SDL_Event {
  unsigned type;
};
inline constexpr unsigned SDL_EVENT_QUIT = 0x100;
SDL_FunctionPointer SDL_Vulkan_GetVkGetInstanceProcAddr();
bool SDL_PollEvent(SDL_Event* event);
}

struct renderer {
  VkInstance instance;
  VkPhysicalDevice physical;
  std::uint32_t queue_family;
  PFN_vkCreateDevice create_device;
  PFN_vkGetDeviceQueue get_queue;
  VkDevice device;
  VkQueue queue;
  std::mutex queue_mutex;
  void begin();
  void draw(std::string_view text);
};

void frame_loop(renderer& host) {
  // the block
}
