// SPDX-License-Identifier: MIT
// MXFP4: 32 weights, a power of two and codes of 4 bits that are numbers of 1 sign, 2 exponent and 1 mantissa bit.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is 2^(e - 128) times twice the number that the code is: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives. An e
/// of 255 is NaN (OCP Microscaling Formats 1.0, E8M0).
/// @layout e u8; codes, 16 bytes: weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_mxfp4
struct mxfp4 {
  static constexpr dtype type = dtype::mxfp4;
  static constexpr std::size_t elements = 32, bytes = 17;

  static void decode(const std::uint8_t* block, float* out) {
    constexpr std::array<std::int8_t, 16> values{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const std::uint32_t e = block[0];
    const std::uint32_t bits = e == 255 ? 0x7FC00000u : e < 2 ? 0x00200000u << e : (e - 1) << 23;
    const auto d = std::bit_cast<float>(bits);
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(values[block[1 + j] & 15]);
      out[j + 16] = d * static_cast<float>(values[block[1 + j] >> 4]);
    }
  }
};

}  // namespace intaglio::codecs
