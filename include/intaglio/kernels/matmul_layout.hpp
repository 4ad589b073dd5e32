// SPDX-License-Identifier: MIT
// From rows of a checkpoint to the groups of four rows that `matmul` reads, so that neighbouring lanes, a block of
// columns each, read neighbouring 16 bytes. Nothing is rounded: a group holds what the file's blocks hold.
//
// f32, f16, bf16: rows behind each other, each filled with zeros up to a multiple of 8 columns; the last group with
// rows of zeros. Blocks of 32 columns, b of n: parts behind each other, the group filled up to 16 bytes. "Nibbles" are
// 16 bytes, byte j with column j in its lower and column j + 16 in its upper half.
//   q8_0  int8 [4 rows, 2 halves of a block, n, 16], f16 d [n, 4 rows]
//   q4_0  nibbles [4 rows, n], f16 d [n, 4 rows]
//   q4_1  nibbles [4 rows, n], f16 {d, m} [n, 4 rows]
//   q4_k  nibbles [4 rows, n], the 16 bytes {f16 d, f16 dmin, 6-bit scales and minima} of each 8 blocks [4 rows, n / 8]
//   q6_k  lower nibbles [4 rows, n], upper bits [4 rows, n] of 8 bytes (bits 2e+1..2e of byte 4h + k: column 16h + 4e +
//   k),
//         int8 scales of 16 columns [n, 4 rows, 2], f16 d [n / 8, 4 rows]
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/row_order.hpp"

namespace intaglio::kernels {

/// How a codec's rows lie in a file: `bytes` for `elements` neighbours; and in a group: bytes for 32 columns of its
/// four rows, and for each 256.
struct codec_info {
  std::string_view name;
  std::uint32_t block_elements, block_bytes;
  std::uint32_t group_block_bytes, group_super_bytes;
};
inline constexpr codec_info codec_table[] = {
    {"f16", 1, 2, 0, 0},     {"f32", 1, 4, 0, 0},     {"bf16", 1, 2, 0, 0},       {"q8_0", 32, 34, 136, 0},
    {"q4_0", 32, 18, 72, 0}, {"q4_1", 32, 20, 80, 0}, {"q4_k", 256, 144, 64, 64}, {"q6_k", 256, 210, 104, 8},
};
constexpr const codec_info& info(codec type) { return codec_table[static_cast<std::size_t>(type)]; }
constexpr bool is_dense(codec type) { return info(type).block_elements == 1; }

/// Columns that a matrix of the codec may have: a multiple of this.
constexpr std::uint32_t column_step(codec type) { return is_dense(type) ? 4 : info(type).block_elements; }

constexpr std::uint64_t file_row_bytes(codec type, std::uint64_t columns) {
  return columns / info(type).block_elements * info(type).block_bytes;
}
/// Bytes of four rows.
constexpr std::uint64_t matmul_group_bytes(codec type, std::uint64_t columns) {
  if (is_dense(type)) return 4 * info(type).block_bytes * ((columns + 7) / 8 * 8);
  return (columns / 32 * info(type).group_block_bytes + columns / 256 * info(type).group_super_bytes + 15) / 16 * 16;
}
constexpr std::uint64_t matmul_weight_bytes(codec type, std::uint64_t rows, std::uint64_t columns) {
  return (rows + 3) / 4 * matmul_group_bytes(type, columns);
}

namespace layout {

/// Column 0 .. 31 of nibbles.
inline std::uint8_t nibble(const std::byte* block, std::uint32_t column) {
  return static_cast<std::uint8_t>(std::to_integer<unsigned>(block[column % 16]) >> (column / 16 * 4) & 15u);
}

/// 6-bit codes of a file's Q6_K block of 256, in order.
inline void q6_k_codes(const std::byte* from, std::array<std::uint8_t, 256>& codes) {
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(from[at]); };
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t l = 0; l < 32; ++l)
      for (std::size_t part = 0; part < 4; ++part) {
        const unsigned low = byte(64 * half + l + 32 * (part % 2)) >> (part / 2 * 4) & 15u,
                       high = byte(128 + 32 * half + l) >> (2 * part) & 3u;
        codes[128 * half + 32 * part + l] = static_cast<std::uint8_t>(low | high << 4);
      }
}

