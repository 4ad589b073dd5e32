// SPDX-License-Identifier: MIT
// Q6_K: 256 weights, sixteen scales of 8 bits, codes of 6 bits.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * scale * (code - 32), with a signed scale for 16 neighbours.
/// @layout bits 0 to 3 of codes, 128 bytes: byte l of a half, below 64, has weights l and l + 64; bits 4 and 5, 64
/// bytes: byte l of a half, below 32, has weights l, l + 32, l + 64 and l + 96; scales, 16 bytes; d f16
/// @source ggml-quants.c, dequantize_row_q6_K
struct q6_k {
  static constexpr dtype type = dtype::q6_k;
  static constexpr std::size_t elements = 256, bytes = 210;
  static constexpr std::array<std::size_t, 1> f16_offsets{208};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block + 208);
    for (std::size_t part = 0; part < 4; ++part) {  // 16 neighbours in each quarter of a half
      const std::size_t half = part / 2, i = part % 2;
      const auto low = copied<48>(block + 64 * half + 16 * i);
      const auto high = copied<16>(block + 128 + 32 * half + 16 * i);
      const std::uint8_t* scales = block + 192 + 8 * half + i;
      float* x = out + 128 * half + 16 * i;
      const auto scale = [&](std::size_t quarter) {
        return d * static_cast<float>(static_cast<std::int8_t>(scales[2 * quarter]));
      };
      const float s0 = scale(0), s1 = scale(1), s2 = scale(2), s3 = scale(3);
      for (std::size_t l = 0; l < 16; ++l) x[l] = s0 * static_cast<float>(((low[l] & 15) | ((high[l] & 3) << 4)) - 32);
      for (std::size_t l = 0; l < 16; ++l)
        x[l + 32] = s1 * static_cast<float>(((low[l + 32] & 15) | (((high[l] >> 2) & 3) << 4)) - 32);
      for (std::size_t l = 0; l < 16; ++l)
        x[l + 64] = s2 * static_cast<float>(((low[l] >> 4) | (((high[l] >> 4) & 3) << 4)) - 32);
      for (std::size_t l = 0; l < 16; ++l)
        x[l + 96] = s3 * static_cast<float>(((low[l + 32] >> 4) | ((high[l] >> 6) << 4)) - 32);
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint8_t *const low = block + 64 * half, *const high = block + 128 + 32 * half;
      std::uint8_t* const codes = to.codes.data() + 128 * half;
      for (std::size_t l = 0; l < 32; ++l) {
        codes[l] = static_cast<std::uint8_t>((low[l] & 15) | (high[l] & 3) << 4);
        codes[l + 32] = static_cast<std::uint8_t>((low[l + 32] & 15) | ((high[l] >> 2) & 3) << 4);
        codes[l + 64] = static_cast<std::uint8_t>((low[l] >> 4) | ((high[l] >> 4) & 3) << 4);
        codes[l + 96] = static_cast<std::uint8_t>((low[l + 32] >> 4) | (high[l] >> 6) << 4);
      }
    }
    for (std::size_t k = 0; k < 8; ++k) std::memcpy(to.factors[k].data(), block + 192 + 2 * k, 2);
    std::memcpy(to.super.data(), block + 208, 2);
  }
};

}  // namespace intaglio::codecs
