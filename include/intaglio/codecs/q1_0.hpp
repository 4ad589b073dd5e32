// SPDX-License-Identifier: MIT
// Q1_0: 128 weights, a scale and codes of one bit.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d where its bit is 1, -d where it is 0.
/// @layout d f16; bits, 16 bytes, weight j in bit j % 8 of byte j / 8
/// @source ggml-quants.c, dequantize_row_q1_0
struct q1_0 {
  static constexpr dtype type = dtype::q1_0;
  static constexpr std::size_t elements = 128, bytes = 18;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    for (std::size_t j = 0; j < 128; ++j) out[j] = ((block[2 + j / 8] >> (j % 8)) & 1) != 0 ? d : -d;
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t j = 0; j < 128; ++j) to.codes[j] = (block[2 + j / 8] >> (j % 8)) & 1;
    for (std::size_t k = 0; k < 4; ++k) std::memcpy(to.factors[k].data(), block, 2);
  }
};

}  // namespace intaglio::codecs
