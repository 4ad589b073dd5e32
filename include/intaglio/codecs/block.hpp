// SPDX-License-Identifier: MIT
// Helpers that all codecs of blocks share: they read the numbers in a block.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intaglio/codecs/device_row.hpp"
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/float16.hpp"

namespace intaglio::codecs {
/// Reads 16 bits, of any alignment, in the machine's byte order.
inline std::uint16_t u16_at(const std::uint8_t* bytes) {
  std::uint16_t out;
  std::memcpy(&out, bytes, 2);
  return out;
}
inline std::uint32_t u32_at(const std::uint8_t* bytes) {  ///< reads 32 bits, of any alignment
  std::uint32_t out;
  std::memcpy(&out, bytes, 4);
  return out;
}
inline float f16_at(const std::uint8_t* bytes) { return f32_from_f16(u16_at(bytes)); }  ///< reads an f16 as f32

/// Copies `count` bytes of a block. The copy cannot overlap the output, so compilers vectorise the loops over it.
template <std::size_t count>
std::array<std::uint8_t, count> copied(const std::uint8_t* from) {
  std::array<std::uint8_t, count> out;
  std::memcpy(out.data(), from, count);
  return out;
}

/// A scale and a least value of 6 bits each: pair `j` of the eight pairs in the 12 bytes of Q4_K and Q5_K.
/// @source ggml-quants.c, get_scale_min_k4
struct six_bits {
  std::uint8_t scale, least;
};
inline six_bits six_bits_at(const std::uint8_t* packed, std::size_t j) {  ///< the pair of sub-block j, 0 to 7
  const auto at = [&](std::size_t i) { return static_cast<unsigned>(packed[i]); };
  const unsigned scale = j < 4 ? at(j) & 63u : (at(j + 4) & 15u) | ((at(j - 4) >> 6) << 4),
                 least = j < 4 ? at(j + 4) & 63u : (at(j + 4) >> 4) | ((at(j) >> 6) << 4);
  return {static_cast<std::uint8_t>(scale), static_cast<std::uint8_t>(least)};
}

/// Writes the codes of 32 weights from 16 bytes: weights j and j + 16 are in byte j.
inline void put_nibbles(const std::uint8_t* from, std::uint8_t* codes) {
  for (std::size_t j = 0; j < 16; ++j) {
    codes[j] = from[j] & 15;
    codes[j + 16] = from[j] >> 4;
  }
}
/// Sets bit 4 of 32 codes: bit j of `bits` is bit 4 of code j.
inline void put_upper_bits(std::uint32_t bits, std::uint8_t* codes) {
  for (std::size_t j = 0; j < 32; ++j) codes[j] = static_cast<std::uint8_t>(codes[j] | ((bits >> j) & 1u) << 4);
}

/// A block taken apart, as its row in rows.h says. It holds the code of each weight, the bytes of the factors of each
/// 32 columns, and the values that 256 columns share. Where 16 columns have a factor, the factors of the first 16
/// columns come before those of the second 16. Least values follow in the same order.
struct split_block {
  std::array<std::uint8_t, 256> codes;
  std::array<std::array<std::uint8_t, 4>, 8> factors;
  std::array<std::uint8_t, 16> super;
};

/// A function that takes a block apart.
using block_splitter = void (*)(const std::uint8_t* block, split_block& parts);

/// A codec of blocks: `elements` neighbours of one row take `bytes`. The type also has functions that read a block.
template <class C>
concept block_codec = requires(const std::uint8_t* block, float* out, split_block& parts) {
  { C::type } -> std::convertible_to<dtype>;
  { C::elements } -> std::convertible_to<std::size_t>;
  { C::bytes } -> std::convertible_to<std::size_t>;
  C::decode(block, out);
  C::split(block, parts);
};

/// Whether every scale of a block is a number.
template <block_codec C>
bool is_finite(const std::uint8_t* block) {
  if constexpr (requires { C::is_finite(block); }) {
    return C::is_finite(block);
  } else {
    for (const std::size_t at : C::f16_offsets)
      if ((u16_at(block + at) & 0x7C00u) == 0x7C00u) return false;
    return true;
  }
}

/// Gives a block of arbitrary bytes scales with which no weight exceeds `largest` by much. It serves made-up weights.
template <block_codec C>
void scale_block(std::uint8_t* block, float largest) {
  if constexpr (requires { C::scale_to(block, largest); }) {
    C::scale_to(block, largest);
  } else {
    constexpr device_row row = row_of(C::type);
    std::int32_t number = 1;
    for (unsigned code = 0; code < 1u << row.bits; ++code) {
      const std::int32_t each = row.number(static_cast<std::uint8_t>(code));
      number = each > number ? each : -each > number ? -each : number;
    }
    const float sub_scale = row.form == factor_form::byte ? 128.f : row.form == factor_form::six ? 64.f : 1.f;
    for (std::size_t i = 0; i < C::f16_offsets.size(); ++i) {
      const float of_codes = largest / static_cast<float>(number) / sub_scale, of_least = -largest / sub_scale;
      const bool is_least = row.least && i == 1;
      const std::uint16_t half = f16_from_f32(!is_least                       ? of_codes
                                              : row.form == factor_form::half ? of_least
                                                                              : -of_least);
      std::memcpy(block + C::f16_offsets[i], &half, 2);
    }
  }
}

}  // namespace intaglio::codecs
