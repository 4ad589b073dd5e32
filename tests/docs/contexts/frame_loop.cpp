// SPDX-License-Identifier: MIT
// The code around the frame loop of docs/embedding.md: stand-ins for SDL3's functions, as its headers declare them, and
// the host's own part.
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

extern "C" {
struct SDL_Event {
  unsigned type;
};
inline constexpr unsigned SDL_EVENT_QUIT = 0x100;
bool SDL_PollEvent(SDL_Event* event);
}

struct renderer {
  PFN_vkGetInstanceProcAddr entry;
  VkInstance instance;
  VkPhysicalDevice physical;
  std::uint32_t queue_family;
  VkDevice device;
  VkQueue queue;
  intaglio::gpu::feature_set enabled;
  std::mutex queue_mutex;
  void draw(std::string_view text);
};

void frame_loop(renderer& host) {
  // the block
}
