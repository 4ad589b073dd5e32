// SPDX-License-Identifier: MIT
// Tiles of products of a small batch of tokens by cooperative matrices. They depend only on the rows and tokens.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// The part of a product that a workgroup of matmul_batch or ternary_batch with matrices computes: rows, tokens, and
/// subgroups of 32. Eight subgroups share 16 to 64 rows.
struct batch_tile {
  std::uint32_t rows = 0, tokens = 0, subgroups = 0;
};
/// Whether a product of `tokens` tokens is faster with x in tiles: up to 16 tokens, for codecs with one factor a block.
constexpr bool wants_tiles(codec type, std::uint32_t tokens) {
  return has_own_forms(type) && type != codec::q6_k && tokens <= 16;
}
/// The tile of a product with x in tiles. Each subgroup has all rows and 32 / subgroups virtual lanes.
constexpr batch_tile tiled_batch_tile(std::uint32_t tokens) { return {32, tokens <= 8 ? 8u : 16u, 8}; }
/// The most tokens of a tile in a pass over a small batch; tiles of chunks have more.
inline constexpr std::uint32_t most_batch_tokens = 32;
/// The tile of matmul_chunk over a small batch of tokens, in whole tiles of eight, by matrices. A subgroup has 32 rows.
/// Subgroups with the same rows split the columns; their number does not depend on the tokens, so that sums have one
/// order.
constexpr batch_tile batch_chunk_tile(std::uint32_t rows, std::uint32_t tokens) {
  return {rows < 8192 ? 32u : 64u, tokens % 32 == 0 ? 32u : tokens % 16 == 0 ? 16u : 8u, rows <= 4096 ? 16u : 8u};
}
/// The order in which `quantize_f16` writes x. rows: a token's columns in order. tiles: tiles of eight tokens, for a
/// small batch. octets, blocks: the order in which products load fragments of 16 columns (fragment_index): an
/// invocation has an octet of every 32 columns, or a block of every 128. tiles_or_octets, tiles_or_blocks: only in
/// plans of batches; tiles in passes over a few rows, else octets or blocks.
enum class f16_order : std::uint32_t { rows, tiles, octets, blocks, tiles_or_octets, tiles_or_blocks };
/// The order of x in which products with weights of this codec load fragments.
constexpr f16_order fragment_order(codec type) {
  return type == codec::f16 || type == codec::f32 || type == codec::bf16 ? f16_order::octets : f16_order::blocks;
}
/// Index in the order `octets` or `blocks` of the element at index `index` of a token's row. Pairs of columns of each
/// four are already in the order 0, 2 and 1, 3. The result's order is [fragments, 2 pairs of an invocation's four
/// columns, 4 invocations, 2 columns].
constexpr std::size_t fragment_index(f16_order order, std::size_t index) {
  const std::size_t quad = index / 4;
  const std::size_t fragment = order == f16_order::octets ? quad / 8 * 2 + quad % 2 : quad / 32 * 8 + quad % 8,
                    invocation = order == f16_order::octets ? quad / 2 % 4 : quad / 8 % 4;
  return fragment * 16 + index % 4 / 2 * 8 + invocation * 2 + index % 2;
}
/// The fewest rows of a matrix for products by fragments: the rows of a tile.
inline constexpr std::uint32_t least_fragment_rows = 128;
/// Whether the modules for fragments can multiply by a matrix [rows, columns] of this codec.
constexpr bool takes_fragments(codec type, std::uint32_t rows, std::uint32_t columns) {
  return rows >= least_fragment_rows && columns % (fragment_order(type) == f16_order::octets ? 64 : 128) == 0;
}
/// Rows of a subgroup in products by fragments, and the number of processors for which their tiles were chosen: the
/// fastest on an H100 (docs/lab/prompt_products.md).
inline constexpr std::uint32_t fragment_rows = 32, fragment_processors = 132;
/// Rows times tokens of the processor with the most tiles, where tiles are distributed evenly.
constexpr std::uint64_t tiled_work(const batch_tile& by, std::uint32_t rows, std::uint32_t tokens) {
  const std::uint64_t tiles = std::uint64_t{(rows + by.rows - 1) / by.rows} * ((tokens + by.tokens - 1) / by.tokens);
  return (tiles + fragment_processors - 1) / fragment_processors * by.rows * by.tokens;
}
/// The tile of 64 tokens with the least work, with `least` to `most` rows in steps of `step`; among equal ones the
/// widest.
constexpr batch_tile narrow_fragment_tile(std::uint32_t least, std::uint32_t most, std::uint32_t step,
                                          std::uint32_t parts, std::uint32_t rows, std::uint32_t tokens) {
  batch_tile out{};
  for (std::uint32_t of = (std::min)(least, rows); of <= (std::min)(most, rows); of += step) {
    const std::uint32_t subgroups = of / fragment_rows;
    const batch_tile each{subgroups * fragment_rows, subgroups < 2 ? 32u : 64u, parts * subgroups};
    if (out.rows == 0 || tiled_work(each, rows, tokens) <= tiled_work(out, rows, tokens)) out = each;
  }
  return out;
}
/// Whether converting codes to f16 takes few instructions, so that there are registers for tiles of 192 rows.
constexpr bool has_simple_codes(codec type) { return fragment_order(type) == f16_order::octets || type == codec::q4_0; }
/// Number of parts into which products by fragments split the columns; the parts' sums are added. Where a chunk of 512
/// tokens has at most one tile for each processor, a second subgroup for the same rows keeps the processor busy. The
/// number does not depend on the tokens, so that sums have one order.
constexpr std::uint32_t fragment_parts(std::uint32_t rows, std::uint32_t columns) {
  return rows <= fragment_processors / 8 * 192 && columns % 256 == 0 ? 2 : 1;
}
/// Tile of matmul_chunk by fragments, over `tokens` tokens.
constexpr batch_tile fragment_tile(codec type, std::uint32_t rows, std::uint32_t columns, std::uint32_t tokens) {
  const std::uint32_t parts = fragment_parts(rows, columns), most = has_simple_codes(type) ? 192u : 128u;
  const batch_tile narrow = narrow_fragment_tile(least_fragment_rows, most, parts == 1 ? 64 : 32, parts, rows, tokens);
  constexpr batch_tile wide{128, 128, 4};  // a tenth faster where each processor has two tiles
  constexpr batch_tile tall{256, 64, 8};   // for codecs with many instructions: one wide workgroup
  if (!has_simple_codes(type) && parts == 1 && rows >= tall.rows &&
      tiled_work(tall, rows, tokens) == std::uint64_t{tall.rows} * tall.tokens)
    return tall;
  const std::uint64_t work = tiled_work(wide, rows, tokens);
  return parts == 1 && work >= std::uint64_t{2} * wide.rows * wide.tokens &&
                 9 * work <= 10 * tiled_work(narrow, rows, tokens)
             ? wide
             : narrow;
}
/// Number of parts of the columns in passes over many rows of a batch. Weights are read once for all rows, so the
/// number of subgroups that read at once matters most.
constexpr std::uint32_t batch_fragment_parts(std::uint32_t rows, std::uint32_t columns) {
  return rows >= 8192 || columns % 256 != 0 ? 1 : columns % 512 != 0 ? 2 : 4;
}
/// The tile of matmul_chunk by fragments in passes over `tokens` rows of a batch. Its parts depend only on the matrix,
/// so that sums have one order for any number of rows.
constexpr batch_tile batch_fragment_tile(codec type, std::uint32_t rows, std::uint32_t columns, std::uint32_t tokens) {
  const std::uint32_t parts = batch_fragment_parts(rows, columns);
  return parts == 1   ? fragment_tile(type, rows, columns, tokens)
         : parts == 2 ? batch_tile{64, 64, 4}
                      : batch_tile{64, 32, 8};
}
/// The tile of ternary_chunk by fragments. Sums are integers, so no bit depends on the tile.
constexpr batch_tile ternary_fragment_tile(std::uint32_t rows, std::uint32_t columns, std::uint32_t tokens) {
  const std::uint32_t steps = columns / (columns % 128 == 0 ? 128 : 64);
  const batch_tile alone = narrow_fragment_tile(64, 256, 32, steps % 2 == 0 ? 2 : 1, rows, tokens);
  if (rows < 128 || tiled_work(alone, rows, tokens) <= std::uint64_t{alone.rows} * alone.tokens) return alone;
  const batch_tile wide{rows < 256 ? 128u : 256u, 128, rows < 256 ? 4u : 8u},
      narrow = narrow_fragment_tile(128, 128, 32, 1, rows, tokens);
  return 8 * tiled_work(wide, rows, tokens) <= 10 * tiled_work(narrow, rows, tokens) ? wide : narrow;
}
/// The tile of any other product over `tokens` tokens; empty where dot products are as fast.
constexpr batch_tile batch_matrix_tile(kernel which, std::uint32_t rows, std::uint32_t tokens) {
  if (tokens <= 8) return {};
  if (which == kernel::ternary_batch) return {rows < 8192 ? 16u : 32u, 32, 8};
  if (tokens <= 16) return {32, 16, 8};
  return {32, 32, 16};
}

}  // namespace intaglio::kernels
