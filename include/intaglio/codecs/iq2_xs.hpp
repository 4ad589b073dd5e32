// SPDX-License-Identifier: MIT
// IQ2_XS: 256 weights, eight of them an entry of a grid with signs, a scale of 4 bits for 16.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (0.5 + scale) / 4 * sign * level.
/// @layout d f16; for each 8 a u16: index of 9 bits, seven signs; scales, 8 bytes
/// @source ggml-quants.c, dequantize_row_iq2_xs
struct iq2_xs : grid_codec {
  static constexpr dtype type = dtype::iq2_xs;
  static constexpr std::size_t elements = 256, bytes = 74;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq2_xs>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t k = 0; k < 32; ++k) {
      const unsigned both = u16_at(block + 2 + 2 * k);
      put_eight(grids::iq2_xs[both & 511u], eighth_sign(both >> 9), to.codes.data() + 8 * k);
    }
    for (std::size_t group = 0; group < 8; ++group) put_two_factors(block[66 + group], to, group);
    std::memcpy(to.super.data(), block, 2);
  }
};

}  // namespace intaglio::codecs
