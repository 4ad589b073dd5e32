// SPDX-License-Identifier: MIT
// Q5_K: 256 weights, eight scales and least values of 6 bits, codes of 5 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * scale * code - dmin * least, with a scale and a least value for 32 neighbours.
/// @layout d f16; dmin f16; scales and least values, 12 bytes as in Q4_K; bit 4 of each code, 32 bytes: bit n of byte l
/// is that of weight l + 32 n; bits 0 to 3, 128 bytes: byte l of a quarter has weights l and l + 32
/// @source ggml-quants.c, dequantize_row_q5_K
struct q5_k {
  static constexpr dtype type = dtype::q5_k;
  static constexpr std::size_t elements = 256, bytes = 176;
  static constexpr std::array<std::size_t, 2> f16_offsets{0, 2};  ///< where f16 are
  static constexpr float largest_error = 0.087f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block), dmin = f16_at(block + 2);
    const std::uint8_t *const tops = block + 16, *const codes = block + 48;
    for (std::size_t group = 0; group < 8; ++group) {  // of 32 neighbours
      const six_bits pair = six_bits_at(block + 4, group);
      const float scale = d * static_cast<float>(pair.scale), least = dmin * static_cast<float>(pair.least);
      for (std::size_t l = 0; l < 32; ++l) {
        const unsigned low = (codes[32 * (group / 2) + l] >> (4 * (group % 2))) & 15u, top = (tops[l] >> group) & 1u;
        out[32 * group + l] = scale * static_cast<float>(low | (top << 4)) - least;
      }
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    const std::uint8_t *const tops = block + 16, *const codes = block + 48;
    for (std::size_t group = 0; group < 8; ++group) {
      const six_bits pair = six_bits_at(block + 4, group);
      to.factors[group][0] = pair.scale;
      to.factors[group][1] = pair.least;
      for (std::size_t l = 0; l < 32; ++l)
        to.codes[32 * group + l] = static_cast<std::uint8_t>(((codes[32 * (group / 2) + l] >> (4 * (group % 2))) & 15) |
                                                             ((tops[l] >> group) & 1) << 4);
    }
    std::memcpy(to.super.data(), block, 4);
  }

  /// @source ggml-quants.c, quantize_row_q5_K_ref
  static void encode(const float* x, std::uint8_t* block) {
    std::array<affine_codes<32>, 8> found;
    std::array<float, 32> weights;
    for (std::size_t group = 0; group < 8; ++group) {
      float squares = 0;
      for (std::size_t l = 0; l < 32; ++l) squares += rounded(x[32 * group + l] * x[32 * group + l]);
      const float average = std::sqrt(squares / 32.f);
      for (std::size_t l = 0; l < 32; ++l) weights[l] = average + std::fabs(x[32 * group + l]);
      found[group] = affine_search<32>(x + 32 * group, weights.data(), 31, loss::squares);
    }
    const common_steps steps = put_common_steps(found, 63, block);
    put_six_bits(steps, block + 4);
    std::fill(block + 16, block + 48, std::uint8_t{0});
    for (std::size_t group = 0; group < 8; ++group) {
      recode(x + 32 * group, steps.of_scale * static_cast<float>(steps.scale[group]),
             steps.of_least * static_cast<float>(steps.least[group]), 31, found[group]);
      for (std::size_t l = 0; l < 32; ++l) {
        const unsigned code = found[group].codes[l];
        std::uint8_t &top = block[16 + l], &both = block[48 + 32 * (group / 2) + l];
        top = static_cast<std::uint8_t>(top | (code >> 4) << group);
        both = static_cast<std::uint8_t>(group % 2 == 0 ? code & 15u : both | (code & 15u) << 4);
      }
    }
  }
};

}  // namespace intaglio::codecs
