// SPDX-License-Identifier: MIT
#include "intaglio/reference/ternary_matmul.hpp"
#include "kernels/ternary_product.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;
using kernels::prologue;

namespace {

struct of_ones_own {
  constexpr shader::real operator()(shader::real gate) const {
    return select(gate > 0.5f, gate - 0.25f, exp(gate) / 3.0f);
  }
};

product_result expect(const ternary_problem& p, std::size_t tokens, bool normalised = true) {
  product_result out = initial(p);
  std::vector<std::int8_t> q(tokens * p.shape.columns);
  std::vector<reference::factors> factors(tokens);
  reference::norm_quantize(std::span(p.x).first(q.size()), normalised ? p.norm_weight : std::vector<float>(),
                           p.shape.columns, 1e-5f, q, factors);
  reference::ternary_matmul(p.shape, q, factors, p.weight, p.scales, out.output, p.position, out.keys, out.values);
  return out;
}

/// The first `tokens` of those there is room for, as prefill does it or, token by token, as decode does.
product_result run(kernel_device& on, const ternary_problem& p, prologue before, std::uint32_t subgroups,
                   std::uint32_t tile_tokens, std::uint32_t tokens, std::uint32_t groups) {
  const auto& s = p.shape;
  product_result out = initial(p);
  const std::uint32_t room = p.room;
  const auto weight = on.filled(p.weight), norm_weight = on.filled(p.norm_weight), scales = on.filled(p.scales);
  const auto output = on.filled(out.output), keys = on.filled(out.keys), values = on.filled(out.values),
             all = on.filled(p.x);
  const auto go = [&](const guarded_buffer& input, const guarded_buffer& factors, const guarded_buffer& to,
                      std::uint32_t position, std::uint32_t count, std::uint32_t tiles) {
    const auto state = on.filled(fresh_state(position, count, room, std::max(1u, s.context)));
    on.run(kernels::kernel::ternary_matmul, subgroups, ternary_constants(s, before, tile_tokens),
           {{"input", &input},
            {"norm_weight", &norm_weight},
            {"factors", &factors},
            {"weight", &weight},
            {"scales", &scales},
            {"output", &to},
            {"state", &state},
            {"keys", &keys},
            {"values", &values}},
           {groups, tiles, 1});
  };
  if (before == prologue::quantized) {
    const auto q = on.poisoned(std::size_t{room} * s.columns), factors = on.poisoned(std::size_t{room} * 8);
    const auto state = on.filled(fresh_state(0, tokens, room, 1));
    on.run(kernels::kernel::norm_quantize, 1, {{"width", s.columns}, {"eps", 1e-5f}},
           {{"input", &all}, {"norm_weight", &norm_weight}, {"output", &q}, {"factors", &factors}, {"state", &state}},
           {1, room, 1});
    go(q, factors, output, p.position, tokens, (room + tile_tokens - 1) / tile_tokens);
    out.output = output.read<float>();
  } else {
    const std::size_t width = p.output_width();
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const auto input = on.filled(std::vector<float>(p.x.begin() + t * s.columns, p.x.begin() + (t + 1) * s.columns));
      const auto to = on.filled(std::vector<float>(out.output.begin() + static_cast<std::ptrdiff_t>(t * width),
                                                   out.output.begin() + static_cast<std::ptrdiff_t>((t + 1) * width)));
      go(input, scales, to, p.position + t, 1, 1);
      const auto part = to.read<float>();
      std::copy(part.begin(), part.end(), out.output.begin() + static_cast<std::ptrdiff_t>(t * width));
    }
  }
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

}  // namespace

TEST_CASE("ternary_matmul: every epilogue, prologue, tile of tokens and width gives the reference's bits", "[dear]") {
  kernel_device on;
  const int module = GENERATE(0, 1, 2);
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
  on.fixed_width = module != 0;
  random_numbers random(3);
  using element = kernels::element;
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
       .cache_element = element::f32},
      {.columns = 256, .rows = 64, .epilogue = epilogue::gated},
      {.columns = 128, .rows = 24, .epilogue = epilogue::gated, .gate = activation::silu},
      {.columns = 128, .rows = 24, .epilogue = epilogue::gated, .gate = activation::gelu_tanh},
      {.columns = 128, .rows = 24, .epilogue = epilogue::gated, .gate = of_ones_own{}},
  };
  for (const auto& shape : shapes) {
    const bool whole = &shape == &shapes.front() || shape.epilogue == epilogue::rope_cache;  // compiling is the time
    const std::uint32_t tokens = whole ? 13 : 5, room = 16;
    const ternary_problem p = ternary_problem::make(random, shape, tokens, room,
                                                    shape.epilogue == epilogue::rope_cache ? shape.context - 3 : 0);
    const product_result expected = expect(p, tokens);
    INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue)
                    << ", module " << module);
    const product_result decoded = run(on, p, prologue::norm_quantize, 1, 1, tokens, 3);
    check(on, decoded, expected);
    if (!whole) check(on, run(on, p, prologue::quantize, 1, 1, tokens, 3), expect(p, tokens, false));
    for (const std::uint32_t tile : {1u, 4u, 8u, 16u}) {
      INFO("tile of " << tile);
      if (whole == (tile == 8)) continue;
      check(on, run(on, p, prologue::quantized, tile == 4 ? 2 : 1, tile, tokens, 2), expected);
    }
    const product_result wide = run(on, p, prologue::norm_quantize, 4, 1, 2, 5);
    const product_result prefilled = run(on, p, prologue::quantized, 4, 8, 2, 5);
    CHECK(wide.output == prefilled.output);
    CHECK(wide.keys == prefilled.keys);
    CHECK(wide.values == prefilled.values);
  }
}

TEST_CASE("ternary_matmul: the widths of BitNet 2B") {
  kernel_device on;
  random_numbers random(4);
  for (const auto& shape : {reference::ternary_matmul_shape{.columns = 2560, .rows = 64, .epilogue = epilogue::gated},
                            reference::ternary_matmul_shape{.columns = 6912, .rows = 32, .epilogue = epilogue::add},
                            reference::ternary_matmul_shape{.columns = 2560,
                            .rows = 3840,
                            .epilogue = epilogue::rope_cache,
                            .head_dim = 128,
                            .q_size = 2560,
                            .kv_size = 640,
                            .context = 4096,
                            .rope_theta = 500000.f}}) {
    const ternary_problem p = ternary_problem::make(random, shape, 1, 1, 4095);
    const product_result expected = expect(p, 1);
    for (const bool wide : {true, false}) {
      on.wide_loads = wide;
      check(on, run(on, p, prologue::norm_quantize, 1, 1, 1, 4), expected);
    }
  }
}
