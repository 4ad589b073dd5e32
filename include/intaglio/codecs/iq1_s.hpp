// SPDX-License-Identifier: MIT
// IQ1_S: 256 weights, eight of them an entry of a grid, a scale of 3 bits and a shift of 1/8 up or down for 32.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (2 * scale + 1) * (level + 1/8) or d * (2 * scale + 1) * (level - 1/8). The second form is -(-level
/// + 1/8), so its factor is negative.
/// @layout d f16; bits 0 to 7 of the index of each 8 weights, 32 bytes; for each 32 weights a u16: bits 8 to 10 of four
/// indices, the scale, and whether the shift is down
/// @source ggml-quants.c, dequantize_row_iq1_s
struct iq1_s : grid_codec {
  static constexpr dtype type = dtype::iq1_s;
  static constexpr std::size_t elements = 256, bytes = 50;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq1_s>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 8; ++group) {
      const unsigned rest = u16_at(block + 34 + 2 * group);
      const bool down = (rest >> 15) != 0;
      for (unsigned i = 0; i < 32; ++i) {
        const unsigned upper = rest >> (3 * (i / 8)) & 7u,
                       levels = grids::iq1[block[2 + 4 * group + i / 8] | upper << 8],
                       level = levels >> (2 * (i % 8)) & 3u;
        to.codes[32 * group + i] = static_cast<std::uint8_t>(down ? 2 - level : level);
      }
      const int factor = static_cast<int>(2 * (rest >> 12 & 7u) + 1);
      to.factors[group][0] = static_cast<std::uint8_t>(down ? -factor : factor);
    }
    std::memcpy(to.super.data(), block, 2);
  }
};

}  // namespace intaglio::codecs
