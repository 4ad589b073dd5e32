// SPDX-License-Identifier: MIT
// Kernels of layers with a recurrent state on the CPU: short_conv, delta_net in both its rules, and head_gate.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/kernels/arithmetic.hpp"

namespace intaglio::reference {

/// The sizes and options of the kernel short_conv.
struct short_conv_shape {
  std::size_t width = 0, taps = 0;
  bool multiplied = false;  ///< the input is B, C and h
};

/// Kernel short_conv.
/// @param position of the first token; where it is 0 `kept` is not read  @param bias [width], or empty
/// @shape  input: [tokens, 3 width] where `multiplied` is set, else [tokens, width]; weight: [width, taps]; kept: [taps
/// - 1, width]; output: [tokens, width]
inline void short_conv(const short_conv_shape& shape, std::span<const float> input, std::span<const float> weight,
                       std::uint32_t position, std::span<float> kept, std::span<float> output,
                       std::span<const float> bias = {}) {
  using kernels::arithmetic::product;
  const std::size_t width = shape.width, before = shape.taps - 1, tokens = output.size() / width;
  std::vector<float> z((before + tokens) * width);
  if (position != 0) std::ranges::copy(kept.first(before * width), z.begin());
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t c = 0; c < width; ++c)
      z[(before + t) * width + c] =
          shape.multiplied ? product(input[3 * t * width + c], input[(3 * t + 2) * width + c]) : input[t * width + c];
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t c = 0; c < width; ++c) {
      float sum = 0;
      for (std::size_t k = 0; k < shape.taps; ++k) sum += product(weight[c * shape.taps + k], z[(t + k) * width + c]);
      if (!bias.empty()) sum += bias[c];
      output[t * width + c] = shape.multiplied ? product(input[(3 * t + 1) * width + c], sum)
                                               : sum / (1.0f + kernels::arithmetic::exp(-sum));
    }
  std::copy_n(z.end() - static_cast<std::ptrdiff_t>(before * width), before * width, kept.begin());
}

/// The offsets of a token's betas and alphas.
struct delta_gate_offsets {
  std::size_t stride = 0, group = 0;  ///< gate_stride and gate_group of kernels/delta_net.hpp
};
/// Kernel delta_net with the gated delta rule.
/// @param position of the first token; where it is 0 `kept` is not read
/// @shape  qkv: [tokens, qkv_size]; decay, shift: [value_heads]; kept: [value_heads, key_dim, value_dim]; output:
/// [tokens, value_size]
inline void delta_net(const delta_net_config& sizes, const delta_gate_offsets& gates, std::span<const float> qkv,
                      std::span<const float> beta, std::span<const float> alpha, std::span<const float> decay,
                      std::span<const float> shift, std::uint32_t position, std::span<float> kept,
                      std::span<float> output) {
  using kernels::arithmetic::exp, kernels::arithmetic::product;
  const std::size_t keys = std::size_t{sizes.key_heads} * sizes.key_dim, values = sizes.value_size(),
                    tokens = output.size() / values, dim = sizes.key_dim, columns = sizes.value_dim,
                    group = sizes.value_heads / sizes.key_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(sizes.key_dim));
  const auto inverse_length = [&](std::span<const float> of) {
    float sum = 0;
    for (const float x : of) sum += product(x, x);
    return 1.0f / std::sqrt(sum + 1e-6f);
  };
  if (position == 0) std::ranges::fill(kept.first(values * dim), 0.0f);
  std::vector<float> query(dim), key(dim);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t h = 0; h < sizes.value_heads; ++h) {
      const std::size_t key_head = sizes.in_turn ? h % sizes.key_heads : h / group;
      const auto row = qkv.subspan(t * sizes.qkv_size(), sizes.qkv_size());
      const auto q = row.subspan(key_head * dim, dim), k = row.subspan(keys + key_head * dim, dim),
                 v = row.subspan(2 * keys + h * columns, columns);
      const float of_query = product(inverse_length(q), scale), of_key = inverse_length(k);
      for (std::size_t i = 0; i < dim; ++i) query[i] = product(q[i], of_query), key[i] = product(k[i], of_key);
      const std::size_t at = t * gates.stride + h / group * gates.group + h % group;
      const float write = 1.0f / (1.0f + exp(-beta[at])), x = alpha[at] + shift[h],
                  soft = x > 20.0f ? x : kernels::arithmetic::log(1.0f + exp(x)), stays = exp(product(decay[h], soft));
      const auto state = kept.subspan(h * dim * columns, dim * columns);
      for (std::size_t j = 0; j < columns; ++j) {
        std::array<float, 4> seen{}, y{};  // each of every fourth row
        const auto whole = [](const std::array<float, 4>& of) { return (of[0] + of[1]) + (of[2] + of[3]); };
        for (std::size_t i = 0; i < dim; ++i) seen[i % 4] += product(product(state[i * columns + j], stays), key[i]);
        const float change = product(v[j] - whole(seen), write);
        for (std::size_t i = 0; i < dim; ++i) {
          float& s = state[i * columns + j];
          s = product(s, stays) + product(key[i], change);
          y[i % 4] += product(s, query[i]);
        }
        output[t * values + h * columns + j] = whole(y);
      }
    }
}

