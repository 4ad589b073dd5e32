// SPDX-License-Identifier: MIT
#include "kernels/ternary_product.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;

namespace {

product_result run(kernel_device& on, const chunk_problem& p, std::uint32_t subgroups, std::uint32_t groups,
                   std::uint32_t tile_tokens) {
  return run(on, kernels::kernel::ternary_batch, p, subgroups, {{"tile_tokens", tile_tokens}, {"tile_rows", 4u}},
             {groups, (p.product.room + tile_tokens - 1) / tile_tokens, 1});
}

}  // namespace

TEST_CASE("ternary_batch: every epilogue, tile and module gives the reference's bits") {
  kernel_device on;
  on.integer_dot = GENERATE(true, false);
  random_numbers random(6);
  const std::vector<reference::ternary_matmul_shape> shapes{
      {.columns = 16, .rows = 4},
      {.columns = 336, .rows = 40, .epilogue = epilogue::add},
      {.columns = 64,
       .rows = 96,
       .epilogue = epilogue::rope_cache,
       .head_dim = 16,
       .q_size = 64,
       .kv_size = 16,
       .context = 37,
       .rope_theta = 500000.f,
       .cache_element = kernels::element::f32},
      {.columns = 256, .rows = 64, .epilogue = epilogue::gated},
  };
  for (const auto& shape : shapes) {
    const chunk_problem p = chunk_problem::make(random, shape, 11, 14);
    const product_result expected = expect(p);
    INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue)
                    << ", dot " << on.integer_dot);
    check(on, run(on, p, 3, 5, 8), expected);
    check(on, run(on, p, 1, shape.rows / 4, 4), expected);
  }
}
