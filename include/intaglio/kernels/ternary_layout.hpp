// SPDX-License-Identifier: MIT
// Conversion of int8 codes, [rows, columns] of -1, 0, +1, to the tiles and row orders that ternary_matmul reads
// (kernels/catalogue.hpp). A tile is 4 rows x 16 columns in four 32-bit words, so that a repacked matrix takes columns
// / 4 bytes a row.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "intaglio/core/error.hpp"
#include "intaglio/kernels/row_order.hpp"

namespace intaglio::kernels {

/// Rows and columns of a tile.
inline constexpr std::uint32_t tile_rows = 4, tile_columns = 16;

/// Bit offset of a column's 2-bit code in its row's word.
constexpr std::uint32_t tile_shift(std::uint32_t column_of_tile) {
  return 8 * (column_of_tile % 4) + 2 * (column_of_tile / 4);
}

/// Number of 32-bit words of the codes of a matrix [rows, columns].
constexpr std::uint64_t tile_words(std::uint64_t rows, std::uint64_t columns) { return rows * columns / 16; }

/// Index of the word that holds (position, column); `position` counts rows in the order of the merged matrix.
constexpr std::uint64_t tile_word(std::uint64_t position, std::uint64_t column, std::uint64_t columns) {
  return (position / tile_rows * (columns / tile_columns) + column / tile_columns) * tile_rows + position % tile_rows;
}

/// Code 0, 1 or 2 (for -1, 0, +1) at (position, column) of a repacked matrix.
constexpr std::uint32_t tile_code(std::span<const std::uint32_t> words, std::uint64_t position, std::uint64_t column,
                                  std::uint64_t columns) {
  return (words[tile_word(position, column, columns)] >>
          tile_shift(static_cast<std::uint32_t>(column % tile_columns))) &
         3u;
}

/// Packs 16 codes of one row, each -1, 0 or +1, into a word; for other values the result is unspecified.
constexpr std::uint32_t tile_row(const std::int8_t* codes) {
  if (std::is_constant_evaluated() || std::endian::native != std::endian::little) {
    std::uint32_t word = 0;
    for (std::uint32_t c = 0; c < tile_columns; ++c)
      word |= (static_cast<std::uint32_t>(codes[c] + 1) & 3u) << tile_shift(c);
    return word;
  }
  // Columns 4f .. 4f+3 are the bytes of the f-th word. Their codes go to the same bytes, shifted up by 2f bits.
  std::uint32_t four[4];
  std::memcpy(four, codes, sizeof four);
  std::uint32_t word = 0;
  for (std::uint32_t f = 0; f < 4; ++f) {
    const std::uint32_t without_carry = ((four[f] & 0x03030303u) + 0x01010101u) & 0x03030303u;  // -1, 0, 1 -> 0, 1, 2
    word |= without_carry << (2 * f);
  }
  return word;
}

/// Repacks row groups [first_group, first_group + output.size() / (columns / 4)) of a merged matrix, so that callers
/// choose how much is in memory at once. `codes[t]` is the whole tensor t, or a window of it from row `first_row[t]`
/// on.
/// @shape  codes[t]: [rows, columns] int8 of -1, 0, +1; output: [groups, columns / 16] tiles of 4 words
/// @error  argument_error: columns are not a multiple of 16, rows not a multiple of 4, or a row is outside its window
inline void repack_ternary(const row_order& order, std::span<const std::span<const std::int8_t>> codes,
                           std::uint64_t columns, std::uint64_t first_group, std::span<std::uint32_t> output,
                           std::array<std::uint64_t, 3> first_row = {}) {
  if (columns == 0 || columns % tile_columns != 0)
    throw argument_error("repack_ternary: columns", "a positive multiple of 16", std::to_string(columns));
  if (order.rows() % tile_rows != 0)
    throw argument_error("repack_ternary: rows", "a multiple of 4", std::to_string(order.rows()));
  if (codes.size() != order.tensors())
    throw argument_error("repack_ternary: sources", std::to_string(order.tensors()), std::to_string(codes.size()));
  const std::uint64_t tiles = columns / tile_columns, group_words = tiles * tile_rows,
                      groups = output.size() / group_words;
  if (output.size() % group_words != 0 || first_group > order.rows() / tile_rows ||
      groups > order.rows() / tile_rows - first_group)
    throw argument_error("repack_ternary: output words",
                         "whole row groups of " + std::to_string(group_words) + " words inside the matrix",
                         std::to_string(output.size()) + " from group " + std::to_string(first_group));
  for (std::uint64_t group = 0; group < groups; ++group) {
    const std::int8_t* source[tile_rows];
    for (std::uint32_t r = 0; r < tile_rows; ++r) {
      const source_row from = order(static_cast<std::uint32_t>((first_group + group) * tile_rows + r));
      const std::uint64_t begin = first_row[from.tensor], end = begin + codes[from.tensor].size() / columns;
      if (from.row < begin || from.row >= end)
        throw argument_error("repack_ternary: source " + std::to_string(from.tensor), "row " + std::to_string(from.row),
                             "rows " + std::to_string(begin) + " to " + std::to_string(end) + " (exclusive)");
      source[r] = codes[from.tensor].data() + (from.row - begin) * columns;
    }
    std::uint32_t* words = output.data() + group * group_words;
    for (std::uint64_t tile = 0; tile < tiles; ++tile)
      for (std::uint32_t r = 0; r < tile_rows; ++r)
        words[tile * tile_rows + r] = tile_row(source[r] + tile * tile_columns);
  }
}

}  // namespace intaglio::kernels
