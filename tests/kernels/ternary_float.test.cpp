// SPDX-License-Identifier: MIT
#include "intaglio/reference/ternary_float.hpp"
#include "kernels/ternary_product.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;
using kernels::prologue;

namespace {

product_result expect(const ternary_problem& p, prologue before) {
  product_result out = initial(p);
  const std::size_t columns = p.shape.columns;
  std::vector<float> y(p.x.begin(), p.x.begin() + static_cast<std::ptrdiff_t>(p.tokens * columns));
  for (std::size_t t = 0; before == prologue::norm && t < p.tokens; ++t)
    reference::rms_norm(std::span(p.x).subspan(t * columns, columns), p.norm_weight, 1e-5f,
                        std::span(y).subspan(t * columns, columns));
  reference::ternary_float(p.shape, y, p.weight, p.scales, out.output, p.position, out.keys, out.values);
  return out;
}

/// All tokens in one pass, `tile_tokens` of them in a workgroup; 0: one pass a token, as decode does it.
product_result run(kernel_device& on, const ternary_problem& p, prologue before, std::uint32_t subgroups,
                   std::uint32_t tile_tokens, std::uint32_t groups) {
  const auto& s = p.shape;
  product_result out = initial(p);
  const auto weight = on.filled(p.weight), norm_weight = on.filled(p.norm_weight), scales = on.filled(p.scales),
             keys = on.filled(out.keys), values = on.filled(out.values);
  const auto pass = [&](const std::vector<float>& x, std::span<float> y, std::uint32_t position, std::uint32_t count,
                        std::uint32_t tiles) {
    const auto input = on.filled(x), output = on.filled(std::vector<float>(y.begin(), y.end()));
    const auto state = on.filled(fresh_state(position, count, p.room, std::max(1u, s.context)));
    on.run(kernels::kernel::ternary_float, subgroups, ternary_constants(s, before, std::max(1u, tile_tokens)),
           {{"input", &input},
            {"norm_weight", &norm_weight},
            {"weight", &weight},
            {"scales", &scales},
            {"output", &output},
            {"state", &state},
            {"keys", &keys},
            {"values", &values}},
           {groups, tiles, 1});
    std::ranges::copy(output.read<float>(), y.begin());
  };
  if (tile_tokens != 0) {
    pass(p.x, out.output, p.position, p.tokens, (p.room + tile_tokens - 1) / tile_tokens);
  } else {
    for (std::uint32_t t = 0; t < p.tokens; ++t) {
      const auto begin = p.x.begin() + static_cast<std::ptrdiff_t>(std::size_t{t} * s.columns);
      pass({begin, begin + s.columns}, std::span(out.output).subspan(t * p.output_width(), p.output_width()),
           p.position + t, 1, 1);
    }
  }
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

}  // namespace

TEST_CASE("ternary_float: every epilogue, prologue, tile of tokens and width gives the reference's bits", "[dear]") {
  kernel_device on;
  const int module = GENERATE(0, 1, 2);
  on.wide_loads = module == 2;
  on.fixed_width = module != 0;
  random_numbers random(11);
  const std::vector<reference::ternary_matmul_shape> shapes{
      {.columns = 256, .rows = 64},
      {.columns = 16, .rows = 4},
      {.columns = 1024, .rows = 32, .epilogue = epilogue::add},
      {.columns = 336, .rows = 40, .epilogue = epilogue::add},
      {.columns = 256,
       .rows = 512,
       .epilogue = epilogue::rope_cache,
       .head_dim = 64,
       .q_size = 256,
       .kv_size = 128,
       .context = 40,
       .rope_theta = 10000.f},
      {.columns = 64,
       .rows = 96,
       .epilogue = epilogue::rope_cache,
       .head_dim = 16,
       .q_size = 64,
       .kv_size = 16,
       .context = 37,
       .rope_theta = 500000.f,
       .cache_element = kernels::element::f32},
      {.columns = 128, .rows = 24, .epilogue = epilogue::gated, .gate = activation::silu},
      {.columns = 768, .rows = 24, .epilogue = epilogue::gated},
  };
  for (const auto& shape : shapes) {
    // Compiling is the time. Modules 0 and 1 are one, with the subgroup size open and fixed.
    const bool whole = &shape == &shapes.front() || shape.epilogue == epilogue::rope_cache;
    if (module == 0 && !whole) continue;
    const ternary_problem p =
        ternary_problem::make(random, shape, 5, 16, shape.epilogue == epilogue::rope_cache ? shape.context - 3 : 0);
    INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue)
                    << ", module " << module);
    const product_result normal = expect(p, prologue::norm);
    check(on, run(on, p, prologue::norm, 1, 0, 3), normal);
    for (const std::uint32_t tile : {1u, 4u, 8u}) {
      INFO("tile of " << tile);
      if (!whole && tile != 8) continue;
      check(on, run(on, p, prologue::norm, tile == 4 ? 2 : 1, tile, 2), normal);
    }
    check(on, run(on, p, prologue::plain, 1, 8, 2), expect(p, prologue::plain));
    if (!whole) continue;
    const product_result wide = run(on, p, prologue::norm, 4, 0, 5), prefilled = run(on, p, prologue::norm, 4, 8, 5);
    CHECK(wide.output == prefilled.output);
    CHECK(wide.keys == prefilled.keys);
    CHECK(wide.values == prefilled.values);
  }
}

TEST_CASE("ternary_float: the widths of a model of 3 billion parameters") {
  kernel_device on;
  random_numbers random(12);
  for (const auto& shape : {reference::ternary_matmul_shape{
                                .columns = 3200, .rows = 64, .epilogue = epilogue::gated, .gate = activation::silu},
                            reference::ternary_matmul_shape{.columns = 8640, .rows = 32, .epilogue = epilogue::add}}) {
    const ternary_problem p = ternary_problem::make(random, shape, 1, 1);
    for (const bool wide : {true, false}) {
      on.wide_loads = wide;
      check(on, run(on, p, prologue::norm, 1, 0, 4), expect(p, prologue::norm));
    }
  }
}
