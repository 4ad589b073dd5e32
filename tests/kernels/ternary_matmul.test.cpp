// SPDX-License-Identifier: MIT
#include "intaglio/reference/ternary_matmul.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;
using kernels::prologue;

namespace {

struct problem {
  reference::ternary_matmul_shape shape;
  std::uint32_t position = 0;
  std::vector<float> x, norm_weight, scales;
  std::vector<std::uint32_t> weight;
};

problem make(random_numbers& random, const reference::ternary_matmul_shape& shape, std::uint32_t tokens, std::uint32_t position = 0) {
  problem out{shape, position, random.floats(std::size_t{tokens} * shape.columns, -2, 2), random.floats(shape.columns, 0.5f, 1.5f),
              random.floats(3, 0.01f, 0.1f), std::vector<std::uint32_t>(kernels::tile_words(shape.rows, shape.columns))};
  for (auto& word : out.weight)
    for (std::uint32_t i = 0; i < 16; ++i) word |= random.below(3) << (2 * i);
  return out;
}

std::size_t output_width(const reference::ternary_matmul_shape& s) {
  return s.epilogue == epilogue::rope_cache ? s.q_size : s.epilogue == epilogue::gated ? s.rows / 2 : s.rows;
}

struct result {
  std::vector<float> output;
  std::vector<std::byte> keys, values;
};

std::size_t cache_bytes(const reference::ternary_matmul_shape& s, bool of_keys) {
  if (s.epilogue != epilogue::rope_cache) return 4;
  return (of_keys ? kernels::key_cache_elements : kernels::value_cache_elements)(s.kv_size / s.head_dim, s.head_dim, s.context) * reference::elements::size_bytes(s.cache_element);
}

/// Every buffer starts as poison, the output of `add` as a ramp.
result initial(const problem& p, std::size_t tokens) {
  result out{std::vector<float>(tokens * output_width(p.shape), std::bit_cast<float>(0xa5a5a5a5u)), std::vector<std::byte>(cache_bytes(p.shape, true), poison),
             std::vector<std::byte>(cache_bytes(p.shape, false), poison)};
  if (p.shape.epilogue == epilogue::add)
    for (std::size_t i = 0; i < out.output.size(); ++i) out.output[i] = static_cast<float>(i % 17) - 8.0f;
  return out;
}

result expect(const problem& p, std::size_t tokens, std::size_t room) {
  result out = initial(p, room);
  std::vector<std::int8_t> q(tokens * p.shape.columns);
  std::vector<reference::factors> factors(tokens);
  reference::norm_quantize(std::span(p.x).first(q.size()), p.norm_weight, p.shape.columns, 1e-5f, q, factors);
  reference::ternary_matmul(p.shape, q, factors, p.weight, p.scales, out.output, p.position, out.keys, out.values);
  return out;
}

std::vector<named_value> constants(const problem& p, prologue before, std::uint32_t tile_tokens) {
  const auto& s = p.shape;
  return {{"columns", s.columns}, {"rows", s.rows}, {"prologue", static_cast<std::uint32_t>(before)}, {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
          {"eps", 1e-5f}, {"tile_tokens", tile_tokens}, {"head_dim", std::max(4u, s.head_dim)}, {"q_size", s.q_size}, {"kv_size", s.kv_size}, {"context", s.context},
          {"rope_theta", s.rope_theta}, {"cache_element", static_cast<std::uint32_t>(s.cache_element)}, {"gate", static_cast<std::uint32_t>(s.gate)}};
}

/// The first `tokens` of `room` tokens, as prefill does it or, token by token, as decode does.
result run(kernel_device& on, const problem& p, prologue before, std::uint32_t subgroups, std::uint32_t tile_tokens, std::uint32_t tokens, std::uint32_t room,
           std::uint32_t groups) {
  const auto& s = p.shape;
  result out = initial(p, room);
  const auto weight = on.filled(p.weight), norm_weight = on.filled(p.norm_weight), scales = on.filled(p.scales);
  const auto output = on.filled(out.output), keys = on.filled(out.keys), values = on.filled(out.values), all = on.filled(p.x);
  const auto go = [&](const guarded_buffer& input, const guarded_buffer& factors, const guarded_buffer& to, std::uint32_t position, std::uint32_t count, std::uint32_t tiles) {
    const auto state = on.filled(fresh_state(position, count, room, std::max(1u, s.context)));
    on.run(kernels::kernel::ternary_matmul, subgroups, constants(p, before, tile_tokens),
           {{"input", &input}, {"norm_weight", &norm_weight}, {"factors", &factors}, {"weight", &weight}, {"scales", &scales}, {"output", &to}, {"state", &state},
            {"keys", &keys}, {"values", &values}}, {groups, tiles, 1});
  };
  if (before == prologue::quantized) {
    const auto q = on.poisoned(std::size_t{room} * s.columns), factors = on.poisoned(std::size_t{room} * 8);
    const auto state = on.filled(fresh_state(0, tokens, room, 1));
    on.run(kernels::kernel::norm_quantize, 1, {{"width", s.columns}, {"eps", 1e-5f}},
           {{"input", &all}, {"norm_weight", &norm_weight}, {"output", &q}, {"factors", &factors}, {"state", &state}}, {1, room, 1});
    go(q, factors, output, p.position, tokens, (room + tile_tokens - 1) / tile_tokens);
    out.output = output.read<float>();
  } else {
    const std::size_t width = output_width(s);
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const auto input = on.filled(std::vector<float>(p.x.begin() + t * s.columns, p.x.begin() + (t + 1) * s.columns));
      const auto to = on.filled(std::vector<float>(out.output.begin() + static_cast<std::ptrdiff_t>(t * width), out.output.begin() + static_cast<std::ptrdiff_t>((t + 1) * width)));
      go(input, scales, to, p.position + t, 1, 1);
      const auto part = to.read<float>();
      std::copy(part.begin(), part.end(), out.output.begin() + static_cast<std::ptrdiff_t>(t * width));
    }
  }
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

void check(kernel_device& on, const result& found, const result& expected) {
  CHECK_SAME(on, found.output, expected.output);
  if (on.device().description().type != gpu::device_type::cpu) return;
  CHECK(found.keys == expected.keys);
  CHECK(found.values == expected.values);
}

}  // namespace

TEST_CASE("ternary_matmul: every epilogue, prologue, tile of tokens and width gives the reference's bits") {
  kernel_device on;
  const int module = GENERATE(0, 1, 2);
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
  on.fixed_width = module != 0;
  random_numbers random(3);
  using gate = kernels::gate;
  using element = kernels::element;
  const std::vector<reference::ternary_matmul_shape> shapes{
      {.columns = 256, .rows = 64},
      {.columns = 16, .rows = 4},
      {.columns = 1024, .rows = 32, .epilogue = epilogue::add},
      {.columns = 336, .rows = 40, .epilogue = epilogue::add},
      {.columns = 256, .rows = 512, .epilogue = epilogue::rope_cache, .head_dim = 64, .q_size = 256, .kv_size = 128, .context = 40, .rope_theta = 10000.f},
      {.columns = 64, .rows = 96, .epilogue = epilogue::rope_cache, .head_dim = 16, .q_size = 64, .kv_size = 16, .context = 37, .rope_theta = 500000.f, .cache_element = element::f32},
      {.columns = 256, .rows = 64, .epilogue = epilogue::gated},
      {.columns = 128, .rows = 24, .epilogue = epilogue::gated, .gate = gate::silu},
      {.columns = 128, .rows = 24, .epilogue = epilogue::gated, .gate = gate::gelu_tanh},
  };
  for (const auto& shape : shapes) {
    const std::uint32_t tokens = 5, room = 16;
    const problem p = make(random, shape, room, shape.epilogue == epilogue::rope_cache ? shape.context - 3 : 0);
    const result expected = expect(p, tokens, room);
    INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue) << ", module " << module);
    const result decoded = run(on, p, prologue::norm_quantize, 1, 1, tokens, room, 3);
    check(on, decoded, expected);
    for (const std::uint32_t tile : {1u, 4u, 8u}) {
      INFO("tile of " << tile);
      check(on, run(on, p, prologue::quantized, tile == 4 ? 2 : 1, tile, tokens, room, 2), expected);
    }
    const result wide = run(on, p, prologue::norm_quantize, 4, 1, 2, room, 5);
    const result prefilled = run(on, p, prologue::quantized, 4, 8, 2, room, 5);
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
                            reference::ternary_matmul_shape{.columns = 2560, .rows = 3840, .epilogue = epilogue::rope_cache, .head_dim = 128, .q_size = 2560,
                                                            .kv_size = 640, .context = 4096, .rope_theta = 500000.f}}) {
    const problem p = make(random, shape, 1, 4095);
    const result expected = expect(p, 1, 1);
    for (const bool wide : {true, false}) {
      on.wide_loads = wide;
      check(on, run(on, p, prologue::norm_quantize, 1, 1, 1, 1, 4), expected);
    }
  }
}
