// SPDX-License-Identifier: MIT
// Q2_0: 64 weights, a scale and codes of two bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * (code - 1).
/// @layout d f16; codes, 16 bytes, weight j in bits 2 (j % 4) and above of byte j / 4
/// @source ggml-quants.c, dequantize_row_q2_0
struct q2_0 {
  static constexpr dtype type = dtype::q2_0;
  static constexpr std::size_t elements = 64, bytes = 18;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    for (std::size_t j = 0; j < 64; ++j) out[j] = d * static_cast<float>(((block[2 + j / 4] >> (2 * (j % 4))) & 3) - 1);
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t j = 0; j < 64; ++j) to.codes[j] = (block[2 + j / 4] >> (2 * (j % 4))) & 3;
    for (std::size_t k = 0; k < 2; ++k) std::memcpy(to.factors[k].data(), block, 2);
  }
};

}  // namespace intaglio::codecs
