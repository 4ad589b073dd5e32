// SPDX-License-Identifier: MIT
#include "intaglio/reference/embed.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("embed: rows of the table, the history, and nothing else") {
  kernel_device on;
  random_numbers random(1);
  const kernels::codec type = all_codecs[GENERATE(range(std::size_t{0}, all_codecs.size()))];
  const float scale = GENERATE(0.f, 50.5f);
  INFO(kernels::info(type).name);
  const std::uint32_t width = kernels::is_dense(type) ? 132 : 512, vocab = 50, max_tokens = 5, context = 20;
  const auto table = random_weight(random, type, kernels::row_order::plain(vocab), width);
  for (const std::uint32_t position : {0u, 17u, 19u, 20u, 4'000'000'000u}) {
    auto state = fresh_state(position, 4, max_tokens, context);
    const std::uint32_t ids[] = {7, 49, 50, 0xffffffffu};
    std::copy(std::begin(ids), std::end(ids), state.begin() + kernels::state::tokens);
    std::vector<float> expected(std::size_t{max_tokens} * width, std::bit_cast<float>(0xa5a5a5a5u));
    const auto table_buffer = on.filled(table), state_buffer = on.filled(state);
    const auto output = on.poisoned(expected.size() * 4);
    on.run(kernels::kernel::embed, 1,
           {{"width", width},
            {"vocab_size", vocab},
            {"table_element", static_cast<std::uint32_t>(type)},
            {"max_tokens", max_tokens},
            {"context", context},
            {"scale", scale}},
           {{"table", &table_buffer}, {"output", &output}, {"state", &state_buffer}}, {1, max_tokens, 1});
    reference::embed(table, type, vocab, width, max_tokens, context, state, expected, scale);
    CHECK(compare(output.read<float>(), expected).bits == 0);
    CHECK(state_buffer.read<std::uint32_t>() == state);
  }
}

TEST_CASE("embed: rows of positions and of kinds of text are added") {
  kernel_device on;
  random_numbers random(3);
  constexpr std::uint32_t width = 76, vocab = 50, max_tokens = 5, context = 64, positions = 9;
  const std::uint32_t kinds = GENERATE(0u, 1u, 2u), second = GENERATE(0u, 8u);
  const bool placed = GENERATE(false, true);
  const auto table = random_weight(random, kernels::codec::f32, kernels::row_order::plain(vocab), width);
  const auto of_positions = random.floats(positions * width, -2, 2), of_kinds = random.floats(2 * width, -2, 2);
  auto state = fresh_state(6, max_tokens, max_tokens, context);  // the last tokens are after the last position
  state[kernels::state::second_text] = second;
  for (std::uint32_t t = 0; t < max_tokens; ++t) state[kernels::state::tokens + t] = 7 * t;
  std::vector<float> expected(std::size_t{max_tokens} * width);
  const auto table_buffer = on.filled(table), state_buffer = on.filled(state),
             position_buffer = on.filled(of_positions), kind_buffer = on.filled(of_kinds),
             output = on.poisoned(expected.size() * 4);
  on.run(kernels::kernel::embed, 1,
         {{"width", width},
          {"vocab_size", vocab},
          {"table_element", static_cast<std::uint32_t>(kernels::codec::f32)},
          {"max_tokens", max_tokens},
          {"context", context},
          {"positions", placed ? positions : 0u},
          {"kinds", kinds}},
         {{"table", &table_buffer},
          {"output", &output},
          {"state", &state_buffer},
          {"position_table", &position_buffer},
          {"kind_table", &kind_buffer}},
         {1, max_tokens, 1});
  reference::embed(table, kernels::codec::f32, vocab, width, max_tokens, context, state, expected, 0,
                   placed ? std::span<const float>(of_positions) : std::span<const float>(),
                   std::span<const float>(of_kinds).first(std::size_t{kinds} * width));
  CHECK(compare(output.read<float>(), expected).bits == 0);
  const auto row = [&](std::uint32_t t, std::uint32_t kind, std::uint32_t position) {
    const float x = reference::weight_at(kernels::codec::f32, table, width, 7 * t, 3);
    return x + (kinds != 0 ? of_kinds[kind * width + 3] : 0) + (placed ? of_positions[position * width + 3] : 0);
  };
  CHECK(expected[3] == row(0, 0, 6));
  CHECK(expected[4 * width + 3] == row(4, kinds == 2 && second != 0 ? 1 : 0, 8));
}

TEST_CASE("embed: further workgroups make blank what is waited for, and of attention's spans those of the pass") {
  kernel_device on;
  constexpr std::uint32_t width = 132, vocab = 3, max_tokens = 1, context = 1024, blank_quads = 70, stretches = 3,
                          span_quads = 5, spans = 4, stretch_quads = 22, ones = 0xffffffffu, poison = 0xa5a5a5a5u;
  const std::vector<std::byte> table(std::size_t{4} * width * vocab);
  for (const std::uint32_t position : {0u, 255u, 256u, 700u, 1023u, 4'000'000'000u}) {
    const auto state = fresh_state(position, 1, max_tokens, context);
    const auto table_buffer = on.filled(table), state_buffer = on.filled(state);
    const auto output = on.poisoned(4 * width), blank = on.poisoned(16 * (blank_quads + 1)),
               of_spans = on.poisoned(16 * stretches * stretch_quads);
    on.run(kernels::kernel::embed, 2,
           {{"width", width},
            {"vocab_size", vocab},
            {"table_element", static_cast<std::uint32_t>(kernels::codec::f32)},
            {"max_tokens", max_tokens},
            {"context", context},
            {"blank_quads", blank_quads},
            {"stretches", stretches},
            {"span_quads", span_quads},
            {"spans", spans},
            {"stretch_quads", stretch_quads}},
           {{"table", &table_buffer},
            {"output", &output},
            {"state", &state_buffer},
            {"blank", &blank},
            {"blank_spans", &of_spans}},
           {4, max_tokens, 1});
    CHECK(output.read<float>() == std::vector<float>(width));
    const auto words = blank.read<std::uint32_t>();
    for (std::size_t i = 0; i < words.size(); ++i) REQUIRE(words[i] == (i < 4 * blank_quads ? ones : poison));
    const std::uint32_t wanted = 4 * span_quads * std::min(position / 256 + 1, spans);
    const auto found = of_spans.read<std::uint32_t>();
    for (std::size_t i = 0; i < found.size(); ++i)
      REQUIRE(found[i] == (i % (4 * stretch_quads) < wanted ? ones : poison));
  }
}
