// SPDX-License-Identifier: MIT
// Q5_K: 256 weights, eight scales and least values of 6 bits, codes of 5 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * scale * code - dmin * least, with a scale and a least value for 32 neighbours.
/// @layout d f16; dmin f16; scales and least values, 12 bytes as in Q4_K; bit 4 of each code, 32 bytes: bit n of byte l
/// is that of weight l + 32 n; bits 0 to 3, 128 bytes: byte l of a quarter has weights l and l + 32
/// @source ggml-quants.c, dequantize_row_q5_K
struct q5_k {
  static constexpr dtype type = dtype::q5_k;
  static constexpr std::size_t elements = 256, bytes = 176;
  static constexpr std::array<std::size_t, 2> halves{0, 2};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block), dmin = f16_at(block + 2);
    const std::uint8_t *const tops = block + 16, *const codes = block + 48;
    for (std::size_t group = 0; group < 8; ++group) {  // of 32 neighbours
      const six_bits pair = six_bits_at(block + 4, group);
      const float scale = d * static_cast<float>(pair.scale), least = dmin * static_cast<float>(pair.least);
      for (std::size_t l = 0; l < 32; ++l) {
        const unsigned low = (codes[32 * (group / 2) + l] >> (4 * (group % 2))) & 15u, top = (tops[l] >> group) & 1u;
        out[32 * group + l] = scale * static_cast<float>(low | (top << 4)) - least;
      }
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    const std::uint8_t *const tops = block + 16, *const codes = block + 48;
    for (std::size_t group = 0; group < 8; ++group) {
      const six_bits pair = six_bits_at(block + 4, group);
      to.factors[group][0] = pair.scale;
      to.factors[group][1] = pair.least;
      for (std::size_t l = 0; l < 32; ++l)
        to.codes[32 * group + l] = static_cast<std::uint8_t>(((codes[32 * (group / 2) + l] >> (4 * (group % 2))) & 15) |
                                                             ((tops[l] >> group) & 1) << 4);
    }
    std::memcpy(to.super.data(), block, 4);
  }
};

}  // namespace intaglio::codecs
