// SPDX-License-Identifier: MIT
#include "intaglio/reference/dense_matmul.hpp"

#include "intaglio/reference/sample.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("dense_matmul: the reference's bits for every element, width and number of rows") {
  kernel_device on;
  on.wide_loads = on.fixed_width = GENERATE(false, true);
  random_numbers random(6);
  struct sizes {
    std::uint32_t columns, rows;
  };
  for (const auto type : {kernels::element::f16, kernels::element::f32, kernels::element::bf16})
    for (const auto& [columns, rows] : {sizes{256, 64}, sizes{8, 5}, sizes{1032, 30}, sizes{2560, 17}})
      for (const std::uint32_t subgroups : {1u, 4u}) {
        // Compiling is the time: every element with every number of subgroups at one size, the other sizes with one
        // element each.
        const auto alone = columns == 8      ? kernels::element::f32
                           : columns == 1032 ? kernels::element::f16
                                             : kernels::element::bf16;
        if (columns != 256 && (type != alone || (subgroups == 1) != (columns == 8))) continue;
        const std::uint32_t tokens = 2, room = 3;
        const auto input = random.floats(std::size_t{room} * columns, -2, 2),
                   norm_weight = random.floats(columns, 0.5f, 1.5f);
        auto values = random.floats(std::size_t{rows} * columns, -0.1f, 0.1f);
        for (std::size_t i = 0; i < values.size(); i += 3) values[i] *= 1e-4f;  // f16 values without a leading one
        const auto weight = elements_of(values, type);
        std::vector<float> expected(std::size_t{tokens} * rows);
        reference::dense_matmul(std::span(input).first(std::size_t{tokens} * columns), norm_weight, weight, type,
                                columns, rows, 1e-5f, expected);
        expected.resize(std::size_t{room} * rows, std::bit_cast<float>(0xa5a5a5a5u));
        const auto x = on.filled(input), n = on.filled(norm_weight), w = on.filled(weight),
                   s = on.filled(fresh_state(0, tokens, room, 8));
        const auto output = on.poisoned(expected.size() * 4), firsts = on.poisoned(std::size_t{3} * room * 8);
        on.run(kernels::kernel::dense_matmul, subgroups,
               {{"columns", columns},
                {"rows", rows},
                {"weight_element", static_cast<std::uint32_t>(type)},
                {"eps", 1e-5f},
                {"keeps_firsts", subgroups == 4 ? 1u : 0u}},
               {{"input", &x},
                {"norm_weight", &n},
                {"weight", &w},
                {"output", &output},
                {"state", &s},
                {"firsts", &firsts}},
               {3, room, 1});
        INFO("columns " << columns << ", rows " << rows << ", element " << static_cast<int>(type) << ", " << subgroups
                        << " subgroups of " << on.subgroup_size());
        CHECK_SAME(on, output.read<float>(), expected);
        const auto found = firsts.read<reference::ranked_token>();
        for (std::size_t token = 0; token < room; ++token) {
          const auto part = std::span(found).subspan(3 * token, 3);
          const auto logits = output.read<float>();
          if (subgroups != 4 || token >= tokens)
            CHECK(std::ranges::all_of(part, [](const auto& each) { return each.key == 0xa5a5a5a5u; }));
          else
            CHECK(*std::max_element(part.begin(), part.end()) ==
                  reference::first_ranked(std::span(logits).subspan(token * rows, rows)));
        }
      }
}
