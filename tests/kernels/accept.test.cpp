// SPDX-License-Identifier: MIT
#include <algorithm>

#include "intaglio/reference/sample.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;
namespace at = kernels::state;

TEST_CASE(
    "accept: the reference's state, ring and history for right and wrong drafts, at the ring's and the context's end") {
  kernel_device on;
  random_numbers random(31);
  constexpr std::uint32_t max_tokens = 6, context = 40, ring_size = 7, draws = 4;
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t count = random.below(draws + 2), position = random.below(context + 2);
    auto state = fresh_state(position, count, max_tokens, context);
    state[at::generated] = random.below(30);
    std::vector<std::uint32_t> drawn(draws), ring(ring_size + 1, 0xa5a5a5a5u);
    for (auto& id : drawn) id = random.below(1000);
    for (std::uint32_t i = 0; i < max_tokens; ++i)
      state[at::tokens + i] = i != 0 && i <= draws && random.below(4) != 0 ? drawn[i - 1] : random.below(1000);
    const auto d = on.filled(drawn), s = on.filled(state), r = on.filled(ring);
    on.run(kernels::kernel::accept, 1,
           {{"ring_size", ring_size}, {"context", context}, {"max_tokens", max_tokens}, {"draws", draws}},
           {{"drawn", &d}, {"state", &s}, {"ring", &r}}, {1, 1, 1});
    ring.back() = reference::accept(drawn, max_tokens, context, state, std::span(ring).first(ring_size));
    INFO("round " << round << ", " << count << " tokens at " << position << ", " << ring.back() << " taken");
    CHECK(s.read<std::uint32_t>() == state);
    CHECK(r.read<std::uint32_t>() == ring);
    CHECK(ring.back() <= std::min(count, draws));
  }
}
