// SPDX-License-Identifier: MIT
// Helpers that encoders share: rounding, and the searches for a block's scale. They follow ggml's quantize_row
// functions (ggml-quants.c) step by step, so the bytes equal those that llama-quantize writes without an importance
// matrix.
//
// Each encoder's codec has `largest_error`: a weight differs from the number that was encoded by at most this part of
// the largest magnitude of its block, where the block's f16 are normal numbers (tests/codecs/encode.test.cpp). For
// codecs that round to steps it is half a step, or a whole step where the last code of one sign is missing, plus 2^-11
// for each f16. For codecs that search their scales it is a fifth more than the largest error of 36 million random and
// extreme numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intaglio/codecs/block.hpp"
#include "intaglio/core/unfused.hpp"

namespace intaglio::codecs {
/// Stores a value as f16, of any alignment.
inline void put_f16(std::uint8_t* to, float value) {
  const std::uint16_t bits = f16_from_f32(value);
  std::memcpy(to, &bits, 2);
}
/// Writes a scale as f16. @return the scale as it is read again
inline float put_scale(std::uint8_t* to, float value) {
  put_f16(to, value);
  return f16_at(to);
}
/// The inverse 1 / d, or 0 where that is not finite. A block of such small values becomes a block of zeros.
inline float inverse(float d) { return std::isfinite(1.f / d) ? 1.f / d : 0.f; }

/// Truncates towards zero after an offset was added, as the reference's cast does, to 0..most. Values beyond f32's
/// range may become NaN, which gives 0.
inline std::uint8_t truncated(float value, int most) {
  return value > 0.f ? static_cast<std::uint8_t>(value < static_cast<float>(most) ? static_cast<int>(value) : most)
                     : std::uint8_t{0};
}
/// Rounds to the nearest integer, ties away from zero, as std::round does, but without a call. Adding the largest
/// number below 0.5 and truncating gives this result for all halves.
inline int round_away(float value) {
  return static_cast<int>(rounded(value) + (value < 0.f ? -0x1.fffffep-2f : 0x1.fffffep-2f));
}
/// @{
/// Rounds to the nearest integer, ties to even. The lowest bits of 1.5 * 2^23 + value are that integer where |value| is
/// below 2^22, which holds wherever the reference rounds so.
inline int nearest(float value) {
  const float shifted = rounded(value) + 12582912.f;
  std::int32_t bits;
  std::memcpy(&bits, &shifted, 4);
  return (bits & 0x007FFFFF) - 0x00400000;
}
inline int nearest_between(float value, int least, int most) { return std::clamp(nearest(value), least, most); }
/// @}
/// Four sub-blocks at a time, one in each lane. 16 bytes are a register of SSE2 and of NEON, so no function needs a
/// target attribute.
typedef float four_floats __attribute__((vector_size(16)));
typedef std::int32_t four_ints __attribute__((vector_size(16)));  ///< four integers of 32 bits

/// Nearest integers of four values, clamped to least..most.
inline void nearest(const four_floats& value, std::int32_t least, std::int32_t most, four_floats& out) {
  const four_floats shifted = rounded(value) + 12582912.f;
  four_ints bits;
  std::memcpy(&bits, &shifted, 16);
  const four_ints code = (bits & 0x007FFFFF) - 0x00400000, low = four_ints{} + least, high = four_ints{} + most;
  const four_ints raised = code < low ? low : code;
  out = __builtin_convertvector(raised > high ? high : raised, four_floats);
}

/// Handles squares beyond f32's range, which leave a search without a scale. Such a block gets an infinite scale, so it
/// decodes to no number, like blocks whose scale is beyond f16. The reference would lose the values silently.
inline void put_overflow(std::uint8_t* block, std::size_t bytes, std::size_t scale) {
  constexpr std::uint16_t infinity = 0x7C00;
  std::fill(block, block + bytes, std::uint8_t{1});
  std::memcpy(block + scale, &infinity, 2);
}

/// The number of the largest magnitude; the first one where several are equal.
inline float largest_of(const float* x, std::size_t count) {
  float out = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (std::fabs(x[i]) > std::fabs(out)) out = x[i];
  return out;
}

/// The result of an affine search for a sub-block: codes 0 .. most; a value is about scale * code - least.
template <std::size_t count>
struct affine_codes {
  float scale = 0, least = 0;
  std::array<std::uint8_t, count> codes{};
};

/// The weights of an affine search: squares or magnitudes of the values.
enum class loss : std::uint8_t { squares, magnitudes };

/// Weighted least squares for each of 16 trial steps. @shape weights: [count]
/// @source ggml-quants.c, make_qkx2_quants
template <std::size_t count>
affine_codes<count> affine_search(const float* x, const float* weights, int most, loss of) {
  affine_codes<count> out;
  float least = 0, largest = x[0], sum_w = 0, sum_x = 0;
  for (std::size_t i = 0; i < count; ++i) {
    least = (std::min)(least, x[i]);
    largest = (std::max)(largest, x[i]);
    sum_w += weights[i];
    sum_x += rounded(weights[i] * x[i]);
  }
  out.least = -least;
  if (largest == least) return out;
  std::array<std::uint8_t, count> codes{};
  float best = 0;
  for (int step = -1; step < 16; ++step) {  // -1: the plain scale comes first
    const float raise = -0.5f + rounded(0.1f * static_cast<float>(step)),
                from = step < 0 ? static_cast<float>(most) / (largest - least)
                                : (raise + static_cast<float>(most)) / (largest - least);
    float sum_c = 0, sum_cc = 0, sum_xc = 0;
    for (std::size_t i = 0; i < count; ++i) {
      codes[i] = static_cast<std::uint8_t>(nearest_between(from * (x[i] - least), 0, most));
      const float code = static_cast<float>(codes[i]), weighted = rounded(weights[i] * code);
      sum_c += weighted;
      sum_cc += rounded(weighted * code);
      sum_xc += rounded(weighted * x[i]);
    }
    float scale = 1.f / from, new_least = least;
    if (step >= 0) {
      const float determinant = rounded(sum_w * sum_cc) - rounded(sum_c * sum_c);
      if (!(determinant > 0)) continue;
      scale = (rounded(sum_w * sum_xc) - rounded(sum_x * sum_c)) / determinant;
      new_least = (rounded(sum_cc * sum_x) - rounded(sum_c * sum_xc)) / determinant;
      if (new_least > 0) {
        new_least = 0;
        scale = sum_xc / sum_cc;
      }
    }
    float lost = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float off = rounded(scale * static_cast<float>(codes[i])) + new_least - x[i];
      lost += rounded(weights[i] * (of == loss::magnitudes ? std::fabs(off) : off * off));
    }
    if (step >= 0 && !(lost < best)) continue;
    best = lost;
    out.scale = scale;
    least = new_least;  // the next steps start from it
    out.codes = codes;
  }
  out.least = -least;
  return out;
}
/// @{
/// Scales and least values of an affine search as integers. Scales are multiples of one step, least values of another;
/// the two steps are written as f16 at `steps`.
struct common_steps {
  std::array<std::uint8_t, 16> scale{}, least{};
  float of_scale = 0, of_least = 0;
};
template <std::size_t parts, std::size_t count>
common_steps put_common_steps(const std::array<affine_codes<count>, parts>& found, int most, std::uint8_t* steps) {
  common_steps out;
  float most_scale = 0, most_least = 0;
  for (const affine_codes<count>& each : found) {
    most_scale = (std::max)(most_scale, each.scale);
    most_least = (std::max)(most_least, each.least);
  }
  const auto bound = static_cast<float>(most);
  const float to_scale = most_scale > 0 ? bound / most_scale : 0.f,
              to_least = most_least > 0 ? bound / most_least : 0.f;
  for (std::size_t i = 0; i < parts; ++i) {
    out.scale[i] = static_cast<std::uint8_t>(nearest_between(to_scale * found[i].scale, 0, most));
    out.least[i] = static_cast<std::uint8_t>(nearest_between(to_least * found[i].least, 0, most));
  }
  out.of_scale = put_scale(steps, most_scale / bound);
  out.of_least = put_scale(steps + 2, most_least / bound);
  return out;
}
/// @}
/// The codes of a sub-block for the rounded steps. Where its scale rounds to 0, the codes of the search stay.
template <std::size_t count>
void recode(const float* x, float step, float least, int most, affine_codes<count>& of) {
  if (step == 0) return;
  for (std::size_t i = 0; i < count; ++i)
    of.codes[i] = static_cast<std::uint8_t>(nearest_between((x[i] + rounded(least)) / step, 0, most));
}

