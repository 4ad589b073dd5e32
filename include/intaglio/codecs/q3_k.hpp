// SPDX-License-Identifier: MIT
// Q3_K: 256 weights, sixteen scales of 6 bits, codes of 3 bits.
#pragma once

#include <limits>

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is d * (scale - 32) * (code - 4), with a scale for 16 neighbours.
/// @layout bit 2 of each code, 32 bytes: bit n of byte l belongs to weight l + 32 n; bits 0 and 1, 64 bytes as in Q2_K;
/// scales, 12 bytes: bits 0 to 3 of scales i and i + 8 in byte i, bits 4 and 5 of scales i, i + 4, i + 8 and i + 12 in
/// byte 8 + i; d f16
/// @source ggml-quants.c, dequantize_row_q3_K
struct q3_k {
  static constexpr dtype type = dtype::q3_k;
  static constexpr std::size_t elements = 256, bytes = 110;
  static constexpr std::array<std::size_t, 1> f16_offsets{108};  ///< where f16 are
  static constexpr float largest_error = 0.35f;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block + 108);
    const std::uint8_t* const packed = block + 96;
    for (std::size_t group = 0; group < 16; ++group) {  // of 16 neighbours
      const float scale = d * static_cast<float>(scale_of(packed, group));
      const std::size_t half = group / 8, field = group % 8 / 2, first = 16 * (group % 2);
      const std::uint8_t *codes = block + 32 + 32 * half + first, *tops = block + first;
      for (std::size_t l = 0; l < 16; ++l) {
        const int top = (tops[l] >> (4 * half + field)) & 1;
        out[16 * group + l] = scale * static_cast<float>(((codes[l] >> (2 * field)) & 3) - (top != 0 ? 0 : 4));
      }
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 16; ++group) {
      to.factors[group / 2][group % 2] = static_cast<std::uint8_t>(scale_of(block + 96, group));
      const std::size_t half = group / 8, field = group % 8 / 2, first = 16 * (group % 2);
      const std::uint8_t *const codes = block + 32 + 32 * half + first, *const tops = block + first;
      for (std::size_t l = 0; l < 16; ++l)
        to.codes[16 * group + l] =
            static_cast<std::uint8_t>(((codes[l] >> (2 * field)) & 3) | ((tops[l] >> (4 * half + field)) & 1) << 2);
    }
    std::memcpy(to.super.data(), block + 108, 2);
  }

  /// @source ggml-quants.c, quantize_row_q3_K_ref
  static void encode(const float* x, std::uint8_t* block) {
    std::array<found_codes, 16> found;
    float largest = 0;  // the scale of the largest magnitude, with its sign
    for (std::size_t group = 0; group < 16; ++group) {
      found[group] = search(x + 16 * group);
      if (std::fabs(found[group].scale) > std::fabs(largest)) largest = found[group].scale;
      // Squares beyond f32's range leave no scale. The block then gets an infinite scale, so that it decodes to no
      // number.
      if (!std::isfinite(found[group].scale)) largest = std::numeric_limits<float>::infinity();
    }
    std::fill(block + 96, block + 108, std::uint8_t{0});
    const float to_scale = largest != 0 ? -32.f / largest : 0.f,
                d = put_scale(block + 108, largest != 0 ? 1.f / to_scale : 0.f);
    std::array<std::uint8_t, 256> codes;
    for (std::size_t group = 0; group < 16; ++group) {
      const int scale = largest != 0 ? nearest_between(to_scale * found[group].scale, -32, 31) : -32;
      const auto bits = static_cast<unsigned>(scale + 32);
      std::uint8_t &low = block[96 + group % 8], &high = block[104 + group % 4];
      low = static_cast<std::uint8_t>(low | (bits & 15u) << (4 * (group / 8)));
      high = static_cast<std::uint8_t>(high | (bits >> 4) << (2 * (group / 4)));
      const float step = d * static_cast<float>(scale);
      for (std::size_t l = 0; l < 16; ++l)
        codes[16 * group + l] = step != 0
                                    ? static_cast<std::uint8_t>(nearest_between(x[16 * group + l] / step, -4, 3) + 4)
                                    : found[group].codes[l];
    }
    std::fill(block, block + 32, std::uint8_t{0});
    for (std::size_t i = 0; i < 256; ++i)
      block[i % 32] = static_cast<std::uint8_t>(block[i % 32] | (codes[i] >> 2) << (i / 32));
    put_pairs(codes.data(), block + 32);
  }

 private:
  struct found_codes {
    float scale = 0;
    std::array<std::uint8_t, 16> codes{};
  };
  /// Searches the codes of 16 neighbours. Each code is moved up to five times where that loses less; squares are the
  /// weights.
  /// @source ggml-quants.c, make_q3_quants
  static found_codes search(const float* x) {
    found_codes out;
    const float largest = largest_of(x, 16);
    if (std::fabs(largest) < 1e-15f) return out;
    const float to_code = -4.f / largest;
    std::array<float, 16> code;
    float sum_xc = 0, sum_cc = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      code[i] = static_cast<float>(nearest_between(to_code * x[i], -4, 3));
      const float weight = x[i] * x[i];
      sum_xc += rounded(weight * x[i] * code[i]);
      sum_cc += rounded(weight * code[i] * code[i]);
    }
    for (int turn = 0; turn < 5; ++turn)
      for (std::size_t i = 0; i < 16; ++i) {
        const float weight = x[i] * x[i];
        float other_xc = sum_xc - rounded(weight * x[i] * code[i]),
              other_cc = sum_cc - rounded(weight * code[i] * code[i]);
        if (!(other_xc > 0)) continue;
        const float moved = static_cast<float>(nearest_between(x[i] * other_cc / other_xc, -4, 3));
        if (moved == code[i]) continue;
        other_xc += rounded(weight * x[i] * moved);
        other_cc += rounded(weight * moved * moved);
        if (!(other_cc > 0 && other_xc * other_xc * sum_cc > sum_xc * sum_xc * other_cc)) continue;
        code[i] = moved;
        sum_xc = other_xc;
        sum_cc = other_cc;
      }
    for (std::size_t i = 0; i < 16; ++i) out.codes[i] = static_cast<std::uint8_t>(static_cast<int>(code[i]) + 4);
    out.scale = sum_cc > 0 ? sum_xc / sum_cc : 0.f;
    return out;
  }
  static int scale_of(const std::uint8_t* packed, std::size_t group) {
    const unsigned low = (packed[group % 8] >> (4 * (group / 8))) & 15u,
                   high = (packed[8 + group % 4] >> (2 * (group / 4))) & 3u;
    return static_cast<int>(low | (high << 4)) - 32;
  }
};

}  // namespace intaglio::codecs
