// SPDX-License-Identifier: MIT
// IQ4_NL: 32 weights, a scale and codes of 4 bits that stand for values of a table.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * iq4_values[code].
/// @layout d f16; codes, 16 bytes: weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_iq4_nl
struct iq4_nl {
  static constexpr dtype type = dtype::iq4_nl;
  static constexpr std::size_t elements = 32, bytes = 18;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are
  static constexpr float largest_error = 0.18f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(iq4_values[block[2 + j] & 15]);
      out[j + 16] = d * static_cast<float>(iq4_values[block[2 + j] >> 4]);
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    put_nibbles(block + 2, to.codes.data());
    std::memcpy(to.factors[0].data(), block, 2);
  }

  /// @source ggml-quants.c, quantize_row_iq4_nl_ref
  static void encode(const float* x, std::uint8_t* block) {
    const float scale = iq4_scale(x), id = inverse(scale);
    std::array<std::uint8_t, 32> codes;
    for (std::size_t j = 0; j < 32; ++j) codes[j] = iq4_code(rounded(id * x[j]));
    put_f16(block, scale);
    put_packed_nibbles(codes.data(), block + 2);
  }
};

}  // namespace intaglio::codecs
