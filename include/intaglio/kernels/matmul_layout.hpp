// SPDX-License-Identifier: MIT
// Conversion of a checkpoint's rows to the groups of four rows that `matmul` reads. Neighbouring lanes, each with a
// block of columns, read neighbouring 16 bytes. Nothing is rounded: a group holds the contents of the file's blocks.
//
// f32, f16, bf16: rows one after the other, each padded with zeros to a multiple of 8 columns; the last group is padded
// with rows of zeros. Codecs with n blocks of 32 columns: the following parts one after the other, as far as the
// codec's row in codecs/rows.h has them; the group is padded to 16 bytes.
//   codes: a plane for each power of two in their number of bits, the largest plane first, with the codes' lowest bits:
//     8 bits  [4 rows, 2 halves of a block, n, 16 bytes]
//     4 bits  [4 rows, n, 16 bytes]: byte j has column j in its lower and column j + 16 in its upper half
//     2 bits  [4 rows, n, 8 bytes]: bits 2e + 1 and 2e of byte 4h + k are of column 16h + 4e + k
//     1 bit   [4 rows, n, 4 bytes]: bit e of byte k is of column 4e + k
//   codes of codecs with a table: a plane of 4 or 2 bits has a word like a plane of 1 bit for each bit, the lowest
//   first factors [n, 4 rows] of 1, 2 or 4 bytes: those of the halves of a block, then the halves' least values
//   then factors that 256 columns share, [n / 8, 4 rows] of {f16 d} or {f16 d, f16 dmin}
// FACTOR_SIX replaces the last two by 32 bytes [n / 8, 2 pairs of rows]: {f16 d, f16 dmin} of each row, then for each
// of eight blocks 24 bits, {6 bits of scale, 6 bits of least value} of each row, the first row's in the lowest bits.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "intaglio/codecs/decode.hpp"
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/row_order.hpp"

namespace intaglio::kernels {

/// Sizes of a codec's rows. In a file: block_bytes for block_elements neighbours. In a group: bytes for 32 columns of
/// its four rows, and for each 256 columns.
struct codec_info {
  dtype type;
  std::string_view name;
  std::uint32_t block_elements, block_bytes;
  std::uint32_t group_block_bytes, group_super_bytes;
  codecs::device_row row;  ///< for codecs with blocks
};
/// The sizes of a codec. @param row of codecs with blocks
constexpr codec_info codec_info_of(dtype type, const codecs::device_row& row = {}) {
  const dtype_info& file = intaglio::info(type);
  return {type,
          file.name,
          file.block_elements,
          file.block_bytes,
          row.bits != 0 ? 4 * (row.code_bytes() + row.factor_bytes()) : 0,
          row.bits != 0 ? 4 * row.super_bytes() : 0,
          row};
}
/// codec_info by the number of the codec.
inline constexpr auto codec_table = [] {
  std::array<codec_info, 3 + codecs::device_row_count> out{codec_info_of(dtype::f16), codec_info_of(dtype::f32),
                                                           codec_info_of(dtype::bf16)};
  for (std::size_t i = 0; i < codecs::device_row_count; ++i)
    out[3 + i] = codec_info_of(codecs::device_rows[i].type, codecs::device_rows[i]);
  return out;
}();
static_assert(
    [] {
      for (std::size_t i = 0; i < codecs::device_row_count; ++i)
        if (codecs::device_rows[i].id != 3 + i) return false;
      return true;
    }(),
    "rows of codecs/rows.h are in the order of their numbers, from 3 on");
/// The sizes of a codec.
constexpr const codec_info& info(codec type) { return codec_table[static_cast<std::size_t>(type)]; }

/// The columns of a matrix of the codec must be a multiple of this number.
constexpr std::uint32_t column_step(codec type) { return is_dense(type) ? 4 : info(type).block_elements; }

/// Bytes of a row in a checkpoint.
constexpr std::uint64_t file_row_bytes(codec type, std::uint64_t columns) {
  return columns / info(type).block_elements * info(type).block_bytes;
}
/// Bytes of a group of four rows.
constexpr std::uint64_t matmul_group_bytes(codec type, std::uint64_t columns) {
  if (is_dense(type)) return 4 * info(type).block_bytes * ((columns + 7) / 8 * 8);
  return (columns / 32 * info(type).group_block_bytes + columns / 256 * info(type).group_super_bytes + 15) / 16 * 16;
}
/// Bytes of a packed weight [rows, columns]; the last group may have rows of padding.
constexpr std::uint64_t matmul_weight_bytes(codec type, std::uint64_t rows, std::uint64_t columns) {
  return (rows + 3) / 4 * matmul_group_bytes(type, columns);
}

/// The codec with which kernels read weights of a type; none if kernels cannot read them.
constexpr std::optional<codec> codec_of(dtype type) {
  for (std::size_t i = 0; i < codec_table.size(); ++i)
    if (codec_table[i].type == type) return static_cast<codec>(i);
  return std::nullopt;
}

namespace layout {

/// Byte offsets of block b of row r in each part of a group of n blocks.
struct group_offsets {
  codecs::device_row row;
  std::size_t n;

