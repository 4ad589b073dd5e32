// SPDX-License-Identifier: MIT
// Q8_0: 32 weights, a scale and codes of 8 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * code, codes being signed.
/// @layout d f16; codes, 32 bytes
/// @source ggml-quants.c, dequantize_row_q8_0
struct q8_0 {
  static constexpr dtype type = dtype::q8_0;
  static constexpr std::size_t elements = 32, bytes = 34;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are
  static constexpr float largest_error = 0.5f / 127 + 0x1p-11f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    for (std::size_t j = 0; j < 32; ++j) out[j] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + j]));
  }

  static void split(const std::uint8_t* block, split_block& to) {
    std::memcpy(to.codes.data(), block + 2, 32);
    std::memcpy(to.factors[0].data(), block, 2);
  }

  /// @source ggml-quants.c, quantize_row_q8_0_ref
  static void encode(const float* x, std::uint8_t* block) {
    std::uint32_t most = 0;  // magnitudes are in the order of their bits; NaN gets no special treatment
    for (std::size_t j = 0; j < 32; ++j) most = (std::max)(most, std::bit_cast<std::uint32_t>(x[j]) & 0x7FFFFFFFu);
    const float d = std::bit_cast<float>(most) / 127.f, id = inverse(d);
    put_f16(block, d);
    for (std::size_t j = 0; j < 32; ++j)
      block[2 + j] = static_cast<std::uint8_t>(static_cast<std::int8_t>(round_away(x[j] * id)));
  }
};

}  // namespace intaglio::codecs
