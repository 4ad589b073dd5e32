// SPDX-License-Identifier: MIT
// Q2_K: 256 weights, sixteen scales and least values of 4 bits, codes of 2 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * scale * code - dmin * least, with a scale and a least value for 16 neighbours.
/// @layout a byte for each 16 weights with scale and least value, 16 bytes; codes, 64 bytes: byte l of a half has
/// weights l, l + 32, l + 64 and l + 96; d f16; dmin f16
/// @source ggml-quants.c, dequantize_row_q2_K
struct q2_k {
  static constexpr dtype type = dtype::q2_k;
  static constexpr std::size_t elements = 256, bytes = 84;
  static constexpr std::array<std::size_t, 2> f16_offsets{80, 82};  ///< where f16 are
  static constexpr float largest_error = 0.56f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block + 80), dmin = f16_at(block + 82);
    for (std::size_t group = 0; group < 16; ++group) {  // of 16 neighbours
      const unsigned both = block[group];
      const float scale = d * static_cast<float>(both & 15u), least = dmin * static_cast<float>(both >> 4);
      const std::size_t half = group / 8, field = group % 8 / 2;
      const std::uint8_t* codes = block + 16 + 32 * half + 16 * (group % 2);
      for (std::size_t l = 0; l < 16; ++l)
        out[16 * group + l] = scale * static_cast<float>((codes[l] >> (2 * field)) & 3) - least;
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 16; ++group) {
      to.factors[group / 2][group % 2] = block[group] & 15;
      to.factors[group / 2][2 + group % 2] = block[group] >> 4;
      const std::uint8_t* const codes = block + 16 + 32 * (group / 8) + 16 * (group % 2);
      for (std::size_t l = 0; l < 16; ++l) to.codes[16 * group + l] = (codes[l] >> (group % 8 / 2 * 2)) & 3;
    }
    std::memcpy(to.super.data(), block + 80, 4);
  }

  /// @source ggml-quants.c, quantize_row_q2_K_ref
  static void encode(const float* x, std::uint8_t* block) {
    std::array<affine_codes<16>, 16> found;
    std::array<float, 16> weights;
    for (std::size_t group = 0; group < 16; ++group) {
      for (std::size_t l = 0; l < 16; ++l) weights[l] = std::fabs(x[16 * group + l]);
      found[group] = affine_search<16>(x + 16 * group, weights.data(), 3, loss::magnitudes);
    }
    const common_steps steps = put_common_steps(found, 15, block + 80);
    std::array<std::uint8_t, 256> codes;
    for (std::size_t group = 0; group < 16; ++group) {
      block[group] = static_cast<std::uint8_t>(steps.scale[group] | steps.least[group] << 4);
      recode(x + 16 * group, steps.of_scale * static_cast<float>(steps.scale[group]),
             steps.of_least * static_cast<float>(steps.least[group]), 3, found[group]);
      std::copy(found[group].codes.begin(), found[group].codes.end(), codes.begin() + 16 * group);
    }
    put_pairs(codes.data(), block + 16);
  }
};

}  // namespace intaglio::codecs
