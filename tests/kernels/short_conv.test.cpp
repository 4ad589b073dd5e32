// SPDX-License-Identifier: MIT
#include "intaglio/reference/recurrent.hpp"

#include "intaglio/kernels/short_conv.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("short_conv gives the reference's bits, of what comes out and of what it keeps", "[kernels]") {
  kernel_device on;
  random_numbers random(31);
  constexpr std::uint32_t room = 11;
  const std::uint32_t width = GENERATE(4u, 132u, 516u), taps = GENERATE(2u, 3u, 4u), tokens = GENERATE(1u, 2u, 3u, 9u),
                      position = GENERATE(0u, 7u), multiplied = GENERATE(0u, 1u), groups = GENERATE(1u, 3u);
  const std::uint32_t biased = groups == 1 ? position != 0 : position == 0;
  const std::uint32_t wide = multiplied != 0 ? 3 * width : width;
  const auto input = random.floats(std::size_t{room} * wide, -3, 3),
             weight = random.floats(std::size_t{width} * taps, -2, 2), bias = random.floats(width, -2, 2);
  auto kept = random.floats(std::size_t{taps - 1} * width, -3, 3);
  const auto before = kept;
  std::vector<float> expected(std::size_t{tokens} * width);
  reference::short_conv({width, taps, multiplied != 0}, input, weight, position, kept, expected,
                        biased != 0 ? std::span<const float>(bias) : std::span<const float>{});
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(input), w = on.filled(weight), b = on.filled(bias), states = on.filled(before),
               out = on.poisoned(std::size_t{4} * room * width),
               state = on.filled(fresh_state(position, tokens, room, 64));
    const auto untouched = out.read<std::uint32_t>();
    on.run(kernels::kernel::short_conv, subgroups,
           {{"width", width}, {"taps", taps}, {"multiplied", multiplied}, {"biased", biased}},
           {{"input", &in}, {"weight", &w}, {"bias", &b}, {"output", &out}, {"recurrent", &states}, {"state", &state}},
           {groups, kernels::short_conv_kernel::rows(room, taps), 1});
    const auto found = out.read<float>();
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + tokens * width), expected);
    CHECK_SAME(on, states.read<float>(), kept);
    const auto words = out.read<std::uint32_t>();
    CHECK(std::equal(words.begin() + tokens * width, words.end(), untouched.begin() + tokens * width));
  }
}

TEST_CASE("short_conv of a batch takes a token of each slot that runs, with what is kept of it", "[kernels]") {
  kernel_device on;
  random_numbers random(33);
  constexpr std::uint32_t slots = 4, rows = 3, width = 132, taps = 3, apart = (taps - 1) * width + 64;
  const bool multiplied = GENERATE(false, true);
  const std::uint32_t wide = multiplied ? 3 * width : width;
  const auto input = random.floats(std::size_t{slots} * wide, -3, 3),
             weight = random.floats(std::size_t{width} * taps, -2, 2);
  auto kept = random.floats(std::size_t{slots} * apart, -3, 3);
  const auto before = kept;
  const slots_of_batch batch({0, 5, 9, 2}, rows, 1);  // the second does not run, the last is after the rows
  std::vector<float> expected(std::size_t{rows} * width);
  for (const std::uint32_t slot : {0u, 2u})
    reference::short_conv({width, taps, multiplied}, std::span(input).subspan(slot * wide, wide), weight,
                          batch.positions[slot], std::span(kept).subspan(slot * apart, apart),
                          std::span(expected).subspan(slot * width, width));
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(input), w = on.filled(weight), states = on.filled(before),
               out = on.filled(std::vector<float>(std::size_t{slots} * width)), state = on.filled(batch.words);
    on.run(kernels::kernel::short_conv, subgroups,
           {{"width", width},
            {"taps", taps},
            {"multiplied", multiplied ? 1u : 0u},
            {"slot_words", batch.slot_words},
            {"slot_floats", apart}},
           {{"input", &in}, {"weight", &w}, {"output", &out}, {"recurrent", &states}, {"state", &state}},
           {2, slots, 1});
    const auto found = out.read<float>();
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + rows * width), expected);
    CHECK_SAME(on, states.read<float>(), kept);
  }
}

TEST_CASE("a short convolution of a sequence in pieces is that of the whole", "[kernels]") {
  random_numbers random(32);
  constexpr std::size_t width = 8, tokens = 23;
  for (const bool multiplied : {false, true})
    for (const std::size_t taps : {2u, 3u, 4u}) {
      const std::size_t wide = multiplied ? 3 * width : width;
      const auto input = random.floats(tokens * wide, -3, 3), weight = random.floats(width * taps, -2, 2);
      std::vector<float> kept((taps - 1) * width), whole(tokens * width), pieces(tokens * width);
      reference::short_conv({width, taps, multiplied}, input, weight, 0, kept, whole);
      const auto last = kept;
      std::size_t at = 0;
      for (const std::size_t count : {1u, 1u, 2u, 7u, 12u}) {
        reference::short_conv({width, taps, multiplied}, std::span(input).subspan(at * wide, count * wide), weight,
                              static_cast<std::uint32_t>(at), kept,
                              std::span(pieces).subspan(at * width, count * width));
        at += count;
      }
      CHECK(at == tokens);
      CHECK(pieces == whole);
      CHECK(kept == last);
    }
}
