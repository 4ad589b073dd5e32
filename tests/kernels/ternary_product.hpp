// SPDX-License-Identifier: MIT
// What the tests of the kernels with ternary weights share: a problem, how its memory begins, what is compared.
#pragma once

#include "intaglio/reference/ternary_matmul.hpp"
#include "kernels/kernel_device.hpp"

namespace intaglio::testing {

/// A ternary product with random weights and activations.
struct ternary_problem {
  reference::ternary_matmul_shape shape;
  std::uint32_t position = 0, tokens = 1, room = 1;  ///< tokens of the pass, and those that there is room for
  std::vector<float> x, norm_weight, scales;
  std::vector<std::uint32_t> weight;

  std::size_t output_width() const { return shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size : shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows; }

  static ternary_problem make(random_numbers& random, const reference::ternary_matmul_shape& shape, std::uint32_t tokens, std::uint32_t room, std::uint32_t position = 0) {
    ternary_problem out{shape, position, tokens, room, random.floats(std::size_t{room} * shape.columns, -2, 2), random.floats(shape.columns, 0.5f, 1.5f),
                random.floats(3, 0.01f, 0.1f), std::vector<std::uint32_t>(kernels::tile_words(shape.rows, shape.columns))};
    for (auto& word : out.weight)
      for (std::uint32_t i = 0; i < 16; ++i) word |= random.below(3) << (2 * i);
    return out;
  }
};

/// What a product leaves.
struct ternary_result {
  std::vector<float> output;
  std::vector<std::byte> keys, values;
};

/// Every buffer starts as poison, the output of `add` as a ramp.
inline ternary_result initial(const ternary_problem& p) {
  const auto& s = p.shape;
  const auto cache = [&](const auto& elements) {
    return std::vector<std::byte>(s.epilogue == kernels::epilogue::rope_cache ? elements(s.kv_size / s.head_dim, s.head_dim, s.context) * reference::elements::size_bytes(s.cache_element) : 4, poison);
  };
  ternary_result out{std::vector<float>(p.room * p.output_width(), std::bit_cast<float>(0xa5a5a5a5u)), cache(kernels::key_cache_elements), cache(kernels::value_cache_elements)};
  if (s.epilogue == kernels::epilogue::add)
    for (std::size_t i = 0; i < out.output.size(); ++i) out.output[i] = static_cast<float>(i % 17) - 8.0f;
  return out;
}

/// A problem whose activations are int8 already, as norm_quantize leaves them.
struct chunk_problem {
  ternary_problem product;
  std::vector<std::int8_t> q;
  std::vector<reference::factors> factors;

  static chunk_problem make(random_numbers& random, const reference::ternary_matmul_shape& shape, std::uint32_t tokens, std::uint32_t room) {
    chunk_problem out{ternary_problem::make(random, shape, tokens, 1, shape.epilogue == kernels::epilogue::rope_cache ? shape.context - tokens + 2 : 0), {}, {}};
    out.product.room = room;
    for (std::size_t i = 0; i < std::size_t{room} * shape.columns; ++i) out.q.push_back(static_cast<std::int8_t>(static_cast<int>(random.below(256)) - 128));
    for (std::uint32_t t = 0; t < room; ++t) {
      reference::factors each{random.between(0.01f, 0.02f), 0};
      for (std::uint32_t c = 0; c < shape.columns; ++c) each.sum += out.q[std::size_t{t} * shape.columns + c];
      out.factors.push_back(each);
    }
    return out;
  }
};

inline ternary_result expect(const chunk_problem& p) {
  const auto& of = p.product;
  ternary_result out = initial(of);
  reference::ternary_matmul(of.shape, p.q, std::span(p.factors).first(of.tokens), of.weight, of.scales, out.output, of.position, out.keys, out.values);
  return out;
}

inline std::vector<named_value> ternary_constants(const reference::ternary_matmul_shape& s, kernels::prologue before, std::uint32_t tile_tokens) {
  return {{"columns", s.columns}, {"rows", s.rows}, {"prologue", static_cast<std::uint32_t>(before)}, {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
          {"eps", 1e-5f}, {"tile_tokens", tile_tokens}, {"head_dim", std::max(4u, s.head_dim)}, {"q_size", s.q_size}, {"kv_size", s.kv_size}, {"context", s.context},
          {"rope_theta", s.rope_theta}, {"cache_element", static_cast<std::uint32_t>(s.cache_element)}, {"activation", s.gate}};
}

inline void check(kernel_device& on, const ternary_result& found, const ternary_result& expected) {
  CHECK_SAME(on, found.output, expected.output);
  if (on.device().description().type != gpu::device_type::cpu) return;
  CHECK(found.keys == expected.keys);
  CHECK(found.values == expected.values);
}

}  // namespace intaglio::testing
