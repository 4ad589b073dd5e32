// SPDX-License-Identifier: MIT
// The kernel matmul_chunk: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstdint>

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The product of the kernel matmul for up to max_tokens tokens in f16 arithmetic, on inputs that quantize_f16
/// prepared. Weights are rounded to f16, products are summed in f32 (docs/kernels.md). Workgroup (x, y) has tile_tokens
/// tokens and tile_rows rows. columns: a multiple of chunk_columns; rows: a multiple of 4.
/// The module for cooperative matrices needs an even number of subgroups of 32, tile_tokens of 32, 64, 96 or 128, and
/// tile_rows of 16, 32, 48 or 64 for every two subgroups. The module for passes over a small batch (batch_chunk_tile)
/// reads tiled f16; the order of its sums does not depend on the number of tokens.
/// The module for fragments (fragment_tile) needs subgroups of 32, at least least_fragment_rows rows, and f16 in the
/// codec's fragment_order. Its tile_rows are 32 for each subgroup, or for each set of subgroups of which every one has
/// a part of the columns. A part has an even number of steps of 64, and there are at most as many tokens as a part has
/// invocations.
/// Experts: with experts_used above 0, weight is as in matmul. The input is in the order of the lists of list_tokens
/// tokens in `tiles` (quantize_f16), and so is grid x; list_tokens is a multiple of tile_tokens, and max_tokens is the
/// number of rows of all lists. The output row has the pair's index. The epilogue is store or gated.
inline constexpr kernel_interface matmul_chunk_interface{
    "matmul_chunk",
    {{{"input"}, {"factors"}, {"weight"}, {"output"}, {"state"}, {"keys"}, {"values"}, {"rope"}, {"tiles"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"codec"},
      {"epilogue"},
      {"tile_rows"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"ring"},
      {"cache_element"},
      {"max_tokens"},
      {"slot_words"},
      {"page_size"},
      {"experts_used"},
      {"list_tokens"}}}};

/// Descriptor of the kernel matmul_chunk, which multiplies a prompt's tokens by coded weights in f16.
struct matmul_chunk_kernel {
  static constexpr kernel id = kernel::matmul_chunk;
  static constexpr const kernel_interface& face = matmul_chunk_interface;
  static constexpr std::uint32_t proof_tokens = 18;
  static constexpr candidate candidates[] = {{variant::matmul_chunk_fragments, demand::f16_fragments},
                                             {variant::matmul_chunk_batch, demand::narrow_f16},
                                             {variant::matmul_chunk_matrix, demand::f16_matrices},
                                             {variant::matmul_chunk, {}}};
  template <class T>
  struct push {
    T input, factors, weight, output, state, keys, values, rope, tiles;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec codec{};
    kernels::epilogue epilogue{};
    std::uint32_t tile_rows{};
    std::uint32_t tile_tokens{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    std::uint32_t ring{};
    element cache_element{};
    std::uint32_t max_tokens{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t experts_used{};
    std::uint32_t list_tokens{};
  };
  static constexpr rounding rounds(const constants&) { return rounding::f16; }

  /// Whether it reads x in tiles, as `quantize_f16` then writes it: in passes over a small batch.
  static constexpr bool takes_tiles(const constants& c, demands offers) {
    return offers.has(demand::narrow_f16) && c.tile_tokens <= most_batch_tokens && c.max_tokens % 8 == 0;
  }
  /// Whether it multiplies by fragments: in chunks, and in passes over many rows of a batch.
  static constexpr bool takes_tokens_by_fragments(const constants& c, demands offers, std::uint32_t tokens) {
    return offers.has(demand::f16_fragments) && takes_fragments(c.codec, c.rows, c.columns) &&
           (has_large_batch(c) ? tokens : c.tile_tokens) > most_batch_tokens;
  }
  /// Whether its batch has more slots than tiles of a small batch have tokens.
  static constexpr bool has_large_batch(const constants& c) {
    return c.slot_words != 0 && c.max_tokens > most_batch_tokens;
  }
  /// Fits the kernel to lists of experts. A tile belongs to one list, and the grid has the tiles that the pass can
  /// fill.
  static constexpr variant fit_lists(constants& c, launch& of, demands offers, const pass_rows& pass) {
    const bool fragments = offers.has(demand::f16_fragments) && takes_fragments(c.codec, c.rows, c.columns);
    if (fragments) {
      c.tile_rows = 128, of.subgroups = 4;
      of.groups[1] = (c.rows + 127) / 128;
    }
    const std::uint32_t parts = c.list_tokens / c.tile_tokens;
    if (pass.rows != 0) of.groups[0] = (std::min)(of.groups[0], pass.rows * c.experts_used * parts);
    return fragments                          ? variant::matmul_chunk_fragments
           : offers.has(demand::f16_matrices) ? variant::matmul_chunk_matrix
                                              : variant::matmul_chunk;
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    const demands offers = device.offers();
    if (c.experts_used != 0) return fit_lists(c, of, offers, pass);
    const auto in_tiles = [&](const batch_tile& by, std::uint32_t tokens) {
      of.groups = {(tokens + by.tokens - 1) / by.tokens, (c.rows + by.rows - 1) / by.rows, 1};
      of.subgroups = by.subgroups;
      c.tile_rows = by.rows, c.tile_tokens = by.tokens;
    };
    const std::uint32_t tokens = pass.tokens(c.max_tokens);
    if (takes_tokens_by_fragments(c, offers, tokens)) {
      if (has_large_batch(c)) in_tiles(batch_fragment_tile(c.codec, c.rows, c.columns, tokens), tokens);
      else in_tiles(fragment_tile(c.codec, c.rows, c.columns, c.max_tokens), c.max_tokens);
      return variant::matmul_chunk_fragments;
    }
    if (!takes_tiles(c, offers)) {
      of.groups[0] = pass.share(of.groups[0]);                      // grid x is tokens
      const bool small_batch = c.tile_tokens <= most_batch_tokens;  // the module with matrices has wider tiles
      return !small_batch && offers.has(demand::f16_matrices) ? variant::matmul_chunk_matrix : variant::matmul_chunk;
    }
    in_tiles(batch_chunk_tile(c.rows, tokens), tokens);
    return variant::matmul_chunk_batch;
  }
};

}  // namespace intaglio::kernels
