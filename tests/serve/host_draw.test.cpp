// SPDX-License-Identifier: MIT
#include "../../examples/serve/host_draw.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <random>

#include <intaglio/reference/sample.hpp>

using namespace intaglio;

TEST_CASE("the host draws what the sampler draws") {
  std::mt19937 random(3);
  int wrong = 0;
  for (int run = 0; run < 400; ++run) {
    std::vector<float> logits(1 + random() % 700);
    for (float& each : logits)
      each = static_cast<float>(random() % 4000) / 200.0f - 10.0f;  // with equal ones among them
    if (run % 3 == 0) logits[random() % logits.size()] = -HUGE_VALF;
    std::vector<std::uint32_t> recent(random() % 20);
    for (auto& each : recent) each = static_cast<std::uint32_t>(random() % logits.size());
    sampling_options options{.temperature = static_cast<float>(random() % 5) * 0.5f,
                             .top_p = run % 2 == 0 ? 1.0f : 0.05f + static_cast<float>(random() % 90) / 100.0f,
                             .seed = random()};
    if (run % 4 == 1) options.top_k = 1 + static_cast<std::uint32_t>(random() % logits.size());
    if (run % 5 == 2) options.min_p = 0.2f;
    if (run % 7 == 3) options.repeat_penalty = 1.3f;
    const reference::sampling same{
        options.temperature, options.top_p, options.min_p, options.repeat_penalty, options.top_k.value_or(0), 64,
        options.seed};
    std::vector<float> own = logits;
    wrong += serve::draw_token(own, recent, options, 17) != reference::choose(logits, recent, same, 17);
  }
  CHECK(wrong == 0);
  std::vector<float> none{NAN, 1.0f};
  CHECK(serve::draw_token(none, {}, {}, 0) == 2);
}
