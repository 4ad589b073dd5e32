// SPDX-License-Identifier: MIT
// What the codecs of blocks share: reading of their numbers.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/float16.hpp"

namespace intaglio::codecs {

/// A codec of blocks: `elements` neighbours of one row in `bytes`, and how they are read.
template <class C>
concept block_codec = requires(const std::uint8_t* block, float* out) {
  { C::type } -> std::convertible_to<dtype>;
  { C::elements } -> std::convertible_to<std::size_t>;
  { C::bytes } -> std::convertible_to<std::size_t>;
  C::decode(block, out);
};

inline std::uint16_t u16_at(const std::uint8_t* bytes) {
  std::uint16_t out;
  std::memcpy(&out, bytes, 2);
  return out;
}
inline std::uint32_t u32_at(const std::uint8_t* bytes) {
  std::uint32_t out;
  std::memcpy(&out, bytes, 4);
  return out;
}
inline float f16_at(const std::uint8_t* bytes) { return f32_from_f16(u16_at(bytes)); }

/// Scale and minimum `j` of the 12 bytes that Q4_K and Q5_K keep eight pairs of 6 bits in.
/// @source ggml-quants.c, get_scale_min_k4
struct scale_and_least {
  float scale, least;
};
inline scale_and_least six_bit_pair(const std::uint8_t* packed, std::size_t j) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned>(packed[i]); };
  const unsigned scale = j < 4 ? at(j) & 63u : (at(j + 4) & 15u) | ((at(j - 4) >> 6) << 4),
                 least = j < 4 ? at(j + 4) & 63u : (at(j + 4) >> 4) | ((at(j) >> 6) << 4);
  return {static_cast<float>(scale), static_cast<float>(least)};
}

/// The values of IQ4_NL's and IQ4_XS's codes. @source ggml-common.h, kvalues_iq4nl
inline constexpr std::array<std::int8_t, 16> iq4_values{-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace intaglio::codecs
