// SPDX-License-Identifier: MIT
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

struct turn_case {
  reference::turn_shape shape;
  std::uint32_t position = 0;
  bool biased = false;
};
/// One product's q, k and v, stacked.
reference::turn_shape stacked(reference::turn_shape s) {
  const std::uint32_t all = (s.heads + 2 * s.kv_heads) * s.head_dim;
  s.strides = {all, all, all};
  return s;
}
/// The shape of q, k and v from three products.
reference::turn_shape apart(reference::turn_shape s) {
  s.strides = {s.heads * s.head_dim, s.kv_heads * s.head_dim, s.kv_heads * s.head_dim};
  return s;
}

const turn_case turn_cases[] = {
    {stacked({.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 20, .norms = kernels::turn_norms::each_head}), 18},
    {stacked({.heads = 2,
              .kv_heads = 1,
              .head_dim = 256,
              .context = 256,
              .ring = true,
              .norms = kernels::turn_norms::each_head}),
     1022},
    {stacked({.heads = 1,
              .kv_heads = 1,
              .head_dim = 8,
              .context = 4,
              .cache_element = kernels::element::f32,
              .norms = kernels::turn_norms::each_head}),
     0},
    {apart({.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 20}), 7},
    {stacked({.heads = 8, .kv_heads = 2, .head_dim = 32, .context = 20}), 7, true},
    {apart({.heads = 14, .kv_heads = 2, .head_dim = 64, .context = 64, .ring = true}), 70, true},
    {stacked({.heads = 4, .kv_heads = 4, .head_dim = 64, .context = 20, .norms = kernels::turn_norms::all_heads}), 7},
    {apart({.heads = 40, .kv_heads = 8, .head_dim = 128, .context = 8, .norms = kernels::turn_norms::all_heads}), 3},
    {stacked({.heads = 2, .kv_heads = 1, .head_dim = 96, .context = 8, .norms = kernels::turn_norms::all_heads}), 3,
     true},
    {apart({.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 20, .norms = kernels::turn_norms::each_head}), 7,
     true},
    {stacked({.heads = 4,
              .kv_heads = 2,
              .head_dim = 64,
              .context = 20,
              .norms = kernels::turn_norms::each_head,
              .v_norm = true}),
     18},
    {apart({.heads = 2,
            .kv_heads = 1,
            .head_dim = 512,
            .context = 8,
            .norms = kernels::turn_norms::each_head,
            .v_norm = true}),
     5},
    {stacked({.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 20, .norms = kernels::turn_norms::each_head_after}),
     18},
    {apart({.heads = 2,
            .kv_heads = 1,
            .head_dim = 96,
            .context = 64,
            .ring = true,
            .norms = kernels::turn_norms::each_head_after}),
     70, true},
    {stacked({.heads = 2,
              .kv_heads = 2,
              .head_dim = 128,
              .context = 20,
              .cache_element = kernels::element::q8_0,
              .norms = kernels::turn_norms::each_head_after}),
     7},
    {stacked({.heads = 4, .kv_heads = 2, .head_dim = 128, .context = 20, .cache_element = kernels::element::q8_0}), 7},
    {stacked({.heads = 2,
              .kv_heads = 2,
              .head_dim = 96,
              .context = 256,
              .ring = true,
              .cache_element = kernels::element::q8_0,
              .norms = kernels::turn_norms::each_head}),
     1022},
    {apart({.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 9, .cache_element = kernels::element::q4_0}), 7,
     true},
    {stacked({.heads = 1, .kv_heads = 1, .head_dim = 8, .context = 4, .cache_element = kernels::element::q4_0}), 0},
};

}  // namespace