/// Writes eight pairs of 6 bits into 12 bytes, as six_bits_at reads them.
inline void put_six_bits(const common_steps& from, std::uint8_t* packed) {
  for (std::size_t j = 0; j < 4; ++j) {
    packed[j] = static_cast<std::uint8_t>(from.scale[j] | (from.scale[j + 4] >> 4) << 6);
    packed[j + 4] = static_cast<std::uint8_t>(from.least[j] | (from.least[j + 4] >> 4) << 6);
    packed[j + 8] = static_cast<std::uint8_t>((from.scale[j + 4] & 15) | (from.least[j + 4] & 15) << 4);
  }
}

/// Writes codes of 2 bits: byte l of a half has weights l, l + 32, l + 64 and l + 96.
inline void put_pairs(const std::uint8_t* codes, std::uint8_t* to) {
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::uint8_t* const of = codes + 128 * half + l;
      to[32 * half + l] =
          static_cast<std::uint8_t>((of[0] & 3) | (of[32] & 3) << 2 | (of[64] & 3) << 4 | (of[96] & 3) << 6);
    }
}

/// Writes the codes of 32 weights: bits 0 to 3 into 16 bytes, weights j and j + 16 in byte j; bit 4 into a word.
inline void put_packed_nibbles(const std::uint8_t* codes, std::uint8_t* to) {
  for (std::size_t j = 0; j < 16; ++j) to[j] = static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}
