// SPDX-License-Identifier: MIT
// MXFP4: 32 weights, a power of two and codes of 4 bits that are numbers of 1 sign, 2 exponent and 1 mantissa bit.
#pragma once

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/search.hpp"

namespace intaglio::codecs {

/// A weight is 2^(e - 128) times twice the number that the code is: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives. An e
/// of 255 is NaN (OCP Microscaling Formats 1.0, E8M0).
/// @layout e u8; codes, 16 bytes: weights j and j + 16 in byte j
/// @source ggml-quants.c, dequantize_row_mxfp4
struct mxfp4 {
  static constexpr dtype type = dtype::mxfp4;
  static constexpr std::size_t elements = 32, bytes = 17;
  static constexpr float largest_error = 0.25f;

  static void decode(const std::uint8_t* block, float* out) {
    const auto d = std::bit_cast<float>(scale_bits(block[0]));
    for (std::size_t j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(fp4_values[block[1 + j] & 15]);
      out[j + 16] = d * static_cast<float>(fp4_values[block[1 + j] >> 4]);
    }
  }

  static void split(const std::uint8_t* block, split_block& to) {
    put_nibbles(block + 1, to.codes.data());
    const auto factor = static_cast<std::uint16_t>(scale_bits(block[0]) >> 16);  // a bf16: the lower 16 bits of
                                                                                 // scale_bits are 0
    std::memcpy(to.factors[0].data(), &factor, 2);
  }
  static bool is_finite(const std::uint8_t* block) { return block[0] != 255; }
  static void scale_to(std::uint8_t* block, float largest) {
    block[0] = static_cast<std::uint8_t>((std::bit_cast<std::uint32_t>(largest / 12) >> 23) + 1);
  }

  /// @source ggml-quants.c, quantize_row_mxfp4_ref
  static void encode(const float* x, std::uint8_t* block) {
    const float largest = std::fabs(largest_of(x, 32));
    const int e = largest > 0 ? std::clamp(std::ilogb(largest) - 2 + 127, 0, 254) : 0;
    const auto d = std::bit_cast<float>(scale_bits(static_cast<std::uint32_t>(e)));
    std::array<std::uint8_t, 32> codes;
    for (std::size_t j = 0; j < 32; ++j) {
      std::uint8_t nearest = 0;  // the first one where several are as near
      for (std::uint8_t code = 1; code < 16; ++code)
        if (std::fabs(rounded(static_cast<float>(fp4_values[code]) * d) - x[j]) <
            std::fabs(rounded(static_cast<float>(fp4_values[nearest]) * d) - x[j]))
          nearest = code;
      codes[j] = nearest;
    }
    block[0] = static_cast<std::uint8_t>(e);
    put_packed_nibbles(codes.data(), block + 1);
  }

 private:
  static std::uint32_t scale_bits(std::uint32_t e) {
    return e == 255 ? 0x7FC00000u : e < 2 ? 0x00200000u << e : (e - 1) << 23;
  }
};

}  // namespace intaglio::codecs