/// Operands of Mamba-2's rule: the operands of delta_net, and skip [value_heads] and gate [tokens, value_size].
struct state_space_operands {
  std::span<const float> values_keys_queries, steps, decay, shift, skip, gate;
};
/// Kernel delta_net with Mamba-2's rule.
/// @param position of the first token; where it is 0 `kept` is not read
/// @shape  values_keys_queries: [tokens, qkv_size], in this order; steps: [tokens, value_heads]; kept: [value_heads,
/// key_dim, value_dim]; output: [tokens, value_size]
inline void state_space(const delta_net_config& sizes, const state_space_operands& in, std::uint32_t position,
                        std::span<float> kept, std::span<float> output) {
  using kernels::arithmetic::exp, kernels::arithmetic::product;
  const std::size_t keys = std::size_t{sizes.key_heads} * sizes.key_dim, values = sizes.value_size(),
                    tokens = output.size() / values, dim = sizes.key_dim, columns = sizes.value_dim,
                    group = sizes.value_heads / sizes.key_heads;
  if (position == 0) std::ranges::fill(kept.first(values * dim), 0.0f);
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t h = 0; h < sizes.value_heads; ++h) {
      const auto row = in.values_keys_queries.subspan(t * sizes.qkv_size(), sizes.qkv_size());
      const auto v = row.subspan(h * columns, columns), k = row.subspan(values + h / group * dim, dim),
                 q = row.subspan(values + keys + h / group * dim, dim);
      const float x = in.steps[t * sizes.value_heads + h] + in.shift[h],
                  step = x > 20.0f ? x : kernels::arithmetic::log(1.0f + exp(x)),
                  stays = exp(product(in.decay[h], step));
      const auto state = kept.subspan(h * dim * columns, dim * columns);
      for (std::size_t j = 0; j < columns; ++j) {
        std::array<float, 4> y{};  // each of every fourth row
        const float change = product(v[j], step);
        for (std::size_t i = 0; i < dim; ++i) {
          float& s = state[i * columns + j];
          s = product(s, stays) + product(k[i], change);
          y[i % 4] += product(s, q[i]);
        }
        const std::size_t at = t * values + h * columns + j;
        const float all = ((y[0] + y[1]) + (y[2] + y[3])) + product(in.skip[h], v[j]), g = in.gate[at];
        output[at] = product(all, g / (1.0f + exp(-g)));
      }
    }
}

/// The sizes and options of the kernel head_gate.
struct head_gate_shape {
  std::size_t head_dim = 0;
  float eps = 0;          ///< of the norm
  bool logistic = false;  ///< sigmoid, else silu
  bool per_head = false;  ///< one gate for each head; else one for each channel
  bool adds = false;      ///< the result is added to the output
};
/// Kernel head_gate. @param norm empty: heads are not normalised  @shape input, output: [tokens, heads, head_dim]
inline void head_gate(const head_gate_shape& shape, std::span<const float> input, std::span<const float> gate,
                      std::span<const float> norm, std::span<float> output) {
  using kernels::arithmetic::product;
  const std::size_t dim = shape.head_dim;
  for (std::size_t row = 0; row < input.size() / dim; ++row) {
    const auto x = input.subspan(row * dim, dim);
    float r = 1;
    if (!norm.empty()) {
      float sum = 0;
      for (std::size_t i = 0; i < dim; i += 4)
        sum += (product(x[i], x[i]) + product(x[i + 1], x[i + 1])) +
               (product(x[i + 2], x[i + 2]) + product(x[i + 3], x[i + 3]));
      r = 1.0f / std::sqrt(sum / static_cast<float>(dim) + shape.eps);
    }
    for (std::size_t i = 0; i < dim; ++i) {
      const float g = gate[shape.per_head ? row : row * dim + i], below = 1.0f + kernels::arithmetic::exp(-g),
                  factor = shape.logistic ? 1.0f / below : g / below;
      const float y = product(norm.empty() ? x[i] : product(product(x[i], norm[i]), r), factor);
      float& out = output[row * dim + i];
      out = shape.adds ? out + y : y;
    }
  }
}

}  // namespace intaglio::reference
