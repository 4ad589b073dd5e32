// SPDX-License-Identifier: MIT
#include "intaglio/reference/activation.hpp"

#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("gated gives the reference's bits, whatever the activation, and leaves tokens past the count alone",
          "[kernels]") {
  kernel_device on;
  random_numbers random(12);
  constexpr std::uint32_t tokens = 3, room = 4;
  const std::uint32_t width = GENERATE(4u, 76u, 1320u), groups = GENERATE(1u, 3u);
  const activation type = GENERATE(activation::relu_squared, activation::silu, activation::gelu_tanh);
  const shader::activation_function act(type);
  const auto gates = random.floats(std::size_t{room} * width, -90, 90),
             ups = random.floats(std::size_t{room} * width, -3, 3);
  std::vector<float> expected(gates.size());
  reference::gated(*act, gates, ups, expected);
  for (const std::uint32_t subgroups : on.widths()) {
    const auto gate = on.filled(gates), up = on.filled(ups), out = on.poisoned(4 * expected.size()),
               state = on.filled(fresh_state(5, tokens, room, 64));
    const auto untouched = out.read<std::uint32_t>();
    on.run(kernels::kernel::gated, subgroups, {{"width", width}, {"activation", act}},
           {{"gate", &gate}, {"up", &up}, {"output", &out}, {"state", &state}}, {groups, room, 1});
    const auto found = out.read<float>();
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + tokens * width),
               std::vector<float>(expected.begin(), expected.begin() + tokens * width));
    const auto words = out.read<std::uint32_t>();
    CHECK(std::equal(words.begin() + tokens * width, words.end(), untouched.begin() + tokens * width));
  }
}
