// SPDX-License-Identifier: MIT
// Tiles of products of a few tokens by cooperative matrices, which depend on rows and tokens alone.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// What a workgroup of matmul_few or ternary_few with matrices has: rows, tokens and subgroups of 32, eight of which
/// share 16 to 64 rows.
struct few_tile {
  std::uint32_t rows = 0, tokens = 0, subgroups = 0;
};
/// Whether a product of `tokens` tokens is faster where x is tiled: up to 16, of codecs whose blocks have one factor.
constexpr bool wants_tiles(codec type, std::uint32_t tokens) {
  return has_own_forms(type) && type != codec::q6_k && tokens <= 16;
}
/// Of a product of x that is tiled. Each subgroup has all rows and 32 / subgroups virtual lanes.
constexpr few_tile tiled_few_tile(std::uint32_t tokens) { return {32, tokens <= 8 ? 8u : 16u, 8}; }
/// Tokens of a tile of a pass over a few: what chunks have more of.
inline constexpr std::uint32_t most_few_tokens = 32;
/// Of matmul_chunk over a few tokens, whole tiles of eight, by matrices. A subgroup has 32 rows; those that have the
/// same share the columns, as many whatever the tokens are, so that sums have one order.
constexpr few_tile few_chunk_tile(std::uint32_t rows, std::uint32_t tokens) {
  return {rows < 8192 ? 32u : 64u, tokens % 32 == 0 ? 32u : tokens % 16 == 0 ? 16u : 8u, rows <= 4096 ? 16u : 8u};
}
/// In which order `halves` leaves x: a token's columns as they are; of a few tokens in tiles of eight; as fragments of
/// 16 columns want them where an invocation has an octet of every 32 columns, or a block of every 128
/// (fragment_place).
enum class halves_order : std::uint32_t { rows, tiles, octets, blocks };
constexpr halves_order fragment_order(codec type) {
  return type == codec::f16 || type == codec::f32 || type == codec::bf16 ? halves_order::octets : halves_order::blocks;
}
/// Place of what stands at `place` of a token's row, 32-bit pairs of columns of each four in the order 0, 2 and 1, 3,
/// in these orders: [fragments, 2 pairs of an invocation's four columns, 4 invocations, 2 columns].
constexpr std::size_t fragment_place(halves_order order, std::size_t place) {
  const std::size_t quad = place / 4;
  const std::size_t fragment = order == halves_order::octets ? quad / 8 * 2 + quad % 2 : quad / 32 * 8 + quad % 8,
                    invocation = order == halves_order::octets ? quad / 2 % 4 : quad / 8 % 4;
  return fragment * 16 + place % 4 / 2 * 8 + invocation * 2 + place % 2;
}
/// Rows of a matrix that the product by fragments is for, at least: those of a tile.
inline constexpr std::uint32_t least_fragment_rows = 128;
constexpr bool takes_fragments(codec type, std::uint32_t rows, std::uint32_t columns) {
  return rows >= least_fragment_rows && columns % (fragment_order(type) == halves_order::octets ? 64 : 128) == 0;
}
/// Tile of matmul_chunk by fragments, over `tokens` tokens: what was fastest on an H100 of 132 processors
/// (docs/lab/prompt_products.md). Every element is one sum whose order depends on the matrix alone.
constexpr few_tile fragment_tile(codec type, std::uint32_t rows, std::uint32_t tokens) {
  const auto tiles = [&](std::uint64_t of_rows, std::uint64_t of_tokens) {
    return (rows + of_rows - 1) / of_rows * ((tokens + of_tokens - 1) / of_tokens);
  };
  constexpr std::uint64_t processors = 132;
  const bool octets = fragment_order(type) == halves_order::octets;
  if (octets && rows >= 256 && 3 * tiles(256, 128) >= 2 * processors) return {256, 128, 8};
  if (!octets && tiles(128, 128) >= 2 * processors) return {128, 128, 4};
  if (rows >= 256 && tiles(256, 64) <= processors) return {256, 64, 8};
  return {128, 64, 4};
}
/// Tile of any other product over `tokens` tokens; none where dot products are as fast.
constexpr few_tile few_matrix_tile(kernel which, std::uint32_t rows, std::uint32_t tokens) {
  if (tokens <= 8) return {};
  if (which == kernel::ternary_few) return {rows < 8192 ? 16u : 32u, 32, 8};
  if (tokens <= 16) return {32, 16, 8};
  return {32, 32, 16};
}

}  // namespace intaglio::kernels
