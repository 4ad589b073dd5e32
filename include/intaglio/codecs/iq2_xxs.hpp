// SPDX-License-Identifier: MIT
// IQ2_XXS: 256 weights, eight of them an entry of a grid with signs, a scale of 4 bits for 32.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (0.5 + scale) / 4 * sign * level.
/// @layout d f16; for each 32: four indices u8; u32 of four times seven signs and, in its upper 4 bits, the scale
/// @source ggml-quants.c, dequantize_row_iq2_xxs
struct iq2_xxs : grid_codec {
  static constexpr dtype type = dtype::iq2_xxs;
  static constexpr std::size_t elements = 256, bytes = 66;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq2_xxs>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 8; ++group) {
      const std::uint8_t* const index = block + 2 + 8 * group;
      const std::uint32_t rest = u32_at(index + 4);
      for (std::size_t k = 0; k < 4; ++k)
        put_eight(grids::iq2_xxs[index[k]], eighth_sign(rest >> (7 * k) & 127u), to.codes.data() + 32 * group + 8 * k);
      to.factors[group][0] = static_cast<std::uint8_t>(2 * (rest >> 28) + 1);
    }
    std::memcpy(to.super.data(), block, 2);
  }
};

}  // namespace intaglio::codecs
