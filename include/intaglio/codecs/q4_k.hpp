// SPDX-License-Identifier: MIT
// Q4_K: 256 weights, eight scales and least values of 6 bits, codes of 4 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * scale * code - dmin * least, with a scale and a least value for 32 neighbours.
/// @layout d f16; dmin f16; scales and least values, 12 bytes (six_bits_at); codes, 128 bytes: byte l of a quarter has
/// weights l and l + 32
/// @source ggml-quants.c, dequantize_row_q4_K
struct q4_k {
  static constexpr dtype type = dtype::q4_k;
  static constexpr std::size_t elements = 256, bytes = 144;
  static constexpr std::array<std::size_t, 2> f16_offsets{0, 2};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block), dmin = f16_at(block + 2);
    const std::uint8_t* const codes = block + 16;
    std::array<float, 8> scale{}, least{};
    for (std::size_t j = 0; j < 8; ++j) {
      const six_bits pair = six_bits_at(block + 4, j);
      scale[j] = d * static_cast<float>(pair.scale);
      least[j] = dmin * static_cast<float>(pair.least);
    }
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t l = 0; l < 32; ++l) {
        out[64 * k + l] = scale[2 * k] * static_cast<float>(codes[32 * k + l] & 15) - least[2 * k];
        out[64 * k + 32 + l] = scale[2 * k + 1] * static_cast<float>(codes[32 * k + l] >> 4) - least[2 * k + 1];
      }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t l = 0; l < 32; ++l) {
        to.codes[64 * k + l] = block[16 + 32 * k + l] & 15;
        to.codes[64 * k + 32 + l] = block[16 + 32 * k + l] >> 4;
      }
    std::memcpy(to.super.data(), block, 16);
  }
};

}  // namespace intaglio::codecs
