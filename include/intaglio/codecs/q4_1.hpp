// SPDX-License-Identifier: MIT
// Q4_1: 32 weights, a scale, a least value and codes of 4 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * code + m.
/// @layout d f16; m f16; codes, weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_q4_1
struct q4_1 {
  static constexpr dtype type = dtype::q4_1;
  static constexpr std::size_t elements = 32, bytes = 20;
  static constexpr std::array<std::size_t, 2> f16_offsets{0, 2};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block), m = f16_at(block + 2);
    const auto codes = copied<16>(block + 4);
    for (std::size_t j = 0; j < 16; ++j) out[j] = d * static_cast<float>(codes[j] & 15) + m;
    for (std::size_t j = 0; j < 16; ++j) out[j + 16] = d * static_cast<float>(codes[j] >> 4) + m;
  }

  static void split(const std::uint8_t* block, split_block& to) {
    put_nibbles(block + 4, to.codes.data());
    std::memcpy(to.factors[0].data(), block, 4);
  }
};

}  // namespace intaglio::codecs
