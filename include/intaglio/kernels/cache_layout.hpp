// SPDX-License-Identifier: MIT
// Where the elements of a layer's key and value cache lie. Keys stand in octets of 8 positions, so that neighbouring
// lanes, a position each, read 16 neighbouring bytes of halves each; values stand row by row.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

namespace intaglio::kernels {

/// Positions of a block of keys, and channels of a chunk of one; head_dim is a multiple of it.
inline constexpr std::uint32_t cache_octet = 8;
/// Positions whose scores share a maximum: attention takes them at once and merges what comes of them in order.
inline constexpr std::uint32_t attention_span = 256;

/// Spans of a context.
constexpr std::uint32_t attention_spans(std::uint32_t context) {
  return (context + attention_span - 1) / attention_span;
}

/// Spans that hold a window of positions, wherever the window begins.
constexpr std::uint32_t attention_window_spans(std::uint32_t window) {
  return (window + attention_span - 2) / attention_span + 1;
}
/// Slots of a ring for a window and passes of up to `tokens` tokens: whole spans.
constexpr std::uint32_t ring_slots(std::uint32_t window, std::uint32_t tokens) {
  return (window + tokens - 1 + attention_span - 1) / attention_span * attention_span;
}

/// Elements of a layer's keys: [kv_heads, ceil(context / 8), head_dim / 8, 8 positions, 8 channels].
constexpr std::uint64_t key_cache_elements(std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t context) {
  return std::uint64_t{kv_heads} * ((context + cache_octet - 1) / cache_octet * cache_octet) * head_dim;
}
/// Elements of a layer's values: [kv_heads, context, head_dim].
constexpr std::uint64_t value_cache_elements(std::uint32_t kv_heads, std::uint32_t head_dim, std::uint32_t context) {
  return std::uint64_t{kv_heads} * context * head_dim;
}

constexpr std::uint64_t key_cache_index(std::uint32_t kv_head, std::uint32_t position, std::uint32_t channel,
                                        std::uint32_t head_dim, std::uint32_t context) {
  const std::uint64_t octets = (context + cache_octet - 1) / cache_octet, chunks = head_dim / cache_octet;
  return (((kv_head * octets + position / cache_octet) * chunks + channel / cache_octet) * cache_octet +
          position % cache_octet) *
             cache_octet +
         channel % cache_octet;
}
constexpr std::uint64_t value_cache_index(std::uint32_t kv_head, std::uint32_t position, std::uint32_t channel,
                                          std::uint32_t head_dim, std::uint32_t context) {
  return (std::uint64_t{kv_head} * context + position) * head_dim + channel;
}

}  // namespace intaglio::kernels
