// SPDX-License-Identifier: MIT
// The kernel ternary_chunk: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/batch_tile.hpp"
#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// ternary_matmul with prologue::quantized for up to max_tokens tokens. Workgroup (x, y) has tile_rows rows and
/// tile_tokens tokens. The module for fragments (ternary_fragment_tile) needs subgroups of 32, columns in multiples of
/// chunk_columns, tile_tokens of 16 up to 128, tile_rows in multiples of 32, and a subgroup for each 32 rows of each
/// part of the columns; parts have the same number of steps.
inline constexpr kernel_interface ternary_chunk_interface{
    "ternary_chunk",
    {{{"input"}, {"factors"}, {"weight"}, {"scales"}, {"output"}, {"state"}, {"keys"}, {"values"}}},
    {{{"workgroup_size"},
      {"columns"},
      {"rows"},
      {"epilogue"},
      {"tile_rows"},
      {"tile_tokens"},
      {"head_dim"},
      {"q_size"},
      {"kv_size"},
      {"context"},
      {"rope_theta", field_type::f32},
      {"cache_element"},
      {"max_tokens"}}}};
/// The columns of ternary_chunk and of matmul_chunk are a multiple of this number.
inline constexpr std::uint32_t chunk_columns = 64;

/// Descriptor of the kernel ternary_chunk, which multiplies a prompt's int8 tokens by ternary weights.
struct ternary_chunk_kernel {
  static constexpr kernel id = kernel::ternary_chunk;
  static constexpr const kernel_interface& face = ternary_chunk_interface;
  static constexpr std::uint32_t proof_tokens = 18;
  static constexpr candidate candidates[] = {{variant::ternary_chunk_fragments, demand::int8_fragments},
                                             {variant::ternary_chunk, demand::narrow_loads | demand::integer_dot},
                                             {variant::ternary_chunk_portable, {}}};
  template <class T>
  struct push {
    T input, factors, weight, scales, output, state, keys, values;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::epilogue epilogue{};
    std::uint32_t tile_rows{};
    std::uint32_t tile_tokens{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    float rope_theta{};
    element cache_element{};
    std::uint32_t max_tokens{};
  };

  static constexpr variant fit(constants& c, launch& of, const device_class& device, const pass_rows&) {
    demands offers = device.offers();
    if (c.rows < fragment_rows) offers.bits &= ~static_cast<std::uint32_t>(demand::int8_fragments);
    const variant out = first_candidate<ternary_chunk_kernel>(offers);
    if (out != variant::ternary_chunk_fragments) return out;
    const batch_tile by = ternary_fragment_tile(c.rows, c.columns, c.max_tokens);
    of.groups = {(c.rows + by.rows - 1) / by.rows, (c.max_tokens + by.tokens - 1) / by.tokens, 1};
    of.subgroups = by.subgroups;
    c.tile_rows = by.rows, c.tile_tokens = by.tokens;
    return out;
  }
};

}  // namespace intaglio::kernels