/// One row of a file, `n` blocks of 32 columns, into place r of a group.
inline void put_row(codec type, const std::byte* from, std::size_t n, std::size_t r, std::byte* group) {
  const codec_info& file = info(type);
  switch (type) {
    case codec::q8_0:
      for (std::size_t b = 0; b < n; ++b, from += file.block_bytes) {
        std::memcpy(group + 128 * n + 8 * b + 2 * r, from, 2);
        for (std::size_t half = 0; half < 2; ++half)
          std::memcpy(group + ((2 * r + half) * n + b) * 16, from + 2 + 16 * half, 16);
      }
      break;
    case codec::q4_0:
    case codec::q4_1: {
      const std::size_t head = type == codec::q4_0 ? 2 : 4;
      for (std::size_t b = 0; b < n; ++b, from += file.block_bytes) {
        std::memcpy(group + 64 * n + 4 * head * b + head * r, from, head);
        std::memcpy(group + (r * n + b) * 16, from + head, 16);
      }
      break;
    }
    case codec::q4_k:
      for (std::size_t super = 0; super < n / 8; ++super, from += file.block_bytes) {
        std::memcpy(group + 64 * n + (r * (n / 8) + super) * 16, from, 16);
        for (std::size_t k = 0; k < 4; ++k)
          for (std::size_t j = 0; j < 16; ++j) {
            const unsigned first = std::to_integer<unsigned>(from[16 + 32 * k + j]),
                           second = std::to_integer<unsigned>(from[32 + 32 * k + j]);
            std::byte* const block = group + (r * n + 8 * super + 2 * k) * 16;
            block[j] = static_cast<std::byte>((first & 15u) | (second & 15u) << 4);
            block[16 + j] = static_cast<std::byte>(first >> 4 | (second >> 4) << 4);
          }
      }
      break;
    case codec::q6_k:
      for (std::size_t super = 0; super < n / 8; ++super, from += file.block_bytes) {
        std::array<std::uint8_t, 256> codes{};
        q6_k_codes(from, codes);
        std::memcpy(group + 104 * n + 8 * super + 2 * r, from + 208, 2);
        for (std::size_t k = 0; k < 8; ++k) {
          const std::size_t b = 8 * super + k;
          const std::uint8_t* const code = codes.data() + 32 * k;
          std::memcpy(group + 96 * n + 8 * b + 2 * r, from + 192 + 2 * k, 2);
          for (std::size_t j = 0; j < 16; ++j)
            group[(r * n + b) * 16 + j] = static_cast<std::byte>((code[j] & 15u) | (code[j + 16] & 15u) << 4);
          for (std::size_t j = 0; j < 8; ++j) {
            unsigned bits = 0;
            for (std::size_t e = 0; e < 4; ++e)
              bits |= static_cast<unsigned>(code[16 * (j / 4) + 4 * e + j % 4] >> 4) << (2 * e);
            group[64 * n + (r * n + b) * 8 + j] = static_cast<std::byte>(bits);
          }
        }
      }
      break;
    case codec::f16:
    case codec::f32:
    case codec::bf16:
      break;
  }
}

}  // namespace layout

/// Groups [first_group, first_group + output.size() / matmul_group_bytes) of a merged matrix. `rows[t]` is the whole
/// tensor t as the file has it, or a window of it that begins at row `first_row[t]`.
/// @shape  rows[t]: [rows, columns] of `type`
/// @error  argument_error: columns that the codec cannot have, a row outside its window
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
      else layout::put_row(type, source, columns / 32, r, to);
    }
}

}  // namespace intaglio::kernels
