// SPDX-License-Identifier: MIT
// Kernel attention on the CPU.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/reference/cached.hpp"
#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

/// The sizes and options of an attention, as the constants of the kernels name them.
struct attention_shape {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0, context = 0;
  kernels::element cache_element = kernels::element::f16;
  float scale = 0;                 ///< factor of scores; 0: 1 / sqrt(head_dim)
  std::uint32_t window = 0;        ///< number of positions that a token sees, up to and including its own; 0: all
  std::uint32_t ahead = 0;         ///< positions of the pass after its own that a token sees
  bool ring = false;               ///< position p is in slot p % context; context is then a multiple of a span
  float softcap = 0;               ///< scores s become softcap * tanh(s / softcap); 0: they stay unchanged
  std::span<const float> sinks{};  ///< [heads]: one more score in each head's softmax, whose value is 0; empty: none
  std::uint32_t value_dim = 0;     ///< channels of a value, and of a head of the output; 0: head_dim
  constexpr std::uint32_t value_width() const { return value_dim != 0 ? value_dim : head_dim; }
};

/// The state of attention over some positions: the largest score, the sum of exp(score - maximum), and the sum of the
/// values with these weights.
struct attention_sums {
  float maximum = 0, total = 0;
  std::vector<float> values;  ///< [channels of a value]

  /// Merges the state of a later span into this one.
  void merge(const attention_sums& later) {
    const float merged = std::fmax(maximum, later.maximum);
    const float old_factor = kernels::arithmetic::exp(maximum - merged),
                new_factor = kernels::arithmetic::exp(later.maximum - merged);
    total = product(total, old_factor) + product(later.total, new_factor);
    for (std::size_t c = 0; c < values.size(); ++c)
      values[c] = product(values[c], old_factor) + product(later.values[c], new_factor);
    maximum = merged;
  }
};

/// The score q . k of one position: quarter k of the lanes takes chunks k, k + 4, ... of 8 channels, with four
/// accumulators each.
inline float attention_score(const attention_shape& shape, std::span<const float> query,
                             std::span<const std::byte> keys, std::uint32_t kv_head, std::uint32_t position) {
  std::array<std::array<float, 4>, 4> sums{};
  const cached form{shape.cache_element, false, shape.head_dim, shape.context};
  for (std::uint32_t c = 0; c < shape.head_dim; ++c) {
    float& sum = sums[c / 8 % 4][c % 4];
    sum += product(query[c], form.read(keys, kv_head, position % shape.context, c));
  }
  std::array<float, 4> h{};
  for (std::size_t k = 0; k < 4; ++k) h[k] = (sums[k][0] + sums[k][1]) + (sums[k][2] + sums[k][3]);
  const float score = product((h[0] + h[1]) + (h[2] + h[3]),
                              shape.scale != 0 ? shape.scale : 1.0f / std::sqrt(static_cast<float>(shape.head_dim)));
  if (shape.softcap == 0) return score;
  const float power = kernels::arithmetic::exp(2.0f * (score / shape.softcap)) + 1.0f;
  return product(shape.softcap, 1.0f - 2.0f / power);
}

