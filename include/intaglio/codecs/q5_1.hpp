// SPDX-License-Identifier: MIT
// Q5_1: 32 weights, a scale, a least value and codes of 5 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * code + m.
/// @layout d f16; m f16; bit 4 of each code, u32; bits 0 to 3, weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_q5_1
struct q5_1 {
  static constexpr dtype type = dtype::q5_1;
  static constexpr std::size_t elements = 32, bytes = 24;
  static constexpr std::array<std::size_t, 2> halves{0, 2};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block), m = f16_at(block + 2);
    const std::uint32_t high = u32_at(block + 4);
    for (std::size_t j = 0; j < 16; ++j) {
      const unsigned byte = block[8 + j];
      out[j] = d * static_cast<float>((byte & 15u) | (((high >> j) & 1u) << 4)) + m;
      out[j + 16] = d * static_cast<float>((byte >> 4) | (((high >> (j + 16)) & 1u) << 4)) + m;
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    put_nibbles(block + 8, to.codes.data());
    put_upper_bits(u32_at(block + 4), to.codes.data());
    std::memcpy(to.factors[0].data(), block, 4);
  }
};

}  // namespace intaglio::codecs