TEST_CASE("turn: heads biased, normalised and rotated, keys and values in their slots") {
  kernel_device on;
  on.fixed_width = GENERATE(true, false);
  random_numbers random(31);
  for (const auto& [shape, position, biased] : turn_cases) {
    const std::uint32_t d = shape.head_dim, tokens = 3, q_size = shape.heads * d, kv_size = shape.kv_heads * d;
    CAPTURE(shape.heads, d, biased, shape.norms);
    const bool is_stacked = shape.strides[0] != q_size, all = shape.norms == kernels::turn_norms::all_heads;
    std::array<std::vector<float>, 3> x;
    for (std::size_t i = 0; i < 3; ++i) x[i] = random.floats(std::size_t{tokens} * shape.strides[i], -2, 2);
    // Codes cannot say that a channel is no number: its block's factor does.
    if (kernels::is_coded(shape.cache_element))
      x[is_stacked ? 0 : 1][shape.strides[1] + (is_stacked ? q_size : 0) + 1] = std::nanf("");
    const auto q = random.floats(all ? q_size : d, 0.5f, 1.5f), k = random.floats(all ? kv_size : d, 0.5f, 1.5f),
               bias = random.floats(q_size + 2 * kv_size, -1, 1);
    const auto rope = plain_rope(d, 1e6L);
    std::vector<std::byte> keys(kernels::key_cache_bytes(shape.cache_element, shape.kv_heads, d, shape.context),
                                poison);
    std::vector<std::byte> values(kernels::value_cache_bytes(shape.cache_element, shape.kv_heads, d, shape.context),
                                  poison);
    std::vector<float> expected(std::size_t{tokens} * q_size);
    // Stacked: k and v stand after q in each row, so that three ranges of one value are given as three values.
    reference::turn_inputs in{{x[0], x[1], x[2]}};
    if (is_stacked)
      in.qkv = {x[0], std::span<const float>(x[0]).subspan(q_size),
                std::span<const float>(x[0]).subspan(q_size + kv_size)};
    std::array<std::vector<float>, 3> rows;
    for (std::size_t i = 0; i < 3; ++i) rows[i].assign(in.qkv[i].begin(), in.qkv[i].end());
    if (shape.norms != kernels::turn_norms::none) in.norms = {q, k};
    if (biased) in.bias = bias;
    const auto q_in = on.filled(rows[0]), k_in = on.filled(rows[1]), v_in = on.filled(rows[2]), q_norm = on.filled(q),
               k_norm = on.filled(k), biases = on.filled(bias), turns = on.filled(rope), key_cache = on.filled(keys),
               value_cache = on.filled(values), state = on.filled(fresh_state(position, tokens, tokens, shape.context)),
               output = on.poisoned(expected.size() * 4);
    on.run(kernels::kernel::turn, 1,
           {{"heads", shape.heads},
            {"kv_heads", shape.kv_heads},
            {"head_dim", d},
            {"eps", shape.eps},
            {"context", shape.context},
            {"ring", shape.ring ? 1u : 0u},
            {"cache_element", static_cast<std::uint32_t>(shape.cache_element)},
            {"q_stride", shape.strides[0]},
            {"k_stride", shape.strides[1]},
            {"v_stride", shape.strides[2]},
            {"norms", static_cast<std::uint32_t>(shape.norms)},
            {"biased", biased ? 1u : 0u},
            {"v_norm", shape.v_norm ? 1u : 0u}},
           {{"q", &q_in},
            {"k", &k_in},
            {"v", &v_in},
            {"q_norm", &q_norm},
            {"k_norm", &k_norm},
            {"bias", &biases},
            {"output", &output},
            {"state", &state},
            {"keys", &key_cache},
            {"values", &value_cache},
            {"rope", &turns}},
           {shape.heads + 2 * shape.kv_heads, tokens, 1});
    reference::turn(shape, in, expected, position, keys, values, rope);
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

TEST_CASE("norm_add: heads for themselves, or the sum times a number after the norm's weight") {
  kernel_device on;
  random_numbers random(34);
  constexpr std::uint32_t tokens = 3, width = 64;
  const bool scaled = GENERATE(false, true);
  const std::uint32_t heads = scaled ? 1 : 5;
  const auto z = random.floats(tokens * heads * width, -2, 2), x = random.floats(z.size(), -9, 9);
  auto weight = random.floats(width, 0.5f, 1.5f);
  std::vector<float> expected = x;
  reference::norm_add(z, weight, 1e-6f, expected, scaled ? 0.75f : 1.f);
  weight.push_back(0.75f);
  const auto in = on.filled(z), w = on.filled(weight), out = on.filled(x),
             state = on.filled(fresh_state(0, tokens, tokens, 64));
  on.run(kernels::kernel::norm_add, 2, {{"width", width}, {"eps", 1e-6f}, {"parts", 1u}, {"scaled", scaled ? 1u : 0u}},
         {{"input", &in}, {"norm_weight", &w}, {"output", &out}, {"state", &state}}, {heads, tokens, 1});
  CHECK_SAME(on, out.read<float>(), expected);
}

TEST_CASE("norm_add: a bias instead of the norm, of one input and of one in parts") {
  kernel_device on;
  on.fixed_width = GENERATE(true, false);
  const std::uint32_t width = GENERATE(64u, 172u, 2560u), parts = GENERATE(1u, 4u), room = 3,
                      tokens = parts == 1 ? 2 : 1;
  random_numbers random(35);
  const auto z = random.floats(std::size_t{room} * parts * width, -2, 2), bias = random.floats(width, -1, 1);
  auto expected = random.floats(std::size_t{room} * width, -4, 4), sum = z;
  const auto input = on.filled(z), weight = on.filled(bias), output = on.filled(expected),
             state = on.filled(fresh_state(0, tokens, room, 8));
  on.run(kernels::kernel::norm_add, 2, {{"width", width}, {"eps", 0.f}, {"parts", parts}, {"biased", 1u}},
         {{"input", &input}, {"norm_weight", &weight}, {"output", &output}, {"state", &state}}, {1, room, 1});
  for (std::size_t step = parts / 2; step != 0; step /= 2)
    for (std::size_t i = 0; i < step * width; ++i) sum[i] += sum[i + step * width];
  reference::bias_add(std::span<const float>(sum).first(tokens * width), bias,
                      std::span(expected).first(tokens * width));
  CHECK_SAME(on, output.read<float>(), expected);
}

TEST_CASE("norm_add: an input in parts is summed by halves") {
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
  const std::uint32_t width = GENERATE(64u, 172u, 2560u), groups = GENERATE(1u, 3u), tokens = 2, room = 3;
  random_numbers random(33);
  const auto z = random.floats(std::size_t{room} * groups * width, -2, 2),
             weight = random.floats(std::size_t{groups} * width, 0.5f, 1.5f);
  std::vector<float> expected(z.size(), std::bit_cast<float>(0xa5a5a5a5u));
  const auto input = on.filled(z), norm_weight = on.filled(weight), output = on.poisoned(4 * z.size()),
             state = on.filled(fresh_state(0, tokens, room, 8));
  on.run(kernels::kernel::rms_norm, 2, {{"width", width}, {"eps", 1e-6f}},
         {{"input", &input}, {"norm_weight", &norm_weight}, {"output", &output}, {"state", &state}}, {groups, room, 1});
  for (std::size_t i = 0; i < std::size_t{tokens} * groups; ++i)
    reference::rms_norm(std::span(z).subspan(i * width, width), std::span(weight).subspan(i % groups * width, width),
                        1e-6f, std::span(expected).subspan(i * width, width));
  CHECK_SAME(on, output.read<float>(), expected);
}

TEST_CASE("turn: rotated channels after those of a latent vector, which is the value too") {
  kernel_device on;
  on.fixed_width = GENERATE(true, false);
  random_numbers random(36);
  using kernels::element;
  for (const auto& [heads, d, latent, type, position, ring] : {std::tuple{4u, 16u, 64u, element::f16, 18u, false},
                                                               {20u, 64u, 512u, element::f16, 5u, false},
                                                               {2u, 64u, 512u, element::f32, 255u, true},
                                                               {2u, 64u, 512u, element::q8_0, 7u, false},
                                                               {2u, 16u, 64u, element::q4_0, 18u, false}}) {
    const std::uint32_t context = ring ? 256 : 20, tokens = 3, joined = latent + d;
    const reference::turn_shape shape{.heads = heads,
                                      .kv_heads = 1,
                                      .head_dim = d,
                                      .context = context,
                                      .ring = ring,
                                      .cache_element = type,
                                      .strides = {heads * d, d, latent},
                                      .latent = latent};
    CAPTURE(heads, d, latent, type);
    const auto q = random.floats(std::size_t{tokens} * heads * d, -2, 2),
               k = random.floats(std::size_t{tokens} * d, -2, 2),
               v = random.floats(std::size_t{tokens} * latent, -2, 2),
               before = random.floats(std::size_t{tokens} * heads * latent, -2, 2),
               norm = random.floats(latent, 0.5f, 1.5f);
    const auto rope = plain_rope(d, 1e4L);
    std::vector<std::byte> keys(kernels::key_cache_bytes(type, 1, joined, context), poison),
        values(kernels::value_cache_bytes(type, 1, latent, context), poison);
    std::vector<float> expected(std::size_t{tokens} * heads * joined);
    const auto q_in = on.filled(q), k_in = on.filled(k), v_in = on.filled(v), k_norm = on.filled(norm),
               latent_query = on.filled(before), turns = on.filled(rope), key_cache = on.filled(keys),
               value_cache = on.filled(values), state = on.filled(fresh_state(position, tokens, tokens, context)),
               output = on.poisoned(expected.size() * 4);
    on.run(kernels::kernel::turn, 1,
           {{"heads", heads},
            {"kv_heads", 1u},
            {"head_dim", d},
            {"eps", shape.eps},
            {"context", context},
            {"ring", ring ? 1u : 0u},
            {"cache_element", static_cast<std::uint32_t>(type)},
            {"q_stride", heads * d},
            {"k_stride", d},
            {"v_stride", latent},
            {"latent", latent}},
           {{"q", &q_in},
            {"k", &k_in},
            {"v", &v_in},
            {"k_norm", &k_norm},
            {"latent_query", &latent_query},
            {"output", &output},
            {"state", &state},
            {"keys", &key_cache},
            {"values", &value_cache},
            {"rope", &turns}},
           {heads + 2, tokens, 1});
    reference::turn_inputs in{{q, k, v}};
    in.norms[1] = norm, in.latent_query = before;
    reference::turn(shape, in, expected, position, keys, values, rope);
    CHECK_SAME(on, output.read<float>(), expected);
    if (on.device().description().type != gpu::device_type::cpu) continue;
    CHECK(key_cache.read<std::byte>() == keys);
    CHECK(value_cache.read<std::byte>() == values);
  }
}
