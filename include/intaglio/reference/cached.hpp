// SPDX-License-Identifier: MIT
// The keys or values of a layer on the CPU, in each form that caches have (kernels/cache_layout.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

/// The factor of a block of channels, and the factor by which channels are multiplied before they are rounded to codes.
/// A channel that is NaN or infinite makes the factor NaN.
/// @source ggml-quants.c, quantize_row_q8_0_ref and quantize_row_q4_0_ref
struct cache_factors {
  float factor = 0, inverse = 0;

  static cache_factors of(std::span<const float> block, std::uint32_t bits) {
    float largest = 0, signed_largest = 0;
    if (!std::all_of(block.begin(), block.end(), [](float x) { return std::isfinite(x); }))
      return {std::numeric_limits<float>::quiet_NaN(), 0};
    for (const float x : block)
      if (std::abs(x) > largest) largest = std::abs(x), signed_largest = x;
    const float factor = bits == 8 ? largest / 127.0f : signed_largest / -8.0f;
    return {factor, factor != 0 ? 1.0f / factor : 0.0f};
  }
  std::uint8_t code(float x, std::uint32_t bits) const {
    const float scaled = inverse != 0 ? product(x, inverse) : 0;
    if (bits == 8) return static_cast<std::uint8_t>(static_cast<std::int8_t>(scaled + (scaled < 0 ? -0.5f : 0.5f)));
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(scaled + 8.5f), 0, 15));
  }
};

/// The form of a layer's keys or values. The functions read from and write to the bytes of the whole layer.
struct cached {
  kernels::element type = kernels::element::f16;
  bool is_value = false;
  std::uint32_t head_dim = 0, context = 0;

  std::uint64_t bytes(std::uint32_t kv_heads) const {
    return is_value ? kernels::value_cache_bytes(type, kv_heads, head_dim, context)
                    : kernels::key_cache_bytes(type, kv_heads, head_dim, context);
  }
  /// The stored value of one channel of a position.
  float read(std::span<const std::byte> from, std::uint32_t head, std::uint32_t position, std::uint32_t channel) const {
    if (!kernels::is_coded(type)) return elements::read(from, type, index(head, position, channel));
    const auto at = offsets(head, position, channel);
    const int value = static_cast<int>(code(from, at, channel % 8));
    return static_cast<float>(bits() == 8 ? static_cast<std::int8_t>(value) : value - 8) * factor(from, at);
  }
  /// Stores a head of a position, [head_dim].
  void store(std::span<std::byte> into, std::uint32_t head, std::uint32_t position,
             std::span<const float> values) const {
    if (!kernels::is_coded(type)) {
      for (std::uint32_t c = 0; c < head_dim; ++c) elements(into, type).store(index(head, position, c), values[c]);
      return;
    }
    for (std::uint32_t first = 0; first < head_dim; first += kernels::cache_block) {
      const std::uint32_t count = (std::min)(kernels::cache_block, head_dim - first);
      const auto block = values.subspan(first, count);
      const auto factors = cache_factors::of(block, bits());
      elements(into, kernels::element::f16).store(offsets(head, position, first).factor / 2, factors.factor);
      for (std::uint32_t c = 0; c < count; ++c) {
        const auto at = static_cast<std::size_t>(offsets(head, position, first + c).codes) + c % 8 * bits() / 8;
        const std::uint32_t shift = bits() * (c % (8 / bits())), mask = (1u << bits()) - 1;
        const std::uint32_t others = std::to_integer<std::uint32_t>(into[at]) & ~(mask << shift);
        into[at] = static_cast<std::byte>(others | std::uint32_t{factors.code(block[c], bits())} << shift);
      }
    }
    // The word of a block's factor also has the factor of the next block, or of none.
    if (kernels::cache_blocks(head_dim) % 2 != 0) {
      const auto last = offsets(head, position, (kernels::cache_blocks(head_dim) - 1) * kernels::cache_block).factor;
      elements(into, kernels::element::f16).store(last / 2 + 1, 0);
    }
  }
  /// The code and the factor of a channel in a coded cache.
  std::uint32_t code_of(std::span<const std::byte> from, std::uint32_t head, std::uint32_t position,
                        std::uint32_t channel) const {
    return code(from, offsets(head, position, channel), channel % 8);
  }
  float factor_of(std::span<const std::byte> from, std::uint32_t head, std::uint32_t position,
                  std::uint32_t channel) const {
    return factor(from, offsets(head, position, channel));
  }

 private:
  std::uint32_t bits() const { return kernels::cache_codec_of(type).bits; }
  std::size_t index(std::uint32_t head, std::uint32_t position, std::uint32_t channel) const {
    return static_cast<std::size_t>(
        (is_value ? kernels::value_cache_index : kernels::key_cache_index)(head, position, channel, head_dim, context));
  }
  kernels::coded_offsets offsets(std::uint32_t head, std::uint32_t position, std::uint32_t channel) const {
    return kernels::cache_offsets(type, is_value, head, position, channel / 8, head_dim, context);
  }
  std::uint32_t code(std::span<const std::byte> from, const kernels::coded_offsets& at, std::uint32_t i) const {
    const auto byte = std::to_integer<std::uint32_t>(from[static_cast<std::size_t>(at.codes) + i * bits() / 8]);
    return byte >> bits() * (i % (8 / bits())) & ((1u << bits()) - 1);
  }
  static float factor(std::span<const std::byte> from, const kernels::coded_offsets& at) {
    const float out = elements::read(from, kernels::element::f16, static_cast<std::size_t>(at.factor / 2));
    return std::isfinite(out) ? out : std::numeric_limits<float>::quiet_NaN();
  }
};

}  // namespace intaglio::reference