inline std::uint32_t fifth_bits(const std::uint8_t* codes) {  ///< bit 4 of code j at bit j
  std::uint32_t out = 0;
  for (std::uint32_t j = 0; j < 32; ++j) out |= static_cast<std::uint32_t>(codes[j] >> 4) << j;
  return out;
}

/// The code of the IQ4_NL value that is nearest to y; the upper one where two are as near.
/// @source ggml-quants.c, best_index_int8
inline std::uint8_t iq4_code(float y) {
  if (y <= static_cast<float>(iq4_values[0])) return 0;
  if (y >= static_cast<float>(iq4_values[15])) return 15;
  std::uint8_t above = 1;
  while (static_cast<float>(iq4_values[above]) <= y) ++above;
  const float low = static_cast<float>(iq4_values[above - 1u]), high = static_cast<float>(iq4_values[above]);
  return y - low < high - y ? static_cast<std::uint8_t>(above - 1) : above;
}

/// The scale of 32 weights in IQ4_NL's values that loses the least of 16 trials; squares are the weights.
/// @source ggml-quants.c, quantize_row_iq4_nl_impl
inline float iq4_scale(const float* x) {
  const float largest = largest_of(x, 32);
  if (std::fabs(largest) < 1e-15f) return 0;
  float scale = 0, best = 0;
  for (int step = -8; step <= 7; ++step) {  // -8: the plain scale comes first
    const float trial = step == -8 ? 1.f / (-largest / static_cast<float>(iq4_values[0]))
                                   : static_cast<float>(step + iq4_values[0]) / largest;
    float sum_xq = 0, sum_qq = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const float q = static_cast<float>(iq4_values[iq4_code(rounded(trial * x[i]))]), weighted = x[i] * x[i] * q;
      sum_xq += rounded(weighted * x[i]);
      sum_qq += rounded(weighted * q);
    }
    if (step == -8) {
      scale = sum_qq > 0 ? sum_xq / sum_qq : 0.f;
      best = scale * sum_xq;
    } else if (sum_qq > 0 && sum_xq * sum_xq > best * sum_qq) {
      scale = sum_xq / sum_qq;
      best = scale * sum_xq;
    }
  }
  return scale;
}

}  // namespace intaglio::codecs
