// SPDX-License-Identifier: MIT
// A program with a Vulkan device, a queue and a frame loop of its own, in which a model tells a story. Each frame the
// model gets the device for at most a few milliseconds: embed MODEL [BUDGET_MS] [FRAMES]
#include <chrono>
#include <cstdlib>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/vulkan.hpp>
#include <iostream>
#include <thread>

#include "host_program.hpp"

int main(int count, char** arguments) try {
  using clock = std::chrono::steady_clock;
  const char* const file = count > 1 ? arguments[1] : "fable.gguf";
  const double budget_ms = count > 2 ? std::atof(arguments[2]) : 4;
  const int most_frames = count > 3 ? std::atoi(arguments[3]) : 100'000;
  constexpr auto frame_time = std::chrono::microseconds(16'667);

  host_program host;  // the program's own instance, device, queue and picture
  intaglio::gpu::device device({.entry = host.entry,
                                .instance = host.instance,
                                .physical = host.physical,
                                .device = host.device,
                                .queue = host.queue,
                                .queue_family = host.queue_family,
                                .enabled = host.enabled.enabled});
  intaglio::session<intaglio::models::fable> teller{device, file};
  auto story = teller.reply("Tell me a story about a clever crow.", {.max_tokens = 60});

  int frames = 0;
  for (bool more = true; more && frames < most_frames; ++frames) {
    const auto next_frame = clock::now() + frame_time;
    host.draw(frames);
    more = story.advance(budget_ms);  // takes finished tokens, submits no more than fits the budget, never waits
    std::cout << story.piece() << std::flush;
    host.wait_for_picture();
    std::this_thread::sleep_until(next_frame);
  }
  std::cout << "\n[" << frames << " frames, " << story.result().ids.size()
            << " tokens, finish: " << name(story.result().finish) << "]\n";
  return story.result().ids.empty() ? 1 : 0;
} catch (const std::exception& failure) {
  std::cerr << "embed: " << failure.what() << '\n';
  return 1;
}
