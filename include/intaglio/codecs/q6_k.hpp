// SPDX-License-Identifier: MIT
// Q6_K: 256 weights, sixteen scales of 8 bits, codes of 6 bits.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// The search for the codes -32..31 of four sub-blocks of 16 values, which decode to code * scale.
/// @source ggml-quants.c, make_qx_quants
struct q6_k_search {
  four_floats scale;
  four_floats inverse;  ///< the codes were nearest(inverse * x), clamped
  four_ints tiny;       ///< no magnitude of the lane reaches 1e-15: its codes are -32

  /// Least squares with weights x^2 for each of 19 trial steps. @param x [4 * 16]
  explicit q6_k_search(const float* x) {
    constexpr std::size_t length = 16;
    const four_floats zero{};
    std::array<four_floats, length> value;
    four_floats largest{}, magnitude{};  // the first of equal magnitudes decides the sign
    for (std::size_t l = 0; l < length; ++l) {
      const four_floats v = value[l] = four_floats{x[l], x[16 + l], x[32 + l], x[48 + l]}, size = v < zero ? -v : v;
      const four_ints larger = size > magnitude;
      magnitude = larger ? size : magnitude;
      largest = larger ? v : largest;
    }
    tiny = magnitude < 1e-15f;
    inverse = -32.f / largest;
    four_floats best{};
    scale = zero;
    for (int step = -10; step <= 9; ++step) {  // -10: the plain scale comes first
      if (step == 0) continue;
      const four_floats trial = step == -10 ? inverse : -(32.f + rounded(0.1f * static_cast<float>(step))) / largest;
      four_floats sum_xc{}, sum_cc{};
      for (std::size_t l = 0; l < length; ++l) {
        four_floats code;
        nearest(trial * value[l], -32, 31, code);
        const four_floats weight = value[l] * value[l];
        sum_xc += rounded(weight * value[l] * code);
        sum_cc += rounded(weight * code * code);
      }
      const four_ints some = sum_cc > zero;
      const four_floats fitted = some ? sum_xc / sum_cc : zero;
      const four_ints better = step == -10 ? ~four_ints{} : some & (sum_xc * sum_xc > best * sum_cc);
      inverse = better ? trial : inverse;
      scale = better ? fitted : scale;
      best = better ? fitted * sum_xc : best;
    }
    scale = tiny ? zero : scale;
  }
};

/// A weight is d * scale * (code - 32), with a signed scale for 16 neighbours.
/// @layout bits 0 to 3 of codes, 128 bytes: byte l of a half, below 64, has weights l and l + 64; bits 4 and 5, 64
/// bytes: byte l of a half, below 32, has weights l, l + 32, l + 64 and l + 96; scales, 16 bytes; d f16
/// @source ggml-quants.c, dequantize_row_q6_K
struct q6_k {
  static constexpr dtype type = dtype::q6_k;
  static constexpr std::size_t elements = 256, bytes = 210;
  static constexpr std::array<std::size_t, 1> f16_offsets{208};  ///< where f16 are
  static constexpr float largest_error = 0.031f;

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

  /// @source ggml-quants.c, quantize_row_q6_K_ref
  static void encode(const float* x, std::uint8_t* block) {
    const std::array<q6_k_search, 4> found{q6_k_search(x), q6_k_search(x + 64), q6_k_search(x + 128),
                                           q6_k_search(x + 192)};
    float largest = 0.f;  // the scale of the largest magnitude, with its sign
    for (std::size_t j = 0; j < 16; ++j) {
      const float scale = found[j / 4].scale[j % 4];
      if (!std::isfinite(scale)) return put_overflow(block, bytes, f16_offsets[0]);
      if (std::fabs(scale) > std::fabs(largest)) largest = scale;
    }
    if (std::fabs(largest) < 1e-15f) {
      std::fill(block, block + bytes, std::uint8_t{0});
      return;
    }
    const float to_scale = -128.f / largest, d = put_scale(block + f16_offsets[0], 1.f / to_scale);
    std::array<std::uint8_t, 256> codes;
    for (std::size_t j = 0; j < 16; ++j) {
      const q6_k_search& of = found[j / 4];
      const std::size_t lane = j % 4;
      const auto s = static_cast<std::int8_t>((std::min)(127, nearest(to_scale * of.scale[lane])));
      block[192 + j] = static_cast<std::uint8_t>(s);
      const float step = d * static_cast<float>(s);
      for (std::size_t i = 0; i < 16; ++i) {
        const float v = x[16 * j + i];
        const int code = step != 0.f ? nearest(v / step) : of.tiny[lane] ? -32 : nearest(of.inverse[lane] * v);
        codes[16 * j + i] = static_cast<std::uint8_t>(std::clamp(code, -32, 31) + 32);
      }
    }
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t l = 0; l < 32; ++l) {
        const std::uint8_t* q = codes.data() + 128 * half + l;
        block[64 * half + l] = static_cast<std::uint8_t>((q[0] & 15) | ((q[64] & 15) << 4));
        block[64 * half + 32 + l] = static_cast<std::uint8_t>((q[32] & 15) | ((q[96] & 15) << 4));
        block[128 + 32 * half + l] =
            static_cast<std::uint8_t>((q[0] >> 4) | ((q[32] >> 4) << 2) | ((q[64] >> 4) << 4) | ((q[96] >> 4) << 6));
      }
  }
};

}  // namespace intaglio::codecs
