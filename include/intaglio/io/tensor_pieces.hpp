// SPDX-License-Identifier: MIT
// Matrices whose rows do not simply follow one another in a file: views with strides, and parts in several files that
// are side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// A part of a matrix: [rows, columns] elements at [row0, column0], read from `offset` with strides in elements. For a
/// codec of blocks the elements are blocks.
struct tensor_piece {
  const mapped_file* file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t row0 = 0, rows = 0, column0 = 0, columns = 0;
  std::uint64_t row_stride = 0, column_stride = 1;

  /// The offset of an element of the whole matrix; it must be in this piece.
  std::uint64_t offset_of(std::uint64_t row, std::uint64_t column, std::uint64_t element_bytes) const {
    return offset + ((row - row0) * row_stride + (column - column0) * column_stride) * element_bytes;
  }
  bool holds(std::uint64_t row, std::uint64_t column) const {
    return row >= row0 && row - row0 < rows && column >= column0 && column - column0 < columns;
  }
};

/// Copies rows [row, row + count) of a piece, which must have them, into `out` [count, width] at the piece's columns.
inline void read_piece(const tensor_piece& piece, std::uint64_t element_bytes, std::uint64_t width, std::uint64_t row,
                       std::uint64_t count, std::span<std::byte> out) {
  constexpr std::uint64_t widest_span = std::uint64_t{1} << 20;
  const auto at = [&](std::uint64_t r, std::uint64_t c) {
    return out.data() + static_cast<std::size_t>((r * width + piece.column0 + c) * element_bytes);
  };
  const auto size = static_cast<std::size_t>(element_bytes);
  const auto bytes = [&](std::uint64_t elements) { return static_cast<std::size_t>(elements * element_bytes); };
  if (piece.column_stride == 1 && piece.columns == width && piece.row_stride == width)
    return piece.file->read(piece.offset_of(row, piece.column0, element_bytes), out);
  if (piece.column_stride == 1) {
    for (std::uint64_t r = 0; r < count; ++r)
      piece.file->read(piece.offset_of(row + r, piece.column0, element_bytes), {at(r, 0), bytes(piece.columns)});
    return;
  }
  std::vector<std::byte> span;
  if (piece.row_stride != 0 && piece.row_stride < piece.column_stride &&
      count != 0) {  // transposed: columns are contiguous
    span.resize(bytes((count - 1) * piece.row_stride + 1));
    for (std::uint64_t c = 0; c < piece.columns; ++c) {
      piece.file->read(piece.offset_of(row, piece.column0 + c, element_bytes), span);
      for (std::uint64_t r = 0; r < count; ++r) std::memcpy(at(r, c), span.data() + bytes(r * piece.row_stride), size);
    }
    return;
  }
  const std::uint64_t step =
      (std::max<std::uint64_t>)(1, widest_span / (std::max<std::uint64_t>)(1, piece.column_stride * element_bytes));
  for (std::uint64_t r = 0; r < count; ++r)
    for (std::uint64_t c = 0; c < piece.columns; c += step) {
      const std::uint64_t some = (std::min)(step, piece.columns - c);
      span.resize(bytes((some - 1) * piece.column_stride + 1));
      piece.file->read(piece.offset_of(row + r, piece.column0 + c, element_bytes), span);
      for (std::uint64_t i = 0; i < some; ++i)
        std::memcpy(at(r, c + i), span.data() + bytes(i * piece.column_stride), size);
    }
}

/// Copies rows [row0, row0 + count) of a matrix of pieces into `out` [count, columns].
inline void read_pieces(array_view<const tensor_piece> pieces, std::uint64_t element_bytes, std::uint64_t columns,
                        std::uint64_t row0, std::uint64_t count, std::span<std::byte> out) {
  for (const tensor_piece& piece : pieces) {
    const std::uint64_t first = (std::max)(row0, piece.row0), last = (std::min)(row0 + count, piece.row0 + piece.rows);
    if (first >= last) continue;
    const auto row_bytes = static_cast<std::size_t>(columns * element_bytes);
    read_piece(piece, element_bytes, columns, first, last - first,
               out.subspan(static_cast<std::size_t>(first - row0) * row_bytes,
                           static_cast<std::size_t>(last - first) * row_bytes));
  }
}

}  // namespace intaglio::io
