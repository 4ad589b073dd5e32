// SPDX-License-Identifier: MIT
// Q5_0: 32 weights, a scale and codes of 5 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * (code - 16).
/// @layout d f16; bit 4 of each code, u32; bits 0 to 3, weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_q5_0
struct q5_0 {
  static constexpr dtype type = dtype::q5_0;
  static constexpr std::size_t elements = 32, bytes = 22;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are
  static constexpr float largest_error = 1.f / 16 + 0x1p-11f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    const std::uint32_t high = u32_at(block + 2);
    for (std::size_t j = 0; j < 16; ++j) {
      const unsigned byte = block[6 + j];
      out[j] = d * static_cast<float>(static_cast<int>((byte & 15u) | (((high >> j) & 1u) << 4)) - 16);
      out[j + 16] = d * static_cast<float>(static_cast<int>((byte >> 4) | (((high >> (j + 16)) & 1u) << 4)) - 16);
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    put_nibbles(block + 6, to.codes.data());
    put_upper_bits(u32_at(block + 2), to.codes.data());
    std::memcpy(to.factors[0].data(), block, 2);
  }

  /// @source ggml-quants.c, quantize_row_q5_0_ref
  static void encode(const float* x, std::uint8_t* block) {
    const float d = largest_of(x, 32) / -16.f, id = inverse(d);
    std::array<std::uint8_t, 32> codes;
    for (std::size_t j = 0; j < 32; ++j)
      codes[j] = static_cast<std::uint8_t>((std::min)(31, static_cast<int>(rounded(x[j] * id) + 16.5f)));
    const std::uint32_t high = fifth_bits(codes.data());
    put_f16(block, d);
    std::memcpy(block + 2, &high, 4);
    put_packed_nibbles(codes.data(), block + 6);
  }
};

}  // namespace intaglio::codecs
