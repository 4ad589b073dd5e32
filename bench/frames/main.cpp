// SPDX-License-Identifier: MIT
// Tokens a second of a story that a frame loop advances, beside the story that a loop of next() reads. A loop without
// pauses shows what advance() costs; one with frames of 60 a second shows how much of the device a budget leaves.
// usage: frames MODEL [TOKENS [RUNS]], where MODEL is a file of the fable
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/vulkan.hpp>
#include <thread>
#include <vector>

#include "bench/measuring.hpp"

namespace {

using intaglio::bench::median;

using clock_type = std::chrono::steady_clock;
using teller = intaglio::session<intaglio::models::fable>;
constexpr auto prompt = "Tell me a story about a clever crow.";

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Tokens a second where each token is waited for.
double by_next(teller& model, std::size_t tokens) {
  const auto start = clock_type::now();
  auto story = model.reply(prompt, {.max_tokens = tokens});
  while (story.next()) {}
  return static_cast<double>(story.result().ids.size()) / seconds_since(start);
}

struct framed {
  double tokens_per_second = 0, longest_ms = 0;  ///< longest: the longest call of advance()
  std::size_t frames = 0;
};

/// A story that a frame loop advances. @param frame its duration; 0: calls follow each other
framed by_frames(teller& model, std::size_t tokens, double budget_ms, std::chrono::microseconds frame) {
  framed out;
  const auto start = clock_type::now();
  auto story = model.reply(prompt, {.max_tokens = tokens});
  for (bool more = true; more; ++out.frames) {
    const auto call = clock_type::now();
    more = story.advance(budget_ms);
    out.longest_ms = (std::max)(out.longest_ms, 1e3 * seconds_since(call));
    if (frame.count() != 0) std::this_thread::sleep_until(call + frame);
  }
  out.tokens_per_second = static_cast<double>(story.result().ids.size()) / seconds_since(start);
  return out;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) {
    std::fprintf(stderr, "usage: frames MODEL [TOKENS [RUNS]]\n");
    return 2;
  }
  const std::size_t tokens = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 200;
  const int runs = count > 3 ? std::atoi(arguments[3]) : 5;
  intaglio::gpu::device device;
  teller model{device, arguments[1]};
  by_next(model, tokens);

  std::vector<double> rates;
  for (int i = 0; i < runs; ++i) rates.push_back(by_next(model, tokens));
  std::printf("%-34s %9.1f tok/s\n", "next", median(rates));
  struct loop {
    const char* name;
    double budget_ms;
    std::chrono::microseconds frame;
  };
  for (const loop& each : {loop{"advance, no limit, no frames", 1e6, {}}, loop{"advance, 4 ms, no frames", 4, {}},
                           loop{"advance, 1 ms, no frames", 1, {}},
                           loop{"advance, 8 ms, 60 frames a second", 8, std::chrono::microseconds(16'667)},
                           loop{"advance, 4 ms, 60 frames a second", 4, std::chrono::microseconds(16'667)},
                           loop{"advance, 1 ms, 60 frames a second", 1, std::chrono::microseconds(16'667)}}) {
    std::vector<double> rate, longest;
    std::size_t frames = 0;
    for (int i = 0; i < runs; ++i) {
      const framed one = by_frames(model, tokens, each.budget_ms, each.frame);
      rate.push_back(one.tokens_per_second);
      longest.push_back(one.longest_ms);
      frames = one.frames;
    }
    std::printf("%-34s %9.1f tok/s, %6zu calls, the longest %.2f ms\n", each.name, median(rate), frames,
                median(longest));
  }
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "frames: %s\n", failure.what());
  return 1;
}
