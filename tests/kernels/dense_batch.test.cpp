// SPDX-License-Identifier: MIT
#include "intaglio/reference/dense_matmul.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("dense_batch: the reference's bits for every element, tile and width") {
  kernel_device on;
  on.fixed_width = GENERATE(false, true);
  random_numbers random(12);
  struct problem {
    kernels::element type;
    std::uint32_t columns, rows, subgroups, tile;
  };
  for (const auto& [type, columns, rows, subgroups, tile] :
       {problem{kernels::element::f16, 256, 63, 4, 8}, problem{kernels::element::f32, 8, 3, 1, 8},
        problem{kernels::element::bf16, 1032, 18, 2, 4}}) {
    const std::uint32_t tokens = 11, room = 16;
    const auto input = random.floats(std::size_t{room} * columns, -2, 2);
    const auto weight = elements_of(random.floats(std::size_t{rows} * columns, -0.1f, 0.1f), type);
    std::vector<float> expected(std::size_t{tokens} * rows);
    reference::dense_batch(std::span(input).first(std::size_t{tokens} * columns), weight, type, columns, rows,
                           expected);
    expected.resize(std::size_t{room} * rows, std::bit_cast<float>(0xa5a5a5a5u));
    const auto x = on.filled(input), w = on.filled(weight), s = on.filled(fresh_state(0, tokens, room, 8));
    const auto output = on.poisoned(expected.size() * 4);
    on.run(kernels::kernel::dense_batch, subgroups,
           {{"columns", columns},
            {"rows", rows},
            {"weight_element", static_cast<std::uint32_t>(type)},
            {"tile_tokens", tile}},
           {{"input", &x}, {"weight", &w}, {"output", &output}, {"state", &s}}, {3, (room + tile - 1) / tile, 1});
    INFO("columns " << columns << ", rows " << rows << ", tile of " << tile << ", " << subgroups << " subgroups of "
                    << on.subgroup_size());
    CHECK_SAME(on, output.read<float>(), expected);
  }
}
