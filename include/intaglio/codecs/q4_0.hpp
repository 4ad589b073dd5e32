// SPDX-License-Identifier: MIT
// Q4_0: 32 weights, a scale and codes of 4 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * (code - 8).
/// @layout d f16; codes, weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_q4_0
struct q4_0 {
  static constexpr dtype type = dtype::q4_0;
  static constexpr std::size_t elements = 32, bytes = 18;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are
  static constexpr float largest_error = 1.f / 8 + 0x1p-11f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    const auto codes = copied<16>(block + 2);
    for (std::size_t j = 0; j < 16; ++j) out[j] = d * static_cast<float>((codes[j] & 15) - 8);
    for (std::size_t j = 0; j < 16; ++j) out[j + 16] = d * static_cast<float>((codes[j] >> 4) - 8);
  }

  static void split(const std::uint8_t* block, split_block& to) {
    put_nibbles(block + 2, to.codes.data());
    std::memcpy(to.factors[0].data(), block, 2);
  }

  /// @source ggml-quants.c, quantize_row_q4_0_ref
  static void encode(const float* x, std::uint8_t* block) {
    const float d = largest_of(x, 32) / -8.f, id = inverse(d);
    put_f16(block, d);
    for (std::size_t j = 0; j < 16; ++j)
      block[2 + j] = static_cast<std::uint8_t>(truncated(rounded(x[j] * id) + 8.5f, 15) |
                                               truncated(rounded(x[j + 16] * id) + 8.5f, 15) << 4);
  }
};

}  // namespace intaglio::codecs
