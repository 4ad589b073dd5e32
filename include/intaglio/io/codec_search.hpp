// SPDX-License-Identifier: MIT
// Encoding blocks of Q4_K and Q6_K: searches the scales that lose the least, by the steps of ggml's
// quantize_row_q4_K_ref and quantize_row_q6_K_ref (ggml-quants.c). The bytes equal those that llama-quantize writes
// without an importance matrix.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intaglio/core/float16.hpp"
#include "intaglio/core/unfused.hpp"

namespace intaglio::io::codec_blocks {

// Four sub-blocks at a time, one in each lane. 16 bytes are a register of SSE2 and of NEON, so no function needs a
// target attribute.
typedef float four_floats __attribute__((vector_size(16)));
typedef std::int32_t four_ints __attribute__((vector_size(16)));

/// Rounds to the nearest integer, ties to even, for magnitudes below 2^22: the lowest bits of 1.5 * 2^23 + value are
/// that integer.
INTAGLIO_UNFUSED inline int nearest(float value) {
  const float shifted = value + 12582912.f;
  std::int32_t bits;
  std::memcpy(&bits, &shifted, 4);
  return (bits & 0x007FFFFF) - 0x00400000;
}
/// Nearest integers of four values, clamped to least..most.
INTAGLIO_UNFUSED inline void nearest(const four_floats& value, std::int32_t least, std::int32_t most,
                                     four_floats& out) {
  const four_floats shifted = value + 12582912.f;
  four_ints bits;
  std::memcpy(&bits, &shifted, 16);
  const four_ints code = (bits & 0x007FFFFF) - 0x00400000, low = four_ints{} + least, high = four_ints{} + most;
  const four_ints raised = code < low ? low : code;
  out = __builtin_convertvector(raised > high ? high : raised, four_floats);
}

/// Four sub-blocks of 32 values with codes 0..15, which decode to code * scale + least, least <= 0.
struct affine_search {
  four_floats scale, least;
  four_floats inverse, from;  ///< the codes were nearest(inverse * (x - from)), clamped
  four_ints flat;             ///< all values of the lane are equal: all its codes are 0

  /// Weighted least squares for each of 21 trial steps, weights root mean square + |x|. @param x [4 * 32]
  INTAGLIO_UNFUSED explicit affine_search(const float* x) {
    INTAGLIO_UNFUSED_BODY
    constexpr std::size_t length = 32;
    const four_floats zero{};
    std::array<four_floats, length> value, weight, code;
    four_floats squares{};
    for (std::size_t l = 0; l < length; ++l) {
      value[l] = four_floats{x[l], x[32 + l], x[64 + l], x[96 + l]};
      squares += value[l] * value[l];
    }
    four_floats average{};
    for (std::size_t k = 0; k < 4; ++k) average[k] = std::sqrt(squares[k] / 32.f);
    four_floats most = value[0], sum_w{}, sum_x{};
    least = value[0];
    for (std::size_t l = 0; l < length; ++l) {
      const four_floats v = value[l];
      weight[l] = average + (v < zero ? -v : v);
      least = v < least ? v : least;
      most = v > most ? v : most;
      sum_w += weight[l];
      sum_x += weight[l] * v;
    }
    least = least > zero ? zero : least;
    flat = most == least;
    inverse = 15.f / (most - least);
    from = least;
    scale = 1.f / inverse;
    four_floats best{};
    for (std::size_t l = 0; l < length; ++l) {
      nearest(inverse * (value[l] - least), 0, 15, code[l]);
      const four_floats off = scale * code[l] + least - value[l];
      best += weight[l] * (off * off);
    }
    for (int step = 0; step <= 20; ++step) {
      const four_floats trial = (-1.f + 0.1f * static_cast<float>(step) + 15.f) / (most - least);
      four_floats sum_c{}, sum_cc{}, sum_xc{};
      for (std::size_t l = 0; l < length; ++l) {
        nearest(trial * (value[l] - least), 0, 15, code[l]);
        const four_floats weighted = weight[l] * code[l];
        sum_c += weighted;
        sum_cc += weighted * code[l];
        sum_xc += weighted * value[l];
      }
      const four_floats determinant = sum_w * sum_cc - sum_c * sum_c;
      four_floats new_scale = (sum_w * sum_xc - sum_x * sum_c) / determinant,
                  new_least = (sum_cc * sum_x - sum_c * sum_xc) / determinant;
      const four_ints above = new_least > zero;
      new_least = above ? zero : new_least;
      new_scale = above ? sum_xc / sum_cc : new_scale;
      four_floats loss{};
      for (std::size_t l = 0; l < length; ++l) {
        const four_floats off = new_scale * code[l] + new_least - value[l];
        loss += weight[l] * (off * off);
      }
      const four_ints better = (determinant > zero) & (loss < best);
      best = better ? loss : best;
      inverse = better ? trial : inverse;
      from = better ? least : from;
      scale = better ? new_scale : scale;
      least = better ? new_least : least;  // the next steps start from it
    }
    scale = flat ? zero : scale;
  }
};

/// Four sub-blocks of 16 values with codes -32..31, which decode to code * scale.
struct symmetric_search {
  four_floats scale;
  four_floats inverse;  ///< the codes were nearest(inverse * x), clamped
  four_ints tiny;       ///< no magnitude of the lane reaches 1e-15: its codes are -32

