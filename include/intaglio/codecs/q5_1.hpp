// SPDX-License-Identifier: MIT
// Q5_1: 32 weights, a scale, a least value and codes of 5 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * code + m.
/// @layout d f16; m f16; bit 4 of each code, u32; bits 0 to 3, weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_q5_1
struct q5_1 {
  static constexpr dtype type = dtype::q5_1;
  static constexpr std::size_t elements = 32, bytes = 24;
  static constexpr std::array<std::size_t, 2> f16_offsets{0, 2};  ///< where f16 are
  static constexpr float largest_error = 1.f / 31 + 3 * 0x1p-11f;

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

  /// @source ggml-quants.c, quantize_row_q5_1_ref
  static void encode(const float* x, std::uint8_t* block) {
    const auto [least, most] = std::minmax_element(x, x + 32);
    const float d = (*most - *least) / 31.f, id = inverse(d);
    std::array<std::uint8_t, 32> codes;
    for (std::size_t j = 0; j < 32; ++j)
      codes[j] = static_cast<std::uint8_t>((std::min)(31.f, rounded((x[j] - *least) * id) + 0.5f));
    const std::uint32_t high = fifth_bits(codes.data());
    put_f16(block, d);
    put_f16(block + 2, *least);
    std::memcpy(block + 4, &high, 4);
    put_packed_nibbles(codes.data(), block + 8);
  }
};

}  // namespace intaglio::codecs
