// SPDX-License-Identifier: MIT
// BCML1, the codec of Const-me/Cgml (CGML/Cgml/Utils/Compression/bcml1.cpp): its layout, and decoding. Encoding:
// bcml1_encode.hpp. 32 neighbours of a row are five words: f16 multiplier (low half) and f16 offset, then words of
// eight 4-bit codes, the first lowest. Rows come in panels of 64, whose words are column-major: word c of a row is 64
// words away from word c + 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/codec.hpp"

namespace intaglio::io {

/// Sizes and offsets. The last block of a row may be partial (filled with the row's last value), and so may the last
/// panel (filled with zero words).
struct bcml1_layout {
  static constexpr std::uint64_t block_columns = 32, block_words = 5, panel_rows = 64;

  std::uint64_t rows = 0, columns = 0;

  constexpr std::uint64_t row_words() const {
    return (columns / block_columns + (columns % block_columns != 0 ? 1 : 0)) * block_words;
  }
  constexpr std::uint64_t panels() const { return rows / panel_rows + (rows % panel_rows != 0 ? 1 : 0); }
  constexpr std::uint64_t panel_bytes() const { return row_words() * panel_rows * 4; }
  constexpr std::uint64_t bytes() const { return panels() * panel_bytes(); }
  /// Index of word `word` (0 .. row_words() - 1) of a row, from the start of the tensor.
  constexpr std::uint64_t at(std::uint64_t row, std::uint64_t word) const {
    return row / panel_rows * (panel_bytes() / 4) + word * panel_rows + row % panel_rows;
  }
};

/// Decodes rows [row0, row0 + count) of a tensor to f32 [count, columns]: code * multiplier + offset.
/// @param tensor all of it, layout.bytes()   @throws argument_error for sizes that do not fit together
inline void decode_bcml1(std::span<const std::byte> tensor, const bcml1_layout& layout, std::uint64_t row0,
                         std::uint64_t count, std::span<float> out) {
  if (tensor.size() != layout.bytes() || !range_inside(row0, count, layout.rows) ||
      out.size() != count * layout.columns)
    throw argument_error("tensor",
                         std::to_string(layout.bytes()) + " bytes, rows inside 0.." + std::to_string(layout.rows) +
                             " and room for their values",
                         std::to_string(tensor.size()) + " bytes, rows " + std::to_string(row0) + " + " +
                             std::to_string(count) + ", room for " + std::to_string(out.size()));
  const std::uint64_t blocks = layout.row_words() / bcml1_layout::block_words;
  // A panel stores each block of all its rows together, so the rows are the inner loop.
  for (std::uint64_t first = 0; first < count;) {
    const std::uint64_t some =
        (std::min)(count - first, bcml1_layout::panel_rows - (row0 + first) % bcml1_layout::panel_rows);
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const std::uint64_t column = block * bcml1_layout::block_columns;
      const auto length = static_cast<std::size_t>((std::min)(bcml1_layout::block_columns, layout.columns - column));
      for (std::uint64_t row = first; row < first + some; ++row) {
        std::array<std::uint32_t, 5> words;
        for (std::size_t i = 0; i < 5; ++i)
          std::memcpy(&words[i], tensor.data() + 4 * layout.at(row0 + row, block * bcml1_layout::block_words + i), 4);
        std::array<std::uint8_t, 4> head;
        std::memcpy(head.data(), words.data(), 4);
        const float multiplier = codec_blocks::f16_at(head.data()), offset = codec_blocks::f16_at(head.data() + 2);
        float* to = out.data() + row * layout.columns + column;
        if (length == 32) {
          std::array<std::uint8_t, 16> pairs;  // pairs of codes, the first in the low half
          for (std::size_t k = 0; k < 16; ++k) pairs[k] = static_cast<std::uint8_t>(words[1 + k / 4] >> (8 * (k % 4)));
          for (std::size_t k = 0; k < 16; ++k) {
            to[2 * k] = static_cast<float>(pairs[k] & 15) * multiplier + offset;
            to[2 * k + 1] = static_cast<float>(pairs[k] >> 4) * multiplier + offset;
          }
        } else {
          for (std::size_t k = 0; k < length; ++k)
            to[k] = static_cast<float>((words[1 + k / 8] >> (4 * (k % 8))) & 15u) * multiplier + offset;
        }
      }
    }
    first += some;
  }
}

/// Writes rows of BCML1 as Q4_1 blocks with equal values, which kernels read: multiplier and offset become d and m,
/// codes keep their order.
/// @shape  out: [count, columns / 32] blocks of 20 bytes   @throws argument_error for sizes that do not fit together,
/// and partial blocks
inline void bcml1_as_q4_1(std::span<const std::byte> tensor, const bcml1_layout& layout, std::uint64_t row0,
                          std::uint64_t count, std::span<std::byte> out) {
  const std::uint64_t blocks = layout.columns / bcml1_layout::block_columns;
  if (layout.columns % bcml1_layout::block_columns != 0 || tensor.size() != layout.bytes() ||
      !range_inside(row0, count, layout.rows) || out.size() != count * blocks * 20)
    throw argument_error("tensor",
                         "whole blocks of 32 columns, " + std::to_string(layout.bytes()) + " bytes, rows inside 0.." +
                             std::to_string(layout.rows) + " and room for their blocks",
                         std::to_string(layout.columns) + " columns, " + std::to_string(tensor.size()) +
                             " bytes, rows " + std::to_string(row0) + " + " + std::to_string(count) + ", room for " +
                             std::to_string(out.size()));
  for (std::uint64_t row = 0; row < count; ++row)
    for (std::uint64_t block = 0; block < blocks; ++block) {
      std::array<std::uint32_t, 5> words{};
      for (std::size_t i = 0; i < 5; ++i)
        std::memcpy(&words[i], tensor.data() + 4 * layout.at(row0 + row, block * bcml1_layout::block_words + i), 4);
      std::byte* const to = out.data() + (row * blocks + block) * 20;
      std::memcpy(to, words.data(), 4);
      const auto code = [&](std::size_t column) { return words[1 + column / 8] >> (4 * (column % 8)) & 15u; };
      for (std::size_t j = 0; j < 16; ++j) to[4 + j] = static_cast<std::byte>(code(j) | code(j + 16) << 4);
    }
}

}  // namespace intaglio::io
