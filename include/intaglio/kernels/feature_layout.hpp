// SPDX-License-Identifier: MIT
// Layout of the vectors of an FFN's features, one after the other. A word of a feature's vector holds 16 codes, in the
// order of a tile's row (kernels/ternary_layout.hpp). Features are rows of gate and up, and columns of down.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/kernels/ternary_layout.hpp"

namespace intaglio::kernels {

/// Number of 32-bit words of a feature's vector of `width` 2-bit codes.
constexpr std::uint64_t feature_row_words(std::uint64_t width) { return width / tile_columns; }
/// Bytes of the vectors of a number of features.
constexpr std::uint64_t feature_bytes(std::uint64_t features, std::uint64_t width) {
  return 4 * features * feature_row_words(width);
}

/// Code 0, 1 or 2 (for -1, 0, +1) of a feature at a column of its vector.
constexpr std::uint32_t feature_code(std::span<const std::uint32_t> words, std::uint64_t feature, std::uint64_t column,
                                     std::uint64_t width) {
  return (words[feature * feature_row_words(width) + column / tile_columns] >>
          tile_shift(static_cast<std::uint32_t>(column % tile_columns))) &
         3u;
}

/// Packs a matrix whose rows are features. @shape codes: [count, width] of -1, 0, +1; out: [count, width / 16] words
inline void pack_feature_rows(std::span<const std::int8_t> codes, std::span<std::uint32_t> out) {
  for (std::size_t word = 0; word < out.size(); ++word) out[word] = tile_row(codes.data() + word * tile_columns);
}

/// Packs 16 rows of a matrix whose columns are features. Rows [16 * word, 16 * word + 16) are written to the vectors of
/// features [first, first + count). `out` begins at word 0 of feature `first`.
/// @shape codes: [16, features]; out: [count, width / 16] words
inline void pack_feature_columns(std::span<const std::int8_t> codes, std::uint64_t features, std::uint64_t first,
                                 std::uint64_t word, std::uint64_t width, std::span<std::uint32_t> out) {
  const std::uint64_t row_words = feature_row_words(width), count = out.size() / row_words;
  if (codes.size() != tile_columns * features || first > features || count > features - first || word >= row_words)
    throw argument_error("pack_feature_columns", "16 rows and features inside 0.." + std::to_string(features),
                         std::to_string(first) + " + " + std::to_string(count));
  for (std::uint64_t f = 0; f < count; ++f) {
    std::uint32_t bits = 0;
    for (std::uint32_t c = 0; c < tile_columns; ++c)
      bits |= static_cast<std::uint32_t>(codes[c * features + first + f] + 1) << tile_shift(c);
    out[f * row_words + word] = bits;
  }
}

}  // namespace intaglio::kernels
