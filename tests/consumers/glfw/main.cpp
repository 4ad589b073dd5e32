// SPDX-License-Identifier: MIT
// Opens a window, loads a model in a thread of its own while frames are drawn, and lets it tell a story within the
// frames. usage: consumer FABLE.gguf
#include "window.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <intaglio/core/version.hpp>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>
#include <memory>
#include <optional>
#include <string>

int main(int count, char** arguments) try {
  if (count != 2) return 2;
  using teller = intaglio::session<intaglio::models::fable>;
  window host;
  const auto entry =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(glfwGetInstanceProcAddress(nullptr, "vkGetInstanceProcAddr"));
  const intaglio::gpu::device shared({.entry = entry,
                                      .instance = host.instance,
                                      .physical = host.physical,
                                      .device = host.device,
                                      .queue = host.queue,
                                      .queue_family = host.queue_family,
                                      .enabled = host.enabled.enabled,
                                      .queue_mutex = &host.queue_mutex});
  auto loading = std::async(std::launch::async, [&] { return std::make_unique<teller>(shared, arguments[1]); });
  std::unique_ptr<teller> model;
  std::optional<intaglio::text_stream> story;
  std::string text = "Once upon a time";
  int while_loading = 0, telling = 0;
  for (bool more = true; more && host.is_open();) {
    host.draw(text);
    if (!model && loading.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      model = loading.get();
      story.emplace(model->complete(text, {.max_tokens = 8}));
    }
    ++(model ? telling : while_loading);
    if (!story) continue;
    more = story->advance(2.0);
    text += story->piece();
  }
  std::printf("intaglio %d.%d.%d on %s\n%s\n%d frames while it loaded, %d while it generated\n",
              intaglio::version_major, intaglio::version_minor, intaglio::version_patch,
              shared.description().name.c_str(), text.c_str(), while_loading, telling);
  return while_loading > 0 && telling > 1 ? 0 : 4;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
