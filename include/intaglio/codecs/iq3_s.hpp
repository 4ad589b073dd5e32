// SPDX-License-Identifier: MIT
// IQ3_S: 256 weights, four of them an entry of a grid, signs, a scale of 4 bits for 32.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (1 + 2 * scale) * sign * level. Codes are levels from -15 to 15 in steps of 2.
/// @layout d f16; bits 0 to 7 of the index of each 4, 64 bytes; their bits 8, 8 bytes; signs, 32 bytes; scales, 4 bytes
/// @source ggml-quants.c, dequantize_row_iq3_s
struct iq3_s : grid_codec {
  static constexpr dtype type = dtype::iq3_s;
  static constexpr std::size_t elements = 256, bytes = 110;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq3_s>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (unsigned i = 0; i < 256; ++i) {
      const unsigned quad = i / 4, upper = block[66 + quad / 8] >> (quad % 8) & 1u,
                     level = static_cast<unsigned>(grids::iq3_s[block[2 + quad] | upper << 8]) >> (3 * (i % 4)) & 7u;
      const bool negative = (block[74 + i / 8] >> (i % 8) & 1) != 0;
      to.codes[i] = static_cast<std::uint8_t>(negative ? 7 - level : 8 + level);
    }
    for (std::size_t group = 0; group < 8; ++group)
      to.factors[group][0] = static_cast<std::uint8_t>(2 * (block[106 + group / 2] >> (4 * (group % 2)) & 15) + 1);
    std::memcpy(to.super.data(), block, 2);
  }
};

}  // namespace intaglio::codecs
