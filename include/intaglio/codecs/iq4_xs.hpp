// SPDX-License-Identifier: MIT
// IQ4_XS: 256 weights, eight scales of 6 bits, codes of 4 bits that stand for values of a table.
#pragma once

#include "intaglio/codecs/block.hpp"

namespace intaglio::codecs {

/// A weight is d * (scale - 32) * iq4_values[code], with a scale for 32 neighbours.
/// @layout d f16; bits 4 and 5 of each scale, u16; bits 0 to 3, 4 bytes; codes, 128 bytes: 16 for each 32 as in IQ4_NL
/// @source ggml-quants.c, dequantize_row_iq4_xs
struct iq4_xs {
  static constexpr dtype type = dtype::iq4_xs;
  static constexpr std::size_t elements = 256, bytes = 136;
  static constexpr std::array<std::size_t, 1> f16_offsets{0};  ///< where f16 are

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_at(block);
    const unsigned high = u16_at(block + 2);
    for (std::size_t group = 0; group < 8; ++group) {  // of 32 neighbours
      const float scale = d * static_cast<float>(scale_of(block, high, group));
      const std::uint8_t* const codes = block + 8 + 16 * group;
      for (std::size_t j = 0; j < 16; ++j) {
        out[32 * group + j] = scale * static_cast<float>(iq4_values[codes[j] & 15]);
        out[32 * group + j + 16] = scale * static_cast<float>(iq4_values[codes[j] >> 4]);
      }
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    const unsigned high = u16_at(block + 2);
    for (std::size_t group = 0; group < 8; ++group) {
      put_nibbles(block + 8 + 16 * group, to.codes.data() + 32 * group);
      to.factors[group][0] = static_cast<std::uint8_t>(scale_of(block, high, group));
    }
    std::memcpy(to.super.data(), block, 2);
  }

 private:
  static int scale_of(const std::uint8_t* block, unsigned high, std::size_t group) {
    const unsigned low = (block[4 + group / 2] >> (4 * (group % 2))) & 15u, top = (high >> (2 * group)) & 3u;
    return static_cast<int>(low | (top << 4)) - 32;
  }
};

}  // namespace intaglio::codecs
