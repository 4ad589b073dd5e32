// SPDX-License-Identifier: MIT
#include "intaglio/reference/norm_quantize.hpp"

#include <cmath>
#include <limits>

#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("norm_quantize: int8 values, scale and sum of the reference; later tokens untouched") {
  kernel_device on;
  on.wide_loads = on.fixed_width = GENERATE(false, true);
  const auto before = GENERATE(kernels::prologue::norm_quantize, kernels::prologue::quantize);
  random_numbers random(2);
  for (const std::uint32_t width : {16u, 256u, 640u, 1024u, 2560u, 6912u})
    for (const std::uint32_t subgroups : on.widths()) {
      const std::uint32_t tokens = 3, room = 5;
      const auto input = random.floats(std::size_t{room} * width, -3, 3), weight = random.floats(width, 0.5f, 1.5f);
      const auto state = fresh_state(0, tokens, room, 8);
      const auto x = on.filled(input), w = on.filled(weight), s = on.filled(state);
      const auto output = on.poisoned(std::size_t{room} * width), factors = on.poisoned(room * 8);
      on.run(kernels::kernel::norm_quantize, subgroups,
             {{"width", width}, {"eps", 1e-5f}, {"prologue", static_cast<std::uint32_t>(before)}},
             {{"input", &x}, {"norm_weight", &w}, {"output", &output}, {"factors", &factors}, {"state", &s}},
             {1, room, 1});
      std::vector<std::int8_t> expected(std::size_t{tokens} * width);
      std::vector<reference::factors> expected_factors(tokens);
      reference::norm_quantize(input,
                               before == kernels::prologue::quantize ? std::span<const float>() : std::span(weight),
                               width, 1e-5f, expected, expected_factors);
      auto found = output.read<std::int8_t>();
      auto found_factors = factors.read<reference::factors>();
      for (std::size_t i = expected.size(); i < found.size(); ++i)
        REQUIRE(found[i] == static_cast<std::int8_t>(poison));
      found.resize(expected.size());
      found_factors.resize(tokens);
      INFO("width " << width << ", " << subgroups << " subgroups of " << on.subgroup_size());
      CHECK(found == expected);
      for (std::size_t t = 0; t < tokens; ++t) {
        CHECK(found_factors[t].sum == expected_factors[t].sum);
        CHECK(std::abs(found_factors[t].inverse_scale - expected_factors[t].inverse_scale) <=
              1e-6f * expected_factors[t].inverse_scale);
      }
    }
}

TEST_CASE("norm_quantize: a token of zeros") {
  kernel_device on;
  const std::vector<float> zeros(64), ones(64, 1.0f);
  const auto x = on.filled(zeros), w = on.filled(ones), s = on.filled(fresh_state(0, 1, 1, 8));
  const auto output = on.poisoned(64), factors = on.poisoned(8);
  on.run(kernels::kernel::norm_quantize, 1, {{"width", 64u}, {"eps", 0.0f}},
         {{"input", &x}, {"norm_weight", &w}, {"output", &output}, {"factors", &factors}, {"state", &s}}, {1, 1, 1});
  CHECK(factors.intact());
}

TEST_CASE("norm_quantize: what is no number among a token's activations shows in its factor, and in no other token's") {
  kernel_device on;
  on.wide_loads = on.fixed_width = GENERATE(false, true);
  const auto before =
      static_cast<std::uint32_t>(GENERATE(kernels::prologue::norm_quantize, kernels::prologue::quantize));
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), 1e30f})
    for (const std::uint32_t subgroups : on.widths()) {
      std::vector<float> input(2 * 640, 0.5f);
      input[333] = wrong;
      const std::vector<float> ones(640, 1.0f);
      const auto x = on.filled(input), w = on.filled(ones), s = on.filled(fresh_state(0, 2, 2, 8));
      const auto output = on.poisoned(2 * 640), factors = on.poisoned(16);
      on.run(kernels::kernel::norm_quantize, subgroups, {{"width", 640u}, {"eps", 1e-5f}, {"prologue", before}},
             {{"input", &x}, {"norm_weight", &w}, {"output", &output}, {"factors", &factors}, {"state", &s}},
             {1, 2, 1});
      const auto found = factors.read<reference::factors>();
      INFO(wrong << ", " << subgroups << " subgroups");
      CHECK(std::isnan(found[0].inverse_scale));
      CHECK(std::isfinite(found[1].inverse_scale));
    }
}
