// SPDX-License-Identifier: MIT
#include "kernels/ternary_fragments_emulated.hpp"
#include "kernels/ternary_product.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;

namespace {

product_result run(kernel_device& on, const chunk_problem& p, std::uint32_t subgroups, std::uint32_t tile_rows,
                   std::uint32_t tile_tokens) {
  return run(on, kernels::kernel::ternary_chunk, p, subgroups,
             {{"tile_rows", tile_rows}, {"tile_tokens", tile_tokens}, {"max_tokens", p.product.room}},
             {(p.product.shape.rows + tile_rows - 1) / tile_rows, (p.product.room + tile_tokens - 1) / tile_tokens, 1});
}

const std::vector<reference::ternary_matmul_shape> shapes{
    {.columns = 128, .rows = 132},
    {.columns = 64, .rows = 64, .epilogue = epilogue::add},
    {.columns = 192,
     .rows = 192,
     .epilogue = epilogue::rope_cache,
     .head_dim = 16,
     .q_size = 128,
     .kv_size = 32,
     .context = 61,
     .rope_theta = 10000.f},
    {.columns = 128,
     .rows = 72,
     .epilogue = epilogue::rope_cache,
     .head_dim = 24,
     .q_size = 24,
     .kv_size = 24,
     .context = 60,
     .rope_theta = 500000.f,
     .cache_element = kernels::element::f32},
    {.columns = 128, .rows = 136, .epilogue = epilogue::gated},
};

/// ternary_chunk_fragments with matrices that are emulated in shared memory.
runtime::program_module with_emulated(kernels::variant which) {
  if (which == kernels::variant::ternary_chunk_fragments)
    return {kernels::whole(kernels::spirv::ternary_fragments_emulated_parts)};
  return runtime::modules_of<>(which);
}

}  // namespace

TEST_CASE("ternary_chunk: every epilogue, tile and module gives the reference's bits") {
  kernel_device on;
  for (const auto& each : runtime::usable_classes(on.device())) {
    on.integer_dot = each.integer_dot;
    random_numbers random(5);
    for (const auto& shape : shapes) {
      const chunk_problem p = chunk_problem::make(random, shape, 53, 70);
      const product_result expected = expect(p);
      INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue)
                      << ", dot " << on.integer_dot);
      for (const auto& [subgroups, tile_rows, tile_tokens] :
           {std::array{4u, 64u, 64u}, std::array{4u, 128u, 64u}, std::array{8u, 64u, 128u}, std::array{1u, 16u, 32u}}) {
        INFO(subgroups << " subgroups, tile of " << tile_rows << " rows and " << tile_tokens << " tokens");
        check(on, run(on, p, subgroups, tile_rows, tile_tokens), expected);
      }
    }
  }
}

TEST_CASE("ternary_chunk: sums of BitNet 2B's widest rows at their extremes") {
  kernel_device on;
  random_numbers random(6);
  for (const auto& each : runtime::usable_classes(on.device())) {
    on.integer_dot = each.integer_dot;
    chunk_problem p = chunk_problem::make(random, {.columns = 6912, .rows = 64}, 33, 33);
    for (std::size_t i = 0; i < p.q.size(); ++i) p.q[i] = (i / 6912) % 2 ? 127 : -128;
    for (std::size_t t = 0; t < 33; ++t) p.factors[t].sum = 6912 * (t % 2 ? 127 : -128);
    check(on, run(on, p, 4, 64, 64), expect(p));
  }
}

TEST_CASE("ternary_chunk by fragments: every epilogue, steps of 128 and 64 columns, tiles that are not full, parts",
          "[dear]") {
  kernel_device on;
  on.int8_fragments = true;
  if (!runtime::usable_classes(on.device()).front().offers().has(kernels::demand::int8_fragments)) {
    if (!on.device().has(gpu::feature::shader_int64))
      SKIP("NOT RUN: needs a device that computes with 64-bit integers, found " << on.device().label());
    on.source = &with_emulated;
  }
  random_numbers random(7);
  const std::uint32_t each = 32 / on.subgroup_size();
  for (auto shape : shapes) {
    if (shape.columns == 128 && shape.rows == 136) shape.columns = 512;
    const chunk_problem p = chunk_problem::make(random, shape, 53, 70);
    const product_result expected = expect(p);
    INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue));
    for (const auto& [subgroups, tile_rows, tile_tokens] :
         {std::array{2u, 64u, 64u}, std::array{1u, 32u, 32u}, std::array{4u, 64u, 32u}, std::array{5u, 160u, 64u}}) {
      if (tile_rows > shape.rows || (32 * subgroups > tile_rows && shape.columns < 512)) continue;
      INFO(subgroups << " subgroups, tile of " << tile_rows << " rows and " << tile_tokens << " tokens");
      check(on, run(on, p, each * subgroups, tile_rows, tile_tokens), expected);
    }
  }
  chunk_problem extreme = chunk_problem::make(random, {.columns = 768, .rows = 64}, 33, 33);
  for (std::size_t i = 0; i < extreme.q.size(); ++i) extreme.q[i] = (i / 768) % 2 ? 127 : -128;
  for (std::size_t t = 0; t < 33; ++t) extreme.factors[t].sum = 768 * (t % 2 ? 127 : -128);
  check(on, run(on, extreme, 4 * each, 64, 64), expect(extreme));
}
