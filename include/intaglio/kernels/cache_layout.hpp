// SPDX-License-Identifier: MIT
// Layout of a layer's key and value cache. Keys are stored in octets of 8 positions, so that neighbouring lanes, each
// with one position, read neighbouring 16 bytes of f16. Values are stored row by row. In a coded cache both are stored
// in octets of positions, each with its codes first and its factors after them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <string_view>

#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// Positions of a block of keys, and channels of a block's chunk; head_dim is a multiple of it.
inline constexpr std::uint32_t cache_octet = 8;
/// Positions whose scores share one maximum. Attention handles a span at once and merges the spans' results in order.
inline constexpr std::uint32_t attention_span = 256;

/// Number of spans of a context.
constexpr std::uint32_t attention_spans(std::uint32_t context) {
  return (context + attention_span - 1) / attention_span;
}

/// Number of spans that can hold a window of positions, at any first position.
constexpr std::uint32_t attention_window_spans(std::uint32_t window) {
  return (window + attention_span - 2) / attention_span + 1;
}
/// Slots of a ring cache for a window and passes of up to `tokens` tokens, in whole spans.
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

/// Index of an element of a layer's keys in a cache without codes, in elements.
constexpr std::uint64_t key_cache_index(std::uint32_t kv_head, std::uint32_t position, std::uint32_t channel,
                                        std::uint32_t head_dim, std::uint32_t context) {
  const std::uint64_t octets = (context + cache_octet - 1) / cache_octet, chunks = head_dim / cache_octet;
  return (((kv_head * octets + position / cache_octet) * chunks + channel / cache_octet) * cache_octet +
          position % cache_octet) *
             cache_octet +
         channel % cache_octet;
}
/// Index of an element of a layer's values in a cache without codes, in elements.
constexpr std::uint64_t value_cache_index(std::uint32_t kv_head, std::uint32_t position, std::uint32_t channel,
                                          std::uint32_t head_dim, std::uint32_t context) {
  return (std::uint64_t{kv_head} * context + position) * head_dim + channel;
}

/// How the elements of a cache are stored. A coded cache has blocks of cache_block channels of one position, each with
/// an f16 factor: value = factor * (code - zero), like blocks of the weights' codec of the same name.
struct cache_codec {
  element type = element::f16;
  std::string_view name = "f16";
  std::uint32_t bits = 16;  ///< bits of an element or a code
  std::uint32_t zero = 0;   ///< value that is subtracted from codes; 0: codes are signed
};
/// The element types of a cache.
inline constexpr cache_codec cache_codecs[] = {{element::f16, "f16", 16, 0},
                                               {element::f32, "f32", 32, 0},
                                               {element::q8_0, "q8_0", 8, 0},
                                               {element::q4_0, "q4_0", 4, 8}};
/// How a cache of this element type is stored; f16 for types that no cache has.
constexpr const cache_codec& cache_codec_of(element type) {
  for (const cache_codec& each : cache_codecs)
    if (each.type == type) return each;
  return cache_codecs[0];
}
/// Whether a cache of this type has codes with factors.
constexpr bool is_coded(element type) { return type > element::bf16; }
/// Channels that share a factor; the last block of a head may have fewer.
inline constexpr std::uint32_t cache_block = 32;
/// Number of blocks of a head at one position.
constexpr std::uint32_t cache_blocks(std::uint32_t head_dim) { return (head_dim + cache_block - 1) / cache_block; }

/// Bytes of an octet of positions of one head of a coded cache. Codes of keys: [chunks of 8 channels, 8 positions];
/// codes of values: [8 positions, chunks]; each of 8 codes, the first in the lowest bits. The factors follow: [pairs of
/// blocks, 8 positions, 2].
constexpr std::uint64_t cache_code_bytes(element type, std::uint32_t head_dim) {
  return std::uint64_t{cache_octet} * head_dim * cache_codec_of(type).bits / 8;
}
/// Bytes of an octet of positions of one head of a coded cache: its codes and its factors.
constexpr std::uint64_t cache_octet_bytes(element type, std::uint32_t head_dim) {
  return cache_code_bytes(type, head_dim) + 4 * cache_octet * ((cache_blocks(head_dim) + 1) / 2);
}
/// Byte offsets of 8 codes and of their factor in a layer's keys or values.
struct coded_offsets {
  std::uint64_t codes = 0, factor = 0;
};
/// Offsets of the 8 codes of a chunk of channels at one position, and of their factor, in a coded cache.
constexpr coded_offsets cache_offsets(element type, bool is_value, std::uint32_t kv_head, std::uint32_t position,
                                      std::uint32_t chunk, std::uint32_t head_dim, std::uint32_t context) {
  const std::uint64_t octets = (context + cache_octet - 1) / cache_octet, chunks = head_dim / cache_octet,
                      base = (kv_head * octets + position / cache_octet) * cache_octet_bytes(type, head_dim),
                      in_octet = position % cache_octet, block = chunk / (cache_block / 8);
  const std::uint64_t item = is_value ? in_octet * chunks + chunk : chunk * cache_octet + in_octet;
  return {base + item * cache_codec_of(type).bits,
          base + cache_code_bytes(type, head_dim) + 4 * (block / 2 * cache_octet + in_octet) + 2 * (block % 2)};
}

/// Bytes of a layer's keys, or values.
constexpr std::uint64_t key_cache_bytes(element type, std::uint32_t kv_heads, std::uint32_t head_dim,
                                        std::uint32_t context) {
  if (!is_coded(type)) return key_cache_elements(kv_heads, head_dim, context) * cache_codec_of(type).bits / 8;
  return std::uint64_t{kv_heads} * ((context + cache_octet - 1) / cache_octet) * cache_octet_bytes(type, head_dim);
}
/// Bytes of a layer's values in a cache of this element type.
constexpr std::uint64_t value_cache_bytes(element type, std::uint32_t kv_heads, std::uint32_t head_dim,
                                          std::uint32_t context) {
  if (is_coded(type)) return key_cache_bytes(type, kv_heads, head_dim, context);
  return value_cache_elements(kv_heads, head_dim, context) * cache_codec_of(type).bits / 8;
}

}  // namespace intaglio::kernels
