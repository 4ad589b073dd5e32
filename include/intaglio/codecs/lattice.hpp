// SPDX-License-Identifier: MIT
// Helpers that IQ1, IQ2 and IQ3 share: eight or four neighbours are an entry of a grid, with signs.
#pragma once

#include <bit>

#include "intaglio/codecs/block.hpp"
#include "intaglio/codecs/grids.hpp"

namespace intaglio::codecs {

/// The base of codecs whose blocks are taken apart by shared code.
struct grid_codec {
  static constexpr bool of_grid = true;
};

/// Decodes a block with its `split` function: a value is (d * unit) * factor * number. No product is rounded: d has 11
/// bits, a factor 5 and a number 6.
[[gnu::cold]] inline void decode_by_split(const device_row& row, block_splitter split, const std::uint8_t* block,
                                          float* out) {
  split_block parts;
  split(block, parts);
  const float d = f16_at(parts.super.data()) * row.unit();
  for (std::size_t i = 0; i < 256; ++i) {
    const auto factor = static_cast<std::int8_t>(parts.factors[i / 32][i % 32 / row.per]);
    out[i] = d * static_cast<float>(factor) * static_cast<float>(row.number(parts.codes[i]));
  }
}
template <class C>
void decode_by_split(const std::uint8_t* block, float* out) {  ///< decodes a block of codec C
  static constexpr device_row row = row_of(C::type);
  static_assert(row.form == factor_form::byte && !row.least && C::elements == 256);
  decode_by_split(row, &C::split, block, out);
}

/// The signs of eight neighbours from seven of them: the eighth makes the number of negative ones even.
inline unsigned eighth_sign(unsigned seven) { return seven | static_cast<unsigned>(std::popcount(seven) & 1) << 7; }

/// Writes the codes of eight neighbours: a level of 2 bits, and the sign above it. @source grids.hpp
inline void put_eight(std::uint16_t levels, unsigned signs, std::uint8_t* codes) {
  for (unsigned i = 0; i < 8; ++i)
    codes[i] = static_cast<std::uint8_t>((levels >> (2 * i) & 3u) | (signs >> i & 1u) << 2);
}
/// Writes the factors of two groups of 16 neighbours from the two 4-bit scales of a byte: 2 s + 1 for each scale s.
inline void put_two_factors(std::uint8_t both, split_block& to, std::size_t group) {
  to.factors[group][0] = static_cast<std::uint8_t>(2 * (both & 15) + 1);
  to.factors[group][1] = static_cast<std::uint8_t>(2 * (both >> 4) + 1);
}

}  // namespace intaglio::codecs
