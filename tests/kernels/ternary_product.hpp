// SPDX-License-Identifier: MIT
// What the tests of the kernels with ternary weights share: problems, and how int8 activations are run.
#pragma once

#include "intaglio/reference/ternary_matmul.hpp"
#include "kernels/product_result.hpp"

namespace intaglio::testing {

/// A ternary product with random weights and activations.
struct ternary_problem {
  reference::ternary_matmul_shape shape;
  std::uint32_t position = 0, tokens = 1, room = 1;  ///< tokens of the pass, and those that there is room for
  std::vector<float> x, norm_weight, scales;
  std::vector<std::uint32_t> weight;

  std::size_t output_width() const {
    return shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
           : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                           : shape.rows;
  }

  static ternary_problem make(random_numbers& random, const reference::ternary_matmul_shape& shape,
                              std::uint32_t tokens, std::uint32_t room, std::uint32_t position = 0) {
    ternary_problem out{shape,
                        position,
                        tokens,
                        room,
                        random.floats(std::size_t{room} * shape.columns, -2, 2),
                        random.floats(shape.columns, 0.5f, 1.5f),
                        random.floats(3, 0.01f, 0.1f),
                        std::vector<std::uint32_t>(kernels::tile_words(shape.rows, shape.columns))};
    for (auto& word : out.weight)
      for (std::uint32_t i = 0; i < 16; ++i) word |= random.below(3) << (2 * i);
    return out;
  }
};

/// A problem whose activations are int8 already, as norm_quantize leaves them.
struct chunk_problem {
  ternary_problem product;
  std::vector<std::int8_t> q;
  std::vector<reference::factors> factors;

  static chunk_problem make(random_numbers& random, const reference::ternary_matmul_shape& shape, std::uint32_t tokens,
                            std::uint32_t room) {
    chunk_problem out{
        ternary_problem::make(random, shape, tokens, 1,
                              shape.epilogue == kernels::epilogue::rope_cache ? shape.context - tokens + 2 : 0),
        {},
        {}};
    out.product.room = room;
    for (std::size_t i = 0; i < std::size_t{room} * shape.columns; ++i)
      out.q.push_back(static_cast<std::int8_t>(static_cast<int>(random.below(256)) - 128));
    for (std::uint32_t t = 0; t < room; ++t) {
      reference::factors each{random.between(0.01f, 0.02f), 0};
      for (std::uint32_t c = 0; c < shape.columns; ++c) each.sum += out.q[std::size_t{t} * shape.columns + c];
      out.factors.push_back(each);
    }
    return out;
  }
};

inline product_result expect(const chunk_problem& p) {
  const auto& of = p.product;
  product_result out = initial(of);
  reference::ternary_matmul(of.shape, p.q, std::span(p.factors).first(of.tokens), of.weight, of.scales, out.output,
                            of.position, out.keys, out.values);
  return out;
}

/// Runs `which`, a kernel of many tokens with int8 activations, with the constants of its own besides those of every
/// one.
inline product_result run(kernel_device& on, kernels::kernel which, const chunk_problem& p, std::uint32_t subgroups,
                          std::vector<named_value> constants, std::array<std::uint32_t, 3> groups) {
  const auto& s = p.product.shape;
  product_result out = initial(p.product);
  const auto weight = on.filled(p.product.weight), scales = on.filled(p.product.scales), q = on.filled(p.q),
             factors = on.filled(p.factors), output = on.filled(out.output), keys = on.filled(out.keys),
             values = on.filled(out.values),
             state =
                 on.filled(fresh_state(p.product.position, p.product.tokens, p.product.room, std::max(1u, s.context)));
  constants.insert(constants.end(), {{"columns", s.columns},
                                     {"rows", s.rows},
                                     {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
                                     {"head_dim", std::max(4u, s.head_dim)},
                                     {"q_size", s.q_size},
                                     {"kv_size", s.kv_size},
                                     {"context", s.context},
                                     {"rope_theta", s.rope_theta},
                                     {"cache_element", static_cast<std::uint32_t>(s.cache_element)},
                                     {"activation", s.gate}});
  on.run(which, subgroups, constants,
         {{"input", &q},
          {"factors", &factors},
          {"weight", &weight},
          {"scales", &scales},
          {"output", &output},
          {"state", &state},
          {"keys", &keys},
          {"values", &values}},
         groups);
  out.output = output.read<float>();
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

inline std::vector<named_value> ternary_constants(const reference::ternary_matmul_shape& s, kernels::prologue before,
                                                  std::uint32_t tile_tokens) {
  return {{"columns", s.columns},
          {"rows", s.rows},
          {"prologue", static_cast<std::uint32_t>(before)},
          {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
          {"eps", 1e-5f},
          {"tile_tokens", tile_tokens},
          {"head_dim", std::max(4u, s.head_dim)},
          {"q_size", s.q_size},
          {"kv_size", s.kv_size},
          {"context", s.context},
          {"rope_theta", s.rope_theta},
          {"cache_element", static_cast<std::uint32_t>(s.cache_element)},
          {"activation", s.gate}};
}

}  // namespace intaglio::testing
