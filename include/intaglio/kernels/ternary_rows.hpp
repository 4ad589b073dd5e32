// SPDX-License-Identifier: MIT
// The kernel ternary_rows: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// ternary_matmul with prologue::quantized of one token for CPU drivers, unrolled. Workgroup x has groups_together
/// groups of 4 rows, 1 or 2, from group x * groups_together on. columns: a multiple of 64; ternary_rows_columns bounds
/// the size of its code.
inline constexpr kernel_interface ternary_rows_interface{"ternary_rows",
                                                         {{{"input"},
                                                           {"factors"},
                                                           {"weight"},
                                                           {"scales"},
                                                           {"output"},
                                                           {"state"},
                                                           {"keys"},
                                                           {"values"},
                                                           {"binary", field_type::binary}}},
                                                         {{{"workgroup_size"},
                                                           {"columns"},
                                                           {"rows"},
                                                           {"epilogue"},
                                                           {"head_dim"},
                                                           {"q_size"},
                                                           {"kv_size"},
                                                           {"context"},
                                                           {"rope_theta", field_type::f32},
                                                           {"cache_element"},
                                                           {"groups_together"},
                                                           {"subgroup_width"}}}};
/// The most columns of a matrix, which bound the size of the unrolled code.
inline constexpr std::uint32_t ternary_rows_columns = 8192;
/// Whether ternary_rows can multiply by a matrix [rows, columns].
constexpr bool has_ternary_rows(std::uint32_t columns, std::uint32_t rows) {
  return columns % 64 == 0 && columns <= ternary_rows_columns && rows / 4 <= 65535;
}
/// Groups of 4 rows of a workgroup, by the width of the matrix.
constexpr std::uint32_t ternary_rows_together(std::uint32_t columns) { return columns <= 4096 ? 2 : 1; }
/// The most tokens of a tile of ternary_matmul.
inline constexpr std::uint32_t most_ternary_tile_tokens = 16;

/// Descriptor of the kernel ternary_rows, which multiplies one int8 token by ternary weights on CPU drivers.
struct ternary_rows_kernel {
  static constexpr kernel id = kernel::ternary_rows;
  static constexpr const kernel_interface& face = ternary_rows_interface;
  static constexpr candidate candidates[] = {{variant::ternary_rows, {}}};
  template <class T>
  struct push {
    T input, factors, weight, scales, output, state, keys, values, binary;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::epilogue epilogue{};
    std::uint32_t head_dim{};
    std::uint32_t q_size{};
    std::uint32_t kv_size{};
    std::uint32_t context{};
    float rope_theta{};
    element cache_element{};
    std::uint32_t groups_together{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
