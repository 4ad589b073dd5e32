// SPDX-License-Identifier: MIT
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("head_norm: heads normalised and rotated, keys and values in their slots") {
  kernel_device on;
  on.fixed_width = GENERATE(true, false);
  random_numbers random(31);
  for (const auto& [shape, position] :
       {std::pair{reference::head_norm_shape{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 20}, 18u},
        std::pair{reference::head_norm_shape{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 256, .ring = true},
                  1022u},
        std::pair{reference::head_norm_shape{
                      .heads = 1, .kv_heads = 1, .head_dim = 8, .context = 4, .cache_element = kernels::element::f32},
                  0u}}) {
    const std::uint32_t d = shape.head_dim, tokens = 3;
    const std::size_t width = std::size_t{shape.heads + 2 * shape.kv_heads} * d;
    const auto x = random.floats(tokens * width, -2, 2), q = random.floats(d, 0.5f, 1.5f),
               k = random.floats(d, 0.5f, 1.5f);
    const auto rope = plain_rope(d, 1e6L);
    std::vector<std::byte> keys(kernels::key_cache_elements(shape.kv_heads, d, shape.context) *
                                    reference::elements::size_bytes(shape.cache_element),
                                poison);
    std::vector<std::byte> values(kernels::value_cache_elements(shape.kv_heads, d, shape.context) *
                                      reference::elements::size_bytes(shape.cache_element),
                                  poison);
    std::vector<float> expected(std::size_t{tokens} * shape.heads * d);
    const auto input = on.filled(x), q_norm = on.filled(q), k_norm = on.filled(k), turns = on.filled(rope),
               key_cache = on.filled(keys), value_cache = on.filled(values),
               state = on.filled(fresh_state(position, tokens, tokens, shape.context)),
               output = on.poisoned(expected.size() * 4);
    on.run(kernels::kernel::head_norm, 1,
           {{"heads", shape.heads},
            {"kv_heads", shape.kv_heads},
            {"head_dim", d},
            {"eps", shape.eps},
            {"context", shape.context},
            {"ring", shape.ring ? 1u : 0u},
            {"cache_element", static_cast<std::uint32_t>(shape.cache_element)}},
           {{"input", &input},
            {"q_norm", &q_norm},
            {"k_norm", &k_norm},
            {"output", &output},
            {"state", &state},
            {"keys", &key_cache},
            {"values", &value_cache},
            {"rope", &turns}},
           {shape.heads + 2 * shape.kv_heads, tokens, 1});
    reference::head_norm(shape, x, q, k, expected, position, keys, values, rope);
    CHECK_SAME(on, output.read<float>(), expected);
    if (on.device().description().type != gpu::device_type::cpu) continue;
    CHECK(key_cache.read<std::byte>() == keys);
    CHECK(value_cache.read<std::byte>() == values);
  }
}

TEST_CASE("norm_add: the normalised input on top of what is there, of the tokens of the pass") {
  kernel_device on;
  const std::uint32_t width = GENERATE(64u, 172u, 2560u), tokens = 2, room = 3;
  random_numbers random(32);
  const auto z = random.floats(std::size_t{room} * width, -2, 2), weight = random.floats(width, 0.5f, 1.5f);
  auto expected = random.floats(std::size_t{room} * width, -4, 4);
  const auto input = on.filled(z), norm_weight = on.filled(weight), output = on.filled(expected),
             state = on.filled(fresh_state(0, tokens, room, 8));
  on.run(kernels::kernel::norm_add, 2, {{"width", width}, {"eps", 1e-6f}, {"parts", 1u}},
         {{"input", &input}, {"norm_weight", &norm_weight}, {"output", &output}, {"state", &state}}, {1, room, 1});
  reference::norm_add(std::span(z).first(tokens * width), weight, 1e-6f, std::span(expected).first(tokens * width));
  CHECK_SAME(on, output.read<float>(), expected);
}

TEST_CASE("norm_add: an input in parts is their sum by halves") {
  kernel_device on;
  const std::uint32_t width = GENERATE(64u, 2560u), parts = GENERATE(2u, 4u, 8u);
  random_numbers random(34);
  const auto z = random.floats(std::size_t{parts} * width, -2, 2), weight = random.floats(width, 0.5f, 1.5f);
  auto expected = random.floats(width, -4, 4), sum = z;
  const auto input = on.filled(z), norm_weight = on.filled(weight), output = on.filled(expected),
             state = on.filled(fresh_state(0, 1, 1, 8));
  on.run(kernels::kernel::norm_add, 2, {{"width", width}, {"eps", 1e-6f}, {"parts", parts}},
         {{"input", &input}, {"norm_weight", &norm_weight}, {"output", &output}, {"state", &state}}, {1, 1, 1});
  for (std::size_t step = parts / 2; step != 0; step /= 2)
    for (std::size_t i = 0; i < step * width; ++i) sum[i] += sum[i + step * width];
  reference::norm_add(std::span(sum).first(width), weight, 1e-6f, expected);
  CHECK_SAME(on, output.read<float>(), expected);
}

TEST_CASE("rms_norm: the normalised input of the tokens of the pass") {
  kernel_device on;
  const std::uint32_t width = GENERATE(64u, 172u, 2560u), tokens = 2, room = 3;
  random_numbers random(33);
  const auto z = random.floats(std::size_t{room} * width, -2, 2), weight = random.floats(width, 0.5f, 1.5f);
  std::vector<float> expected(z.size(), std::bit_cast<float>(0xa5a5a5a5u));
  const auto input = on.filled(z), norm_weight = on.filled(weight), output = on.poisoned(4 * z.size()),
             state = on.filled(fresh_state(0, tokens, room, 8));
  on.run(kernels::kernel::rms_norm, 2, {{"width", width}, {"eps", 1e-6f}},
         {{"input", &input}, {"norm_weight", &norm_weight}, {"output", &output}, {"state", &state}}, {1, room, 1});
  for (std::uint32_t t = 0; t < tokens; ++t)
    reference::rms_norm(std::span(z).subspan(std::size_t{t} * width, width), weight, 1e-6f,
                        std::span(expected).subspan(std::size_t{t} * width, width));
  CHECK_SAME(on, output.read<float>(), expected);
}
