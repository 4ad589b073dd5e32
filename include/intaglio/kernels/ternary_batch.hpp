// SPDX-License-Identifier: MIT
// The kernel ternary_batch: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// ternary_matmul with prologue::quantized for a small batch, in tiles of up to 8 tokens. A workgroup has a group of 4
/// rows at a time (tile_rows), and grid x strides over the groups. With matrices there is one workgroup for each
/// batch_tile, and columns are in plain order.
inline constexpr kernel_interface ternary_batch_interface{
    "ternary_batch",
    {{{"input"}, {"factors"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"epilogue"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"},
      {"tile_rows"}}}};

/// Descriptor of the kernel ternary_batch, which multiplies the int8 tokens of a small batch by ternary weights.
struct ternary_batch_kernel {
  static constexpr kernel id = kernel::ternary_batch;
  static constexpr const kernel_interface& face = ternary_batch_interface;
  static constexpr candidate candidates[] = {{variant::ternary_batch_matrix, demand::narrow_int8},
                                             {variant::ternary_batch, demand::narrow_loads | demand::integer_dot},
                                             {variant::ternary_batch_portable, {}}};
  template <class T>
  struct push {
    T input, factors, weight, scales, output, state, keys, values;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::epilogue epilogue{};
    std::uint32_t tile_tokens{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    float rope_theta{};
    element cache_element{};
    std::uint32_t subgroup_width{};
    std::uint32_t slot_words{};
    std::uint32_t page_size{};
    std::uint32_t tile_rows{};
  };

  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows& pass) {
    const demands offers = device.offers();
    const std::uint32_t tokens = pass.tokens(of.groups[1] * c.tile_tokens);
    const batch_tile by = offers.has(demand::narrow_int8) ? batch_matrix_tile(id, c.rows, tokens) : batch_tile{};
    if (by.rows == 0) {
      of.groups[1] = pass.share(of.groups[1]);
      return offers.has(candidates[1].needs) ? candidates[1].which : candidates[2].which;
    }
    of.groups = {(c.rows + by.rows - 1) / by.rows, (tokens + by.tokens - 1) / by.tokens, 1};
    of.subgroups = by.subgroups;
    c.tile_rows = by.rows, c.tile_tokens = by.tokens;
    return variant::ternary_batch_matrix;
  }
};

}  // namespace intaglio::kernels
