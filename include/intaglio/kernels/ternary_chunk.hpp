// SPDX-License-Identifier: MIT
// The kernel ternary_chunk: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// ternary_matmul with prologue::quantized for up to max_tokens tokens: workgroup (x, y) has tile_rows rows and
/// tile_tokens tokens. The module for cooperative matrices wants subgroups of 32, columns that are a multiple of
/// chunk_columns, tile_tokens of 32, and of tile_rows 16, 32, 48 or 64 for each of the workgroup's subgroups /
/// (tile_tokens / 32).
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
inline constexpr std::uint32_t chunk_columns = 64;

struct ternary_chunk_kernel {
  static constexpr kernel id = kernel::ternary_chunk;
  static constexpr const kernel_interface& face = ternary_chunk_interface;
  static constexpr candidate candidates[] = {{variant::ternary_chunk_matrix, demand::int8_matrices},
                                             {variant::ternary_chunk, demand::narrow_loads | demand::integer_dot},
                                             {variant::ternary_chunk_portable, {}}};
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
};

}  // namespace intaglio::kernels
