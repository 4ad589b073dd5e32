// SPDX-License-Identifier: MIT
// Q8_0: 32 weights, a scale and codes of 8 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * code, codes being signed.
/// @layout d f16; codes, 32 bytes
/// @source ggml-quants.c, dequantize_row_q8_0
struct q8_0 {
  static constexpr dtype type = dtype::q8_0;
  static constexpr std::size_t elements = 32, bytes = 34;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    for (std::size_t j = 0; j < 32; ++j) out[j] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + j]));
  }

  static void split(const std::uint8_t* block, split_block& to) {
    std::memcpy(to.codes.data(), block + 2, 32);
    std::memcpy(to.factors[0].data(), block, 2);
  }
};

}  // namespace intaglio::codecs
