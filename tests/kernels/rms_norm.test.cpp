// SPDX-License-Identifier: MIT
#include "intaglio/kernels/rms_norm.hpp"

#include <cmath>

#include "intaglio/reference/canonical.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("rms_norm, centered: LayerNorm of the tokens of the pass, where they are, with a bias and without") {
  kernel_device on;
  const std::uint32_t centered = GENERATE(1u, 2u);
  const std::uint32_t width = GENERATE(4u, 64u, 172u, 2560u), tokens = 2, room = 3;
  random_numbers random(33);
  auto x = random.floats(std::size_t{room} * width, -2, 3);
  const auto weight = random.floats(width, 0.5f, 1.5f), bias = random.floats(width, -1, 1);
  std::vector<float> expected = x;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const auto row = std::span(expected).subspan(std::size_t{t} * width, width);
    reference::layer_norm(row, weight, centered == 1 ? std::span<const float>(bias) : std::span<const float>{}, 1e-12f,
                          row);
  }
  for (const std::uint32_t subgroups : on.widths()) {
    const auto values = on.filled(x), norm_weight = on.filled(weight), norm_bias = on.filled(bias),
               state = on.filled(fresh_state(0, tokens, room, 8));
    on.run(kernels::kernel::rms_norm, subgroups, {{"width", width}, {"eps", 1e-12f}, {"centered", centered}},
           {{"input", &values},
            {"norm_weight", &norm_weight},
            {"output", &values},
            {"state", &state},
            {"bias", &norm_bias}},
           {1, room, 1});
    CHECK_SAME(on, values.read<float>(), expected);
  }
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < width; ++i) mean += x[i] / static_cast<double>(width);
  for (std::size_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(width);
  for (std::size_t i = 0; i < width; ++i)
    CHECK(std::abs(expected[i] - ((x[i] - mean) / std::sqrt(variance) * weight[i] + (centered == 1 ? bias[i] : 0))) <
          1e-5);
}
