// SPDX-License-Identifier: MIT
#include "intaglio/reference/dense_matmul.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

static_assert(kernels::dense_rows_together(256) == 8 && kernels::dense_rows_together(576) == 3 &&
              kernels::dense_rows_together(4096) == 1);
static_assert(kernels::has_dense_rows(kernels::codec::f16, 4096) &&
              !kernels::has_dense_rows(kernels::codec::f32, 4096) &&
              !kernels::has_dense_rows(kernels::codec::bf16, 40));

TEST_CASE(
    "dense_rows: the reference's bits for every element and width, a last workgroup with fewer rows, and none where "
    "there is no token") {
  kernel_device on;
  on.fixed_width = GENERATE(false, true);
  random_numbers random(12);
  struct problem {
    kernels::element type;
    std::uint32_t columns, rows, together, count;
  };
  for (const auto& [type, columns, rows, together, count] :
       {problem{kernels::element::f16, 256, 61, 8, 1}, problem{kernels::element::f32, 32, 5, 3, 1},
        problem{kernels::element::bf16, 288, 7, 5, 1}, problem{kernels::element::f32, 544, 2, 1, 1},
        problem{kernels::element::f16, 64, 3, 8, 0}}) {
    const auto input = random.floats(columns, -2, 2);
    const auto weight = elements_of(random.floats(std::size_t{rows} * columns, -0.1f, 0.1f), type);
    std::vector<float> expected(rows, std::bit_cast<float>(0xa5a5a5a5u));
    if (count != 0) reference::dense_batch(input, weight, type, columns, rows, expected);
    const auto x = on.filled(input), w = on.filled(weight), s = on.filled(fresh_state(0, count, 1, 8));
    const auto output = on.poisoned(expected.size() * 4);
    const std::uint32_t groups = (rows + together - 1) / together, planes = 2;
    on.run(kernels::kernel::dense_rows, 1,
           {{"columns", columns},
            {"rows", rows},
            {"weight_element", static_cast<std::uint32_t>(type)},
            {"rows_together", together}},
           {{"input", &x}, {"weight", &w}, {"output", &output}, {"state", &s}},
           {(groups + planes - 1) / planes, planes, 1});
    INFO("columns " << columns << ", rows " << rows << ", " << together << " together, subgroups of "
                    << on.subgroup_size());
    CHECK_SAME(on, output.read<float>(), expected);
  }
}