  /// Least squares with weights x^2 for each of 19 trial steps. @param x [4 * 16]
  INTAGLIO_UNFUSED explicit symmetric_search(const float* x) {
    INTAGLIO_UNFUSED_BODY
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
      const four_floats trial = step == -10 ? inverse : -(32.f + 0.1f * static_cast<float>(step)) / largest;
      four_floats sum_xc{}, sum_cc{};
      for (std::size_t l = 0; l < length; ++l) {
        four_floats code;
        nearest(trial * value[l], -32, 31, code);
        const four_floats weight = value[l] * value[l];
        sum_xc += weight * value[l] * code;
        sum_cc += weight * code * code;
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

/// Handles squares beyond f32's range, which leave the search without a scale. Such a block gets an infinite scale, so
/// it decodes to no number, like blocks whose scale is beyond f16. The reference would lose the values silently.
inline void encode_overflow(std::uint8_t* block, std::size_t bytes, std::size_t scale) {
  constexpr std::uint16_t infinity = 0x7C00;
  std::fill(block, block + bytes, std::uint8_t{1});
  std::memcpy(block + scale, &infinity, 2);
}

/// Encodes a block of Q4_K. @shape x: [256]; block: 144 bytes
INTAGLIO_UNFUSED inline void encode_q4_k(const float* x, std::uint8_t* block) {
  INTAGLIO_UNFUSED_BODY
  const std::array<affine_search, 2> found{affine_search(x), affine_search(x + 128)};
  float most_scale = 0.f, most_least = 0.f;
  for (std::size_t j = 0; j < 8; ++j) {
    if (!std::isfinite(found[j / 4].scale[j % 4] + found[j / 4].least[j % 4])) return encode_overflow(block, 144, 0);
    most_scale = (std::max)(most_scale, found[j / 4].scale[j % 4]);
    most_least = (std::max)(most_least, -found[j / 4].least[j % 4]);
  }
  const float to_scale = most_scale > 0.f ? 63.f / most_scale : 0.f,
              to_least = most_least > 0.f ? 63.f / most_least : 0.f;
  const std::uint16_t d_bits = f16_from_f32(most_scale / 63.f), least_bits = f16_from_f32(most_least / 63.f);
  const float d = f32_from_f16(d_bits), dmin = f32_from_f16(least_bits);
  std::memcpy(block, &d_bits, 2);
  std::memcpy(block + 2, &least_bits, 2);
  std::uint8_t* packed = block + 4;
  std::fill(packed, packed + 12, std::uint8_t{0});
  std::array<std::uint8_t, 256> codes;
  for (std::size_t j = 0; j < 8; ++j) {
    const affine_search& of = found[j / 4];
    const std::size_t lane = j % 4;
    const unsigned s = (std::min)(63u, static_cast<unsigned>(nearest(to_scale * of.scale[lane])) & 255u);
    const unsigned m = (std::min)(63u, static_cast<unsigned>(nearest(to_least * -of.least[lane])) & 255u);
    if (j < 4) {
      packed[j] = static_cast<std::uint8_t>(packed[j] | s);
      packed[j + 4] = static_cast<std::uint8_t>(packed[j + 4] | m);
    } else {
      packed[j + 4] = static_cast<std::uint8_t>((s & 15u) | ((m & 15u) << 4));
      packed[j - 4] = static_cast<std::uint8_t>(packed[j - 4] | ((s >> 4) << 6));
      packed[j] = static_cast<std::uint8_t>(packed[j] | ((m >> 4) << 6));
    }
    const float step = d * static_cast<float>(s), least = dmin * static_cast<float>(m);
    for (std::size_t i = 0; i < 32; ++i) {
      const float v = x[32 * j + i];
      // A scale that rounds to 0 keeps the codes of the search.
      const int code = step != 0.f     ? nearest((v + least) / step)
                       : of.flat[lane] ? 0
                                       : nearest(of.inverse[lane] * (v - of.from[lane]));
      codes[32 * j + i] = static_cast<std::uint8_t>(std::clamp(code, 0, 15));
    }
  }
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t l = 0; l < 32; ++l)
      block[16 + 32 * k + l] = static_cast<std::uint8_t>(codes[64 * k + l] | (codes[64 * k + 32 + l] << 4));
}

/// Encodes a block of Q6_K. @shape x: [256]; block: 210 bytes
INTAGLIO_UNFUSED inline void encode_q6_k(const float* x, std::uint8_t* block) {
  INTAGLIO_UNFUSED_BODY
  const std::array<symmetric_search, 4> found{symmetric_search(x), symmetric_search(x + 64), symmetric_search(x + 128),
                                              symmetric_search(x + 192)};
  float largest = 0.f;  // the scale of the largest magnitude, with its sign
  for (std::size_t j = 0; j < 16; ++j) {
    const float scale = found[j / 4].scale[j % 4];
    if (!std::isfinite(scale)) return encode_overflow(block, 210, 208);
    if (std::fabs(scale) > std::fabs(largest)) largest = scale;
  }
  if (std::fabs(largest) < 1e-15f) {
    std::fill(block, block + 210, std::uint8_t{0});
    return;
  }
  const float to_scale = -128.f / largest;
  const std::uint16_t d_bits = f16_from_f32(1.f / to_scale);
  const float d = f32_from_f16(d_bits);
  std::memcpy(block + 208, &d_bits, 2);
  std::array<std::uint8_t, 256> codes;
  for (std::size_t j = 0; j < 16; ++j) {
    const symmetric_search& of = found[j / 4];
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

}  // namespace intaglio::io::codec_blocks
