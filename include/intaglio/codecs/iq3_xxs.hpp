// SPDX-License-Identifier: MIT
// IQ3_XXS: 256 weights, four of them an entry of a grid, signs, a scale of 4 bits for 32.
#pragma once

#include "intaglio/codecs/lattice.hpp"

namespace intaglio::codecs {

/// A weight is d * (0.5 + scale) / 2 * sign * level.
/// @layout d f16; index of each 4 u8, 64 bytes; for each 32 a u32 of four times seven signs and, in its upper 4 bits,
/// the scale
/// @source ggml-quants.c, dequantize_row_iq3_xxs
struct iq3_xxs : grid_codec {
  static constexpr dtype type = dtype::iq3_xxs;
  static constexpr std::size_t elements = 256, bytes = 98;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) { decode_by_split<iq3_xxs>(block, out); }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 8; ++group) {
      const std::uint32_t rest = u32_at(block + 66 + 4 * group);
      for (unsigned i = 0; i < 32; ++i) {
        const unsigned levels = grids::iq3_xxs[block[2 + 8 * group + i / 4]],
                       signs = eighth_sign(rest >> (7 * (i / 8)) & 127u);
        to.codes[32 * group + i] =
            static_cast<std::uint8_t>((levels >> (3 * (i % 4)) & 7u) | (signs >> (i % 8) & 1u) << 3);
      }
      to.factors[group][0] = static_cast<std::uint8_t>(2 * (rest >> 28) + 1);
    }
    std::memcpy(to.super.data(), block, 2);
  }
};

}  // namespace intaglio::codecs
