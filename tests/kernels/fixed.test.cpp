// SPDX-License-Identifier: MIT
// Activations in the form that products of a small batch of tokens read: token by token, and in tiles of eight tokens
// for products by matrices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "intaglio/reference/matmul.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {
/// Mesa 22 asks the CPU to round vectors of 16 only where it has AVX-512, and else rounds halves away from zero.
bool rounds_to_even(const kernel_device& on) {
#if defined(__x86_64__)
  return on.subgroup_size() != 16 || __builtin_cpu_supports("avx512f");
#else
  return on.subgroup_size() != 16;
#endif
}
}  // namespace

TEST_CASE("fixed: the reference's words, token by token or tiled; later tokens untouched") {
  kernel_device on;
  if (!rounds_to_even(on))
    SKIP("NOT RUN: needs AVX-512, without which lavapipe of Mesa 22 rounds halves away from zero in subgroups of 16");
  on.fixed_width = GENERATE(false, true);
  random_numbers random(3);
  constexpr std::uint32_t tokens = 11, room = 16, untouched = 0xa5a5a5a5u;
  for (const std::uint32_t width : {32u, 96u, 2560u})
    for (const std::uint32_t groups : {1u, 3u}) {
      auto input = random.floats(std::size_t{room} * width, -3, 3);
      for (std::size_t i = 0; i < input.size(); ++i)
        input[i] = std::ldexp(input[i], static_cast<int>(i / 32 % 40) - 20);
      std::fill_n(input.begin(), 32, 0.0f);  // a block of zeros
      const auto x = on.filled(input), state = on.filled(fresh_state(0, tokens, room, 8));
      std::vector<std::uint32_t> expected;
      for (std::size_t t = 0; t < tokens; ++t) {
        const auto words = reference::fixed_words(std::span(input).subspan(t * width, width));
        expected.insert(expected.end(), words.begin(), words.end());
      }
      const std::size_t each = kernels::fixed_words(width), blocks = width / 32;
      for (const std::uint32_t tiled : {0u, 1u}) {
        const auto output = on.poisoned(4 * room * each);
        on.run(kernels::kernel::fixed, 2,
               {{"width", width},
                {"prologue", static_cast<std::uint32_t>(kernels::prologue::plain)},
                {"eps", 0.0f},
                {"tiled", tiled}},
               {{"input", &x}, {"output", &output}, {"state", &state}}, {groups, room, 1});
        const auto found = output.read<std::uint32_t>();
        INFO("width " << width << ", " << groups << " workgroups a token, tiled " << tiled);
        if (tiled == 0) {
          CHECK(std::vector<std::uint32_t>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(tokens * each)) ==
                expected);
          CHECK(std::count(found.begin() + static_cast<std::ptrdiff_t>(tokens * each), found.end(), untouched) ==
                static_cast<std::ptrdiff_t>((room - tokens) * each));
          continue;
        }
        const auto tiles = reference::tiled_words(expected, width);
        std::size_t wrong = 0;
        for (std::size_t t = 0; t < room; ++t) {
          const std::size_t tile = t / 8 * 8 * each;
          for (std::size_t b = 0; b < blocks; ++b) {
            const auto check = [&](std::size_t at) {
              wrong += found[at] == (t < tokens ? tiles[at] : untouched) ? 0u : 1u;
            };
            for (std::size_t word = 0; word < 24; ++word) check(tile + (b * 3 + word / 8) * 64 + t % 8 * 8 + word % 8);
            for (std::size_t rest = 0; rest < 2; ++rest) check(tile + 192 * blocks + 16 * b + 8 * rest + t % 8);
          }
          if (t < tokens) {
            auto alone = std::vector<std::uint32_t>(expected.begin() + static_cast<std::ptrdiff_t>(t * each),
                                                    expected.begin() + static_cast<std::ptrdiff_t>((t + 1) * each));
            for (std::size_t b = 0; b < blocks; ++b)
              alone[(6 * blocks + b) * 4 + 1] = alone[(6 * blocks + b) * 4 + 2] = 0;
            CHECK(reference::untiled_words(found, width, t) == alone);
          }
        }
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("fixed: a block with what is no finite number has a scale that is none, and no other block has") {
  kernel_device on;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> input(8 * 96, 1.5f);
    input[2 * 96 + 40] = bad;
    const auto x = on.filled(input), state = on.filled(fresh_state(0, 8, 8, 8));
    const auto output = on.poisoned(4 * 8 * kernels::fixed_words(96));
    on.run(kernels::kernel::fixed, 1,
           {{"width", 96u},
            {"prologue", static_cast<std::uint32_t>(kernels::prologue::plain)},
            {"eps", 0.0f},
            {"tiled", 1u}},
           {{"input", &x}, {"output", &output}, {"state", &state}}, {1, 8, 1});
    const auto found = output.read<float>();
    for (std::size_t b = 0; b < 3; ++b)
      for (std::size_t t = 0; t < 8; ++t) CHECK(std::isnan(found[192 * 3 + 16 * b + t]) == (b == 1 && t == 2));
  }
}
