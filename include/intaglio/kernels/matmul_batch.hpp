// SPDX-License-Identifier: MIT
// The kernel matmul_batch: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The product of the kernel matmul for a small batch of tokens, with the same bits, on inputs that `fixed` prepared,
/// for codecs of blocks. rows: a multiple of 4. A workgroup has tile_rows rows, 4 for each subgroup.
/// Grid x strides over the rows, grid y over tiles of up to 8 tokens. With matrices (batch_matrix_tile,
/// tiled_batch_tile) there is one workgroup for each tile of 16 to 64 rows and 8, 16 or 32 tokens.
/// Experts: experts_used above 0 works as in matmul with tile_tokens above 1. `tiles` has lists of list_tokens rows
/// from expert_tiles. Every workgroup takes tile_tokens rows of a list, so there are list_tokens / tile_tokens
/// workgroups (y) for each list.
inline constexpr kernel_interface matmul_batch_interface{
    "matmul_batch",
    {{{"input"}, {"weight"}, {"output"}, {"state"}, {"keys"}, {"values"}, {"rope"}, {"tiles"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"codec"},
      {"epilogue"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"},
      {"tile_rows"},
      {"experts_used"},
      {"own_input"},
      {"list_tokens"},
      {"ring"}}}};

/// Descriptor of the kernel matmul_batch, which multiplies the tokens of a small batch by coded weights.
struct matmul_batch_kernel {
  static constexpr kernel id = kernel::matmul_batch;
  static constexpr const kernel_interface& face = matmul_batch_interface;
  static constexpr candidate candidates[] = {{variant::matmul_batch_tiled, demand::narrow_int8},
                                             {variant::matmul_batch_matrix, demand::narrow_int8},
                                             {variant::matmul_batch, demand::narrow_loads | demand::integer_dot},
                                             {variant::matmul_batch_portable, {}}};
  template <class T>
  struct push {
    T input, weight, output, state, keys, values, rope, tiles;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec codec{};
    kernels::epilogue epilogue{};
    std::uint32_t tile_tokens{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t tile_rows{};
    std::uint32_t experts_used{};
    std::uint32_t own_input{};
    std::uint32_t list_tokens{};
    std::uint32_t ring{};
  };
  static constexpr rounding rounds(const constants& c) {
    return c.epilogue == kernels::epilogue::rope_cache ? rounding::cache : rounding::none;
  }

  /// The most lists of expert_tiles in a pass, if the sequence has `all` lists.
  static constexpr std::uint32_t lists(const constants& c, std::uint32_t all, const pass_rows& pass) {
    const std::uint32_t most = pass.rows * c.experts_used;
    return pass.rows == 0 || all < most ? all : most;
  }
  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    const demands offers = device.offers();
    const bool listed = c.experts_used != 0;
    if (c.tile_tokens == 8 && !device.is_cpu && !device.mixed_dot && !offers.has(demand::narrow_int8)) {
      c.tile_tokens = 4;  // a product of signed codes and unsigned x then takes many instructions and registers
      of.groups[1] *= 2;
    }
    const std::uint32_t room = of.groups[1] * c.tile_tokens, tokens = pass.tokens(room),
                        parts = listed ? c.list_tokens / c.tile_tokens : 1;
    const bool tiled = offers.has(demand::narrow_int8) && !listed && room % 8 == 0 && wants_tiles(c.codec, tokens);
    batch_tile by;
    if (tiled) by = tiled_batch_tile(tokens);
    else if (offers.has(demand::narrow_int8) && has_own_forms(c.codec))
      by = batch_matrix_tile(id, c.rows, listed ? c.list_tokens : tokens);
    if (listed && by.tokens != 0 && c.list_tokens % by.tokens != 0) by = {};
    if (by.rows == 0) {
      of.groups[1] = listed ? lists(c, of.groups[1] / parts, pass) * parts : pass.share(of.groups[1]);
      return offers.has(candidates[2].needs) ? candidates[2].which : candidates[3].which;
    }
    of.groups = {(c.rows + by.rows - 1) / by.rows,
                 listed ? lists(c, of.groups[1] / parts, pass) * (c.list_tokens / by.tokens)
                        : (tokens + by.tokens - 1) / by.tokens,
                 1};
    of.subgroups = by.subgroups;
    c.tile_rows = by.rows, c.tile_tokens = by.tokens;
    return tiled ? variant::matmul_batch_tiled : variant::matmul_batch_matrix;
  }
};

}  // namespace intaglio::kernels