/// Attention over one span: `count` positions from `first` on, of which those from `from` on are seen. The sums run
/// over octets of 8 positions, in four groups of 8 octets.
inline attention_sums attend_span(const attention_shape& shape, std::span<const float> query,
                                  std::span<const std::byte> keys, std::span<const std::byte> values,
                                  std::uint32_t kv_head, std::uint32_t first, std::uint32_t count,
                                  std::uint32_t from = 0) {
  const std::size_t d = shape.value_width();
  const cached form{shape.cache_element, true, shape.value_width(), shape.context};
  std::array<float, kernels::attention_span> scores{};
  attention_sums out{-HUGE_VALF, 0, {}};
  for (std::uint32_t i = from; i < count; ++i) {
    scores[i] = attention_score(shape, query, keys, kv_head, first + i);
    out.maximum = std::fmax(out.maximum, scores[i]);
  }
  std::array<float, 4> totals{};
  std::array<std::vector<float>, 4> sums;
  for (std::uint32_t group = 0; group < 4; ++group) {
    sums[group].assign(d, 0.0f);
    for (std::uint32_t octet = 64 * group; octet < (std::min)(64 * group + 64, count); octet += 8) {
      const std::uint32_t end = (std::min)(count - octet, 8u);
      std::array<float, 8> p{};
      const std::uint32_t begin = std::clamp(from, octet, octet + end) - octet;
      for (std::uint32_t i = begin; i < end; ++i) p[i] = kernels::arithmetic::exp(scores[octet + i] - out.maximum);
      totals[group] += ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
      for (std::uint32_t c = 0; c < d; ++c) {
        float sum = 0;
        for (std::uint32_t i = begin; i < end; ++i)
          sum += product(p[i], form.read(values, kv_head, (first + octet + i) % shape.context, c));
        sums[group][c] += sum;
      }
    }
  }
  out.total = (totals[0] + totals[1]) + (totals[2] + totals[3]);
  out.values.resize(d);
  for (std::size_t c = 0; c < d; ++c) out.values[c] = (sums[0][c] + sums[1][c]) + (sums[2][c] + sums[3][c]);
  return out;
}

/// Attention of one token of a pass over `tokens` from `position` on. It covers the positions that the shape lets the
/// token see and that are below context.
/// @shape query: [heads, head_dim]; output: [heads, channels of a value]; keys, values: a layer's cache of
/// cache_element (kernels/cache_layout.hpp)
inline void attend_token(const attention_shape& shape, std::span<const float> query, std::span<const std::byte> keys,
                         std::span<const std::byte> values, std::uint32_t position, std::uint32_t tokens,
                         std::uint32_t token, std::span<float> output) {
  const std::size_t d = shape.value_width();
  const auto below = [&](std::uint32_t end) { return shape.ring ? end : (std::min)(end, shape.context); };
  const std::uint32_t own = below(position + token + 1),
                      end = below(position + token + 1 + (std::min)(shape.ahead, tokens - 1 - token)),
                      start = shape.window != 0 && own > shape.window ? own - shape.window : 0,
                      begin = start / kernels::attention_span * kernels::attention_span;
  for (std::uint32_t head = 0; head < shape.heads; ++head) {
    const std::size_t at = head * d;
    const auto span_at = [&](std::uint32_t first) {
      return attend_span(shape, query.subspan(std::size_t{head} * shape.head_dim, shape.head_dim), keys, values,
                         head / (shape.heads / shape.kv_heads), first, (std::min)(end - first, kernels::attention_span),
                         first < start ? start - first : 0);
    };
    attention_sums all = span_at(begin);
    for (std::uint32_t first = begin + kernels::attention_span; first < end; first += kernels::attention_span)
      all.merge(span_at(first));
    if (!shape.sinks.empty()) all.merge({shape.sinks[head], 1, std::vector<float>(d)});
    for (std::size_t c = 0; c < d; ++c) output[at + c] = all.values[c] / all.total;
  }
}

/// Kernel attention: output[token, head, :] = softmax(q k^T * scale) v for each token of a pass, as in attend_token.
/// @shape query: [tokens, heads, head_dim]; output: [tokens, heads, channels of a value]; keys, values as for
/// attend_token
inline void attention(const attention_shape& shape, std::span<const float> query, std::span<const std::byte> keys,
                      std::span<const std::byte> values, std::uint32_t position, std::uint32_t tokens,
                      std::span<float> output) {
  const std::size_t width = std::size_t{shape.heads} * shape.head_dim,
                    out_width = std::size_t{shape.heads} * shape.value_width();
  for (std::uint32_t token = 0; token < tokens; ++token)
    attend_token(shape, query.subspan(token * width, width), keys, values, position, tokens, token,
                 output.subspan(token * out_width, out_width));
}

}  // namespace intaglio::reference