  bool has(std::uint32_t bits) const { return (row.bits & bits) != 0; }
  std::size_t bytes(std::size_t r, std::size_t b, std::size_t half) const { return ((2 * r + half) * n + b) * 16; }
  std::size_t nibbles(std::size_t r, std::size_t b) const { return (r * n + b) * 16; }
  std::size_t pairs(std::size_t r, std::size_t b) const { return (has(4) ? 64 * n : 0) + (r * n + b) * 8; }
  std::size_t bits(std::size_t r, std::size_t b) const { return 16 * (row.bits & 6u) * n + (r * n + b) * 4; }
  bool has_six_bits() const { return row.form == codecs::factor_form::six; }
  /// With six bits the 24 bits of a pair of rows.
  std::size_t factors(std::size_t r, std::size_t b) const {
    if (has_six_bits()) return super(r & ~std::size_t{1}, b) + 8 + 3 * (b % 8);
    return 4 * row.code_bytes() * n + (4 * b + r) * row.factor_bytes();
  }
  std::size_t super(std::size_t r, std::size_t b) const {
    const std::size_t after = 4 * (row.code_bytes() + row.factor_bytes()) * n;
    if (has_six_bits()) return after + (b / 8 * 2 + r / 2) * 32 + r % 2 * 4;
    return after + (b / 8 * 4 + r) * row.super_bytes();
  }
};

/// Packs 32 codes into block b of row r.
inline void put_codes(const group_offsets& at, const std::uint8_t* codes, std::size_t r, std::size_t b,
                      std::byte* group) {
  if (at.has(8)) {
    for (std::size_t half = 0; half < 2; ++half) std::memcpy(group + at.bytes(r, b, half), codes + 16 * half, 16);
    return;
  }
  std::array<std::uint32_t, 4> nibbles{};
  std::array<std::uint32_t, 2> pairs{};
  std::uint32_t bits = 0;
  const auto put_bits = [&](std::uint32_t& four, std::uint32_t& plane, std::uint32_t e) {
    plane |= (four & 0x01010101u) << e;
    four >>= 1;
  };
  for (std::uint32_t e = 0; e < 8; ++e) {  // four columns at a time
    std::uint32_t four;
    std::memcpy(&four, codes + 4 * e, 4);
    if (at.row.table != 0) {
      if (at.has(4))
        for (std::uint32_t& plane : nibbles) put_bits(four, plane, e);
      if (at.has(2))
        for (std::uint32_t& plane : pairs) put_bits(four, plane, e);
      if (at.has(1)) put_bits(four, bits, e);
      continue;
    }
    if (at.has(4)) {
      nibbles[e % 4] |= (four & 0x0f0f0f0fu) << (e / 4 * 4);
      four >>= 4;
    }
    if (at.has(2)) {
      pairs[e / 4] |= (four & 0x03030303u) << (e % 4 * 2);
      four >>= 2;
    }
    bits |= (four & 0x01010101u) << e;
  }
  if (at.has(4)) std::memcpy(group + at.nibbles(r, b), nibbles.data(), 16);
  if (at.has(2)) std::memcpy(group + at.pairs(r, b), pairs.data(), 8);
  if (at.has(1)) std::memcpy(group + at.bits(r, b), &bits, 4);
}

/// Packs a scale and a least value of 6 bits each into 24 bits that are 0.
inline void put_six_bits(const std::uint8_t* pair, std::size_t r, std::byte* to) {
  const std::uint32_t bits = static_cast<std::uint32_t>(pair[0] | pair[1] << 6) << 12 * (r % 2);
  for (std::uint32_t i = 0; i < 3; ++i) to[i] |= static_cast<std::byte>(bits >> 8 * i);
}

/// Packs one row of a file, `n` blocks of 32 columns, as row r of a group.
template <class Split>
void put_row(const codecs::device_row& row, std::size_t elements, std::size_t bytes, Split split, const std::byte* from,
             std::size_t n, std::size_t r, std::byte* group) {
  const group_offsets at{row, n};
  const bool six = row.form == codecs::factor_form::six;
  codecs::split_block parts;
  for (std::size_t b = 0; b < n; b += elements / 32, from += bytes) {
    split(reinterpret_cast<const std::uint8_t*>(from), parts);
    for (std::size_t k = 0; k < elements / 32; ++k) {
      put_codes(at, parts.codes.data() + 32 * k, r, b + k, group);
      if (row.factor_bytes() != 0)
        std::memcpy(group + at.factors(r, b + k), parts.factors[k].data(), row.factor_bytes());
      if (six) put_six_bits(parts.factors[k].data(), r, group + at.factors(r, b + k));
    }
    if (row.super_bytes() != 0) std::memcpy(group + at.super(r, b), parts.super.data(), six ? 4 : row.super_bytes());
  }
}
/// Packs a row of a codec with grids. These codecs are many and rarely used, so they share code compiled for size.
[[gnu::cold]] inline void put_row_of_grid(const codecs::device_row& row, codecs::block_splitter split,
                                          const std::byte* from, std::size_t n, std::size_t r, std::byte* group) {
  const dtype_info& file = intaglio::info(row.type);
  put_row(row, file.block_elements, file.block_bytes, split, from, n, r, group);
}
/// Writes row r of a group of four from the n blocks of 32 columns of a checkpoint's row.
template <codecs::block_codec C>
void put_row(const std::byte* from, std::size_t n, std::size_t r, std::byte* group) {
  static constexpr codecs::device_row row = codecs::row_of(C::type);
  if constexpr (requires { C::of_grid; }) put_row_of_grid(row, &C::split, from, n, r, group);
  else
    put_row(
        row, C::elements, C::bytes, [](const std::uint8_t* block, codecs::split_block& to) { C::split(block, to); },
        from, n, r, group);
}

/// A put_row of a codec.
using row_writer = void (*)(const std::byte* from, std::size_t n, std::size_t r, std::byte* group);
/// The function that packs rows of a codec with blocks.
constexpr row_writer row_writer_of(codec type) {
  row_writer out = nullptr;
  codecs::with_codec(info(type).type, [&]<class C>() { out = &put_row<C>; });
  return out;
}

}  // namespace layout

/// Repacks groups [first_group, first_group + output.size() / matmul_group_bytes) of a merged matrix. `rows[t]` is the
/// whole tensor t as in the file, or a window of it from row `first_row[t]` on.
/// @shape  rows[t]: [rows, columns] of `type`
/// @error  argument_error: the codec cannot have this number of columns, or a row is outside its window
inline void repack_matmul(codec type, const row_order& order, std::span<const std::span<const std::byte>> rows,
                          std::uint64_t columns, std::uint64_t first_group, std::span<std::byte> output,
                          std::array<std::uint64_t, 3> first_row = {}) {
  if (columns == 0 || columns % column_step(type) != 0)
    throw argument_error("repack_matmul: columns of " + std::string(info(type).name),
                         "a positive multiple of " + std::to_string(column_step(type)), std::to_string(columns));
  if (rows.size() != order.tensors())
    throw argument_error("repack_matmul: sources", std::to_string(order.tensors()), std::to_string(rows.size()));
  const std::uint64_t group_bytes = matmul_group_bytes(type, columns), row_bytes = file_row_bytes(type, columns),
                      all = (order.rows() + std::uint64_t{3}) / 4;
  const std::uint64_t groups = output.size() / group_bytes;
  if (output.size() % group_bytes != 0 || first_group > all || groups > all - first_group)
    throw argument_error("repack_matmul: output bytes",
                         "whole groups of " + std::to_string(group_bytes) + " bytes inside the matrix",
                         std::to_string(output.size()) + " from group " + std::to_string(first_group));
  const layout::row_writer put_row = layout::row_writer_of(type);
  std::memset(output.data(), 0, output.size());
  for (std::uint64_t group = 0; group < groups; ++group)
    for (std::uint32_t r = 0; r < 4; ++r) {
      const std::uint64_t position = 4 * (first_group + group) + r;
      if (position >= order.rows()) break;
      const source_row from = order(static_cast<std::uint32_t>(position));
      const std::uint64_t begin = first_row[from.tensor], end = begin + rows[from.tensor].size() / row_bytes;
      if (from.row < begin || from.row >= end)
        throw argument_error("repack_matmul: source " + std::to_string(from.tensor), "row " + std::to_string(from.row),
                             "rows " + std::to_string(begin) + " to " + std::to_string(end) + " (exclusive)");
      const std::byte* const source = rows[from.tensor].data() + (from.row - begin) * row_bytes;
      std::byte* const to = output.data() + group * group_bytes;
      if (is_dense(type)) std::memcpy(to + r * group_bytes / 4, source, row_bytes);
      else put_row(source, static_cast<std::size_t>(columns / 32), r, to);
    }
}

}  // namespace intaglio::kernels
