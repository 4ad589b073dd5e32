// SPDX-License-Identifier: MIT
#include "intaglio/reference/embed.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("embed: rows of the table, the history, and nothing else") {
  kernel_device on;
  random_numbers random(1);
  const auto type = GENERATE(kernels::element::f16, kernels::element::f32, kernels::element::bf16);
  const std::uint32_t width = 132, vocab = 50, max_tokens = 5, context = 20;
  const auto table = elements_of(random.floats(std::size_t{vocab} * width, -2, 2), type);
  for (const std::uint32_t position : {0u, 17u, 19u, 20u, 4'000'000'000u}) {
    auto state = fresh_state(position, 4, max_tokens, context);
    const std::uint32_t ids[] = {7, 49, 50, 0xffffffffu};
    std::copy(std::begin(ids), std::end(ids), state.begin() + kernels::state::tokens);
    std::vector<float> expected(std::size_t{max_tokens} * width, std::bit_cast<float>(0xa5a5a5a5u));
    const auto table_buffer = on.filled(table), state_buffer = on.filled(state);
    const auto output = on.poisoned(expected.size() * 4);
    on.run(kernels::kernel::embed, 1, {{"width", width}, {"vocab_size", vocab}, {"table_element", static_cast<std::uint32_t>(type)}, {"max_tokens", max_tokens}, {"context", context}},
           {{"table", &table_buffer}, {"output", &output}, {"state", &state_buffer}}, {1, max_tokens, 1});
    reference::embed(table, type, vocab, width, max_tokens, context, state, expected);
    CHECK(compare(output.read<float>(), expected).bits == 0);
    CHECK(state_buffer.read<std::uint32_t>() == state);
  }
}
