// SPDX-License-Identifier: MIT
// NVFP4: 64 weights, four scales that are small floats, codes of 4 bits as in MXFP4.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is scale / 2 times fp4_values[code], with a scale for 16 neighbours. A scale has 4 exponent and 3 mantissa
/// bits and no sign; bit 7 is not read. The scale 127 is NaN and counts as 0; 255 is 480, as in the source. Half of a
/// scale is an f16.
/// @layout scales, 4 bytes; codes, 32 bytes: 8 for each 16 weights, of which byte j has weights j and j + 8
/// @source ggml-quants.c, dequantize_row_nvfp4
struct nvfp4 {
  static constexpr dtype type = dtype::nvfp4;
  static constexpr std::size_t elements = 64, bytes = 36;

  static void decode(const std::uint8_t* block, float* out) {
    for (std::size_t group = 0; group < 4; ++group) {
      const float d = f32_from_f16(half_of_scale(block[group]));
      const std::uint8_t* const codes = block + 4 + 8 * group;
      for (std::size_t j = 0; j < 8; ++j) {
        out[16 * group + j] = d * static_cast<float>(fp4_values[codes[j] & 15]);
        out[16 * group + j + 8] = d * static_cast<float>(fp4_values[codes[j] >> 4]);
      }
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    for (std::size_t group = 0; group < 4; ++group) {
      const std::uint16_t d = half_of_scale(block[group]);
      std::memcpy(to.factors[group / 2].data() + 2 * (group % 2), &d, 2);
      for (std::size_t j = 0; j < 8; ++j) {
        to.codes[16 * group + j] = block[4 + 8 * group + j] & 15;
        to.codes[16 * group + j + 8] = block[4 + 8 * group + j] >> 4;
      }
    }
  }
  static bool is_finite(const std::uint8_t*) { return true; }
  static void scale_to(std::uint8_t* block, float largest) {
    // The scale's exponent is biased by 7. The largest number is 12 / 2 of the scale.
    const int exponent = static_cast<int>(std::bit_cast<std::uint32_t>(largest / 6) >> 23) - 127 + 7;
    for (std::size_t group = 0; group < 4; ++group)
      block[group] = static_cast<std::uint8_t>((exponent > 0 ? exponent << 3 : 0) | (block[group] & 7));
  }

 private:
  static std::uint16_t half_of_scale(std::uint8_t bits) {
    const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
    if (bits == 127) return 0;
    // The exponent of an f16 is biased by 15 instead of 7, and half of a number has an exponent that is one less. A
    // subnormal scale becomes mantissa * 2^-10.
    return exponent != 0 ? static_cast<std::uint16_t>((exponent + 7) << 10 | mantissa << 7)
                         : f16_from_f32(static_cast<float>(mantissa) * 0x1p-10f);
  }
};

}  // namespace intaglio::codecs
