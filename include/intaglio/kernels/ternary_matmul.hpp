// SPDX-License-Identifier: MIT
// The kernel ternary_matmul: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The product of ternary weights:
/// y[token, row] = scale(row) / s(token) * sum over columns of code[row, column] * q[token, column].
/// weight: 2-bit codes 0, 1, 2 for -1, 0, +1 in tiles of 4 rows x 16 columns, one uvec4 a tile at [row_group * tiles +
/// tile], tiles = columns / 16; word r of the uvec4 is row r of the group; bits 2f+1..2f of byte b (f, b in 0..3) hold
/// column 4f + b of the tile. Row order is the plan's (weight_layout): for rope_cache a group holds rows p, p +
/// head_dim/2, p+1, p+1 + head_dim/2 of one head, heads of q first, then of k, then of v; for gated a group holds gate
/// 2g, up 2g, gate 2g+1, up 2g+1. scales f32: one (store, add), {q, k, v} (rope_cache), {gate, up} (gated). x: grid x
/// strides over row groups, grid y over tiles of tile_tokens tokens. keys, values: this layer's cache of cache_element
/// (kernels/cache_layout.hpp), written at state.position + token. rope: NeoX pairs (i, i + head_dim/2).
inline constexpr kernel_interface ternary_matmul_interface{
    "ternary_matmul",
    {{{"input"}, {"norm_weight"}, {"factors"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"prologue"},
      {"epilogue"},
      {"eps", field_type::f32},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"subgroup_width"},
      {"slot_words"},
      {"page_size"}}}};

/// Descriptor of the kernel ternary_matmul, which multiplies int8 tokens by ternary weights.
struct ternary_matmul_kernel {
  static constexpr kernel id = kernel::ternary_matmul;
  static constexpr const kernel_interface& face = ternary_matmul_interface;
  static constexpr candidate candidates[] = {{variant::ternary_matmul_cpu, demand::wide_loads},
                                             {variant::ternary_matmul, demand::integer_dot},
                                             {variant::ternary_matmul_portable, {}}};
  template <class T>
  struct push {
    T input, norm_weight, factors, weight, scales, output, state, keys, values;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::prologue prologue{};
    kernels::epilogue epilogue{};
    float eps{};
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
  };
  static constexpr rounding rounds(const constants& c) {
    return quantizes(c.prologue) ? rounding::int8 : rounding::none;
  }
  static constexpr bool shares_rows(const constants& c) { return c.tile_tokens == 1; }
};

}  // namespace intaglio::kernels
