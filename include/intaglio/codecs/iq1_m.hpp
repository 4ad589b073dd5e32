// SPDX-License-Identifier: MIT
// IQ1_M: 256 weights, eight of them an entry of a grid and a shift of 1/8 up or down, a scale of 3 bits for 16.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (2 * scale + 1) * (level + 1/8) or d * (2 * scale + 1) * (level - 1/8). A code is a level; its
/// lowest bit says whether the shift is up.
/// @layout bits 0 to 7 of the index of each 8 weights, 32 bytes; a byte for each 16 weights: bits 8 to 10 of two
/// indices, and above each index whether its shift is down; four u16: each has four scales and, in its upper 4 bits, 4
/// bits of the f16 d, the lowest first
/// @source ggml-quants.c, dequantize_row_iq1_m
struct iq1_m : grid_codec {
  static constexpr dtype type = dtype::iq1_m;
  static constexpr std::size_t elements = 256, bytes = 56;

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq1_m>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (unsigned i = 0; i < 256; ++i) {
      const unsigned eight = i / 8, upper = block[32 + eight / 2] >> (4 * (eight % 2)) & 15u,
                     levels = grids::iq1[block[eight] | (upper & 7u) << 8], level = levels >> (2 * (i % 8)) & 3u;
      to.codes[i] = static_cast<std::uint8_t>(2 * level + (upper < 8 ? 1u : 0u));
    }
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned four = u16_at(block + 48 + k / 4 * 2);
      to.factors[k / 2][k % 2] = static_cast<std::uint8_t>(2 * (four >> (3 * (k % 4)) & 7u) + 1);
    }
    const std::uint16_t d = half_of(block);
    std::memcpy(to.super.data(), &d, 2);
  }
  static bool is_finite(const std::uint8_t* block) { return (half_of(block) & 0x7C00u) != 0x7C00u; }
  static void scale_to(std::uint8_t* block, float largest) {
    const std::uint16_t d = f16_from_f32(largest / 16);
    for (unsigned k = 0; k < 4; ++k)
      block[49 + 2 * k] = static_cast<std::uint8_t>((block[49 + 2 * k] & 15) | (d >> (4 * k) & 15) << 4);
  }

 private:
  static std::uint16_t half_of(const std::uint8_t* block) {
    unsigned out = 0;
    for (unsigned k = 0; k < 4; ++k) out |= static_cast<unsigned>(block[49 + 2 * k] >> 4) << (4 * k);
    return static_cast<std::uint16_t>(out);
  }
};

}  // namespace intaglio::codecs
