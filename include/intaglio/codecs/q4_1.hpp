// SPDX-License-Identifier: MIT
// Q4_1: 32 weights, a scale, a least value and codes of 4 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * code + m.
/// @layout d f16; m f16; codes, weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_q4_1
struct q4_1 {
  static constexpr dtype type = dtype::q4_1;
  static constexpr std::size_t elements = 32, bytes = 20;
  static constexpr std::array<std::size_t, 2> f16_offsets{0, 2};  ///< where f16 are
  static constexpr float largest_error = 1.f / 15 + 3 * 0x1p-11f;

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

  /// @source ggml-quants.c, quantize_row_q4_1_ref
  static void encode(const float* x, std::uint8_t* block) {
    const auto [least, most] = std::minmax_element(x, x + 32);
    const float d = (*most - *least) / 15.f, id = inverse(d);
    put_f16(block, d);
    put_f16(block + 2, *least);
    for (std::size_t j = 0; j < 16; ++j)
      block[4 + j] = static_cast<std::uint8_t>(truncated(rounded((x[j] - *least) * id) + 0.5f, 15) |
                                               truncated(rounded((x[j + 16] - *least) * id) + 0.5f, 15) << 4);
  }
};

}  // namespace intaglio::codecs
