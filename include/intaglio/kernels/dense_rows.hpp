// SPDX-License-Identifier: MIT
// The kernel dense_rows: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// dense_batch of one token for CPU drivers, unrolled. Workgroup (x, y) has rows_together rows, from row (x + y *
/// groups x) * rows_together on. columns: a multiple of 32; at most 2^20 workgroups. dense_rows_most bounds the size of
/// its code.
inline constexpr kernel_interface dense_rows_interface{
    "dense_rows",
    {{{"input"}, {"weight"}, {"output"}, {"state"}, {"binary", field_type::binary}}},
    {{{"workgroup_size"}, {"columns"}, {"rows"}, {"weight_element"}, {"rows_together"}, {"subgroup_width"}}}};
/// The most rows of a workgroup, and the most 32-bit words of a row.
inline constexpr std::uint32_t dense_rows_most = 8, dense_rows_words = 2048;
/// Whether dense_rows can multiply by a matrix of this element type and width.
constexpr bool has_dense_rows(codec type, std::uint32_t columns) {
  return columns % 32 == 0 && columns / (type == codec::f32 ? 1 : 2) <= dense_rows_words;
}
/// Rows of a workgroup: enough to be worth starting it, few enough to compile.
constexpr std::uint32_t dense_rows_together(std::uint32_t columns) {
  return columns >= dense_rows_words                     ? 1
         : columns <= dense_rows_words / dense_rows_most ? dense_rows_most
                                                         : dense_rows_words / columns;
}

/// Descriptor of the kernel dense_rows, which multiplies one token by a dense matrix on CPU drivers.
struct dense_rows_kernel {
  static constexpr kernel id = kernel::dense_rows;
  static constexpr const kernel_interface& face = dense_rows_interface;
  static constexpr candidate candidates[] = {{variant::dense_rows, {}}};
  template <class T>
  struct push {
    T input, weight, output, state, binary;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t columns{};
    std::uint32_t rows{};
    kernels::codec weight_element{};
    std::uint32_t rows_together{};
    std::uint32_t subgroup_width{};
  };
};

}  // namespace intaglio::kernels
