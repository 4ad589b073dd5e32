// SPDX-License-Identifier: MIT
#include "kernels/ternary_product.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;

static_assert(kernels::has_ternary_rows(6912, 2560) && !kernels::has_ternary_rows(96, 64) &&
              !kernels::has_ternary_rows(16384, 64));

TEST_CASE(
    "ternary_rows: every epilogue gives the reference's bits, also with a last workgroup of one group, the largest "
    "sums, and no token") {
  kernel_device on;
  on.fixed_width = GENERATE(false, true);
  random_numbers random(6);
  const std::vector<reference::ternary_matmul_shape> shapes{
      {.columns = 64, .rows = 4},
      {.columns = 576, .rows = 36, .epilogue = epilogue::add},
      {.columns = 64,
       .rows = 96,
       .epilogue = epilogue::rope_cache,
       .head_dim = 16,
       .q_size = 64,
       .kv_size = 16,
       .context = 37,
       .rope_theta = 500000.f,
       .cache_element = kernels::element::f32},
      {.columns = 256, .rows = 24, .epilogue = epilogue::gated},
  };
  for (const auto& shape : shapes)
    for (const bool extreme : {false, true}) {
      chunk_problem p = chunk_problem::make(random, shape, 1, 1);
      if (extreme) {
        std::ranges::fill(p.q, std::int8_t{-128});
        std::ranges::fill(p.product.weight, 0xaaaaaaaau);
        p.factors[0].sum = -128 * static_cast<std::int32_t>(shape.columns);
      }
      const product_result expected = expect(p);
      for (const std::uint32_t together : {1u, 2u}) {
        INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue)
                        << ", " << together << " together, subgroups of " << on.subgroup_size());
        check(on,
              run(on, kernels::kernel::ternary_rows, p, 1, {{"groups_together", together}},
                  {(shape.rows / 4 + together - 1) / together, 1, 1}),
              expected);
      }
      p.product.tokens = 0;
      check(on,
            run(on, kernels::kernel::ternary_rows, p, 1, {{"groups_together", 2u}}, {(shape.rows / 4 + 1) / 2, 1, 1}),
            initial(p.product));
    }
}
