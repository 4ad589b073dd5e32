// SPDX-License-Identifier: MIT
// The SPIR-V modules that there are: variants of a kernel compute the same and differ in what they demand of a device.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// A module, named as its header in kernels/spirv.
enum class variant : std::uint8_t {
  accept,
  attention,
  attention_cpu,
  attention_chunk,
  attention_few,
  attention_halves,
  attention_halves_portable,
  dense_few,
  dense_matmul,
  dense_matmul_cpu,
  dense_rows,
  embed,
  expert_sum,
  expert_tiles,
  fixed,
  halves,
  head_rescore,
  head_screen,
  head_screen_portable,
  layers,
  layers_cpu,
  layers_long,
  layers_coded,
  layers_dense,
  layers_few,
  layers_few_normed,
  layers_many,
  layers_many_normed,
  layers_ternary_few,
  matmul,
  matmul_cpu,
  matmul_portable,
  matmul_chunk,
  matmul_chunk_few,
  matmul_chunk_fragments,
  matmul_chunk_matrix,
  matmul_few,
  matmul_few_matrix,
  matmul_few_portable,
  matmul_few_tiled,
  norm_add,
  norm_quantize,
  norm_quantize_cpu,
  pages,
  rms_norm,
  route,
  sample,
  sample_cpu,
  ternary_chunk,
  ternary_chunk_matrix,
  ternary_chunk_portable,
  ternary_few,
  ternary_few_matrix,
  ternary_few_portable,
  ternary_float,
  ternary_float_cpu,
  ternary_matmul,
  ternary_matmul_cpu,
  ternary_matmul_portable,
  ternary_rows,
  turn,
  walk_down,
  walk_down_cpu,
  walk_down_portable,
  walk_gate_up,
  walk_gate_up_cpu,
  walk_gate_up_portable,
  walk_select,
  walk_sum,
  walk_trace,
  walk_up
};
inline constexpr std::size_t variant_count = 71;

struct variant_entry {
  std::string_view name;
  kernel of;  ///< the kernel that it computes
};
/// By variant.
inline constexpr std::array<variant_entry, variant_count> variant_table{
    {{"accept", kernel::accept},
     {"attention", kernel::attention},
     {"attention_cpu", kernel::attention},
     {"attention_chunk", kernel::attention_chunk},
     {"attention_few", kernel::attention_few},
     {"attention_halves", kernel::attention_halves},
     {"attention_halves_portable", kernel::attention_halves},
     {"dense_few", kernel::dense_few},
     {"dense_matmul", kernel::dense_matmul},
     {"dense_matmul_cpu", kernel::dense_matmul},
     {"dense_rows", kernel::dense_rows},
     {"embed", kernel::embed},
     {"expert_sum", kernel::expert_sum},
     {"expert_tiles", kernel::expert_tiles},
     {"fixed", kernel::fixed},
     {"halves", kernel::halves},
     {"head_rescore", kernel::head_rescore},
     {"head_screen", kernel::head_screen},
     {"head_screen_portable", kernel::head_screen},
     {"layers", kernel::layers},
     {"layers_cpu", kernel::layers},
     {"layers_long", kernel::layers},
     {"layers_coded", kernel::layers_coded},
     {"layers_dense", kernel::layers_coded},
     {"layers_few", kernel::layers_few},
     {"layers_few_normed", kernel::layers_few_normed},
     {"layers_many", kernel::layers_many},
     {"layers_many_normed", kernel::layers_many_normed},
     {"layers_ternary_few", kernel::layers_ternary_few},
     {"matmul", kernel::matmul},
     {"matmul_cpu", kernel::matmul},
     {"matmul_portable", kernel::matmul},
     {"matmul_chunk", kernel::matmul_chunk},
     {"matmul_chunk_few", kernel::matmul_chunk},
     {"matmul_chunk_fragments", kernel::matmul_chunk},
     {"matmul_chunk_matrix", kernel::matmul_chunk},
     {"matmul_few", kernel::matmul_few},
     {"matmul_few_matrix", kernel::matmul_few},
     {"matmul_few_portable", kernel::matmul_few},
     {"matmul_few_tiled", kernel::matmul_few},
     {"norm_add", kernel::norm_add},
     {"norm_quantize", kernel::norm_quantize},
     {"norm_quantize_cpu", kernel::norm_quantize},
     {"pages", kernel::pages},
     {"rms_norm", kernel::rms_norm},
     {"route", kernel::route},
     {"sample", kernel::sample},
     {"sample_cpu", kernel::sample},
     {"ternary_chunk", kernel::ternary_chunk},
     {"ternary_chunk_matrix", kernel::ternary_chunk},
     {"ternary_chunk_portable", kernel::ternary_chunk},
     {"ternary_few", kernel::ternary_few},
     {"ternary_few_matrix", kernel::ternary_few},
     {"ternary_few_portable", kernel::ternary_few},
     {"ternary_float", kernel::ternary_float},
     {"ternary_float_cpu", kernel::ternary_float},
     {"ternary_matmul", kernel::ternary_matmul},
     {"ternary_matmul_cpu", kernel::ternary_matmul},
     {"ternary_matmul_portable", kernel::ternary_matmul},
     {"ternary_rows", kernel::ternary_rows},
     {"turn", kernel::turn},
     {"walk_down", kernel::walk_down},
     {"walk_down_cpu", kernel::walk_down},
     {"walk_down_portable", kernel::walk_down},
     {"walk_gate_up", kernel::walk_gate_up},
     {"walk_gate_up_cpu", kernel::walk_gate_up},
     {"walk_gate_up_portable", kernel::walk_gate_up},
     {"walk_select", kernel::walk_select},
     {"walk_sum", kernel::walk_sum},
     {"walk_trace", kernel::walk_trace},
     {"walk_up", kernel::walk_up}}};
constexpr kernel kernel_of(variant which) { return variant_table[static_cast<std::size_t>(which)].of; }
constexpr std::string_view name(variant which) { return variant_table[static_cast<std::size_t>(which)].name; }

/// Some of the modules, for a template's argument.
struct variant_set {
  std::array<std::uint64_t, 2> bits{};
  constexpr bool has(variant which) const {
    const auto at = static_cast<std::size_t>(which);
    return (bits[at / 64] >> at % 64 & 1u) != 0;
  }
  constexpr void add(variant which) {
    const auto at = static_cast<std::size_t>(which);
    bits[at / 64] |= std::uint64_t{1} << at % 64;
  }
  friend constexpr bool operator==(const variant_set&, const variant_set&) = default;
};
static_assert(variant_count <= 128);
inline constexpr variant_set all_variants{{~std::uint64_t{0}, ~std::uint64_t{0}}};

}  // namespace intaglio::kernels
