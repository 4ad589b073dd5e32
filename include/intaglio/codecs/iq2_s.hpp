// SPDX-License-Identifier: MIT
// IQ2_S: 256 weights, eight of them an entry of a grid with signs, a scale of 4 bits for 16.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (0.5 + scale) / 4 * sign * level.
/// @layout d f16; bits 0 to 7 of the index of each 8, 32 bytes; their signs, 32 bytes; bits 8 and 9 of four indices in
/// a byte, 8 bytes; scales, 8 bytes
/// @source ggml-quants.c, dequantize_row_iq2_s
struct iq2_s : grid_codec {
  static constexpr dtype type = dtype::iq2_s;
  static constexpr std::size_t elements = 256, bytes = 82;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq2_s>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned upper = block[66 + k / 4] >> (2 * (k % 4)) & 3u;
      put_eight(grids::iq2_s[block[2 + k] | upper << 8], block[34 + k], to.codes.data() + 8 * k);
    }
    for (std::size_t group = 0; group < 8; ++group) put_two_factors(block[74 + group], to, group);
    std::memcpy(to.super.data(), block, 2);
  }
};

}  // namespace intaglio::codecs
