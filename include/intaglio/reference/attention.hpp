// SPDX-License-Identifier: MIT
// Kernel attention on the CPU.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

struct attention_shape {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, context = 0;
  kernels::element cache_element = kernels::element::f16;
};

inline constexpr std::size_t attention_block = 32;  ///< positions

/// output[token, head, :] = softmax(q k^T / sqrt(head_dim)) v over positions 0 .. position + token, as far as they lie below context.
/// @shape query, output: [tokens, heads, head_dim]; keys, values: [kv_heads, context, head_dim] of cache_element
inline void attention(const attention_shape& shape, std::span<const float> query, std::span<const std::byte> keys,
                      std::span<const std::byte> values, std::uint32_t position, std::uint32_t tokens, std::span<float> output) {
  const std::size_t d = shape.head_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  std::vector<float> key(d), sums(d), block_sums(d), scores(attention_block);
  for (std::size_t token = 0; token < tokens; ++token)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const auto q = query.subspan((token * shape.heads + head) * d, d);
      const std::size_t cache = head / (shape.heads / shape.kv_heads) * shape.context;
      const std::size_t fed = position + token + 1, end = fed < shape.context ? fed : shape.context;
      float maximum = 0, total = 0;
      for (std::size_t first = 0; first < end; first += attention_block) {
        const std::size_t count = end - first < attention_block ? end - first : attention_block;
        float block_maximum = -HUGE_VALF, block_total = 0;
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t c = 0; c < d; ++c) key[c] = elements::read(keys, shape.cache_element, (cache + first + i) * d + c);
          scores[i] = product(dot<4>(q, key), scale);
          block_maximum = std::fmax(block_maximum, scores[i]);
        }
        for (float& sum : block_sums) sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const float p = kernels::arithmetic::exp(scores[i] - block_maximum);
          block_total += p;
          for (std::size_t c = 0; c < d; ++c)
            block_sums[c] += product(p, elements::read(values, shape.cache_element, (cache + first + i) * d + c));
        }
        if (first == 0) {
          maximum = block_maximum, total = block_total, sums = block_sums;
          continue;
        }
        const float merged = std::fmax(maximum, block_maximum);
        const float old_factor = kernels::arithmetic::exp(maximum - merged), new_factor = kernels::arithmetic::exp(block_maximum - merged);
        total = product(total, old_factor) + product(block_total, new_factor);
        for (std::size_t c = 0; c < d; ++c) sums[c] = product(sums[c], old_factor) + product(block_sums[c], new_factor);
        maximum = merged;
      }
      for (std::size_t c = 0; c < d; ++c) output[(token * shape.heads + head) * d + c] = sums[c] / total;
    }
}

}  // namespace intaglio::reference
