// SPDX-License-Identifier: MIT
// Q3_K: 256 weights, sixteen scales of 6 bits, codes of 3 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * (scale - 32) * (code - 4), with a scale for 16 neighbours.
/// @layout bit 2 of each code, 32 bytes: bit n of byte l is that of weight l + 32 n; bits 0 and 1, 64 bytes as in Q2_K;
/// scales, 12 bytes: bits 0 to 3 of scales i and i + 8 in byte i, bits 4 and 5 of scales i, i + 4, i + 8 and i + 12 in
/// byte 8 + i; d f16
/// @source ggml-quants.c, dequantize_row_q3_K
struct q3_k {
  static constexpr dtype type = dtype::q3_k;
  static constexpr std::size_t elements = 256, bytes = 110;
  static constexpr std::array<std::size_t, 1> halves{108};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block + 108);
    const std::uint8_t* const packed = block + 96;
    for (std::size_t group = 0; group < 16; ++group) {  // of 16 neighbours
      const float scale = d * static_cast<float>(scale_of(packed, group));
      const std::size_t half = group / 8, field = group % 8 / 2, first = 16 * (group % 2);
      const std::uint8_t *codes = block + 32 + 32 * half + first, *tops = block + first;
      for (std::size_t l = 0; l < 16; ++l) {
        const int top = (tops[l] >> (4 * half + field)) & 1;
        out[16 * group + l] = scale * static_cast<float>(((codes[l] >> (2 * field)) & 3) - (top != 0 ? 0 : 4));
      }
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 16; ++group) {
      to.factors[group / 2][group % 2] = static_cast<std::uint8_t>(scale_of(block + 96, group));
      const std::size_t half = group / 8, field = group % 8 / 2, first = 16 * (group % 2);
      const std::uint8_t *const codes = block + 32 + 32 * half + first, *const tops = block + first;
      for (std::size_t l = 0; l < 16; ++l)
        to.codes[16 * group + l] =
            static_cast<std::uint8_t>(((codes[l] >> (2 * field)) & 3) | ((tops[l] >> (4 * half + field)) & 1) << 2);
    }
    std::memcpy(to.super.data(), block + 108, 2);
  }

 private:
  static int scale_of(const std::uint8_t* packed, std::size_t group) {
    const unsigned low = (packed[group % 8] >> (4 * (group / 8))) & 15u,
                   high = (packed[8 + group % 4] >> (2 * (group / 4))) & 3u;
    return static_cast<int>(low | (high << 4)) - 32;
  }
};

}  // namespace intaglio::codecs
