// SPDX-License-Identifier: MIT
// The list of SPIR-V modules. The variants of a kernel compute the same result and differ in their demands of a device.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/short_name.hpp"
#include "intaglio/kernels/kinds.hpp"

namespace intaglio::kernels {

/// Every module as each(NAME, KERNEL): the name of its header in kernels/spirv, and its kernel.
// clang-format off
#define INTAGLIO_VARIANTS(each) \
  each(accept, accept) \
  each(attention, attention) \
  each(attention_cpu, attention) \
  each(attention_chunk, attention_chunk) \
  each(attention_batch, attention_batch) \
  each(attention_fragments, attention_f16) \
  each(attention_f16, attention_f16) \
  each(attention_f16_portable, attention_f16) \
  each(delta_net, delta_net) \
  each(dense_batch, dense_batch) \
  each(dense_matmul, dense_matmul) \
  each(dense_matmul_cpu, dense_matmul) \
  each(dense_rows, dense_rows) \
  each(embed, embed) \
  each(expert_sum, expert_sum) \
  each(expert_tiles, expert_tiles) \
  each(fixed, fixed) \
  each(gated, gated) \
  each(quantize_f16, quantize_f16) \
  each(turn, turn) \
  each(head_gate, head_gate) \
  each(head_rescore, head_rescore) \
  each(head_screen, head_screen) \
  each(head_screen_portable, head_screen) \
  each(layers, layers) \
  each(layers_cpu, layers) \
  each(layers_long, layers) \
  each(layers_coded, layers_coded) \
  each(layers_dense, layers_coded) \
  each(layers_mixed, layers_coded) \
  each(layers_experts, layers_coded) \
  each(layers_rows, layers_rows) \
  each(layers_rows_normed, layers_rows_normed) \
  each(layers_batch, layers_batch) \
  each(layers_batch_normed, layers_batch_normed) \
  each(layers_ternary_rows, layers_ternary_rows) \
  each(matmul, matmul) \
  each(matmul_cpu, matmul) \
  each(matmul_portable, matmul) \
  each(matmul_chunk, matmul_chunk) \
  each(matmul_chunk_batch, matmul_chunk) \
  each(matmul_chunk_fragments, matmul_chunk) \
  each(matmul_chunk_matrix, matmul_chunk) \
  each(matmul_batch, matmul_batch) \
  each(matmul_batch_matrix, matmul_batch) \
  each(matmul_batch_portable, matmul_batch) \
  each(matmul_batch_tiled, matmul_batch) \
  each(norm_add, norm_add) \
  each(norm_quantize, norm_quantize) \
  each(norm_quantize_cpu, norm_quantize) \
  each(pages, pages) \
  each(rms_norm, rms_norm) \
  each(route, route) \
  each(sample, sample) \
  each(sample_cpu, sample) \
  each(short_conv, short_conv) \
  each(streams, streams) \
  each(ternary_chunk, ternary_chunk) \
  each(ternary_chunk_fragments, ternary_chunk) \
  each(ternary_chunk_portable, ternary_chunk) \
  each(ternary_batch, ternary_batch) \
  each(ternary_batch_matrix, ternary_batch) \
  each(ternary_batch_portable, ternary_batch) \
  each(ternary_float, ternary_float) \
  each(ternary_float_cpu, ternary_float) \
  each(ternary_matmul, ternary_matmul) \
  each(ternary_matmul_cpu, ternary_matmul) \
  each(ternary_matmul_portable, ternary_matmul) \
  each(ternary_rows, ternary_rows) \
  each(walk_down, walk_down) \
  each(walk_down_cpu, walk_down) \
  each(walk_down_portable, walk_down) \
  each(walk_gate_up, walk_gate_up) \
  each(walk_gate_up_cpu, walk_gate_up) \
  each(walk_gate_up_portable, walk_gate_up) \
  each(walk_select, walk_select) \
  each(walk_sum, walk_sum) \
  each(walk_trace, walk_trace) \
  each(walk_up, walk_up)
// clang-format on

/// The modules, by number.
#define INTAGLIO_EACH(module, of) module,
enum class variant : std::uint8_t { INTAGLIO_VARIANTS(INTAGLIO_EACH) };
#undef INTAGLIO_EACH

/// A module of SPIR-V: its name and the kernel that it computes.
struct variant_entry {
  short_name<27> name;
  kernel of;
};
/// By variant.
#define INTAGLIO_EACH(module, of) variant_entry{#module, kernel::of},
inline constexpr auto variant_table = std::to_array<variant_entry>({INTAGLIO_VARIANTS(INTAGLIO_EACH)});
#undef INTAGLIO_EACH
/// The number of modules.
inline constexpr std::size_t variant_count = variant_table.size();
/// The kernel that a module computes.
constexpr kernel kernel_of(variant which) { return variant_table[static_cast<std::size_t>(which)].of; }
/// The name of a module.
constexpr std::string_view name(variant which) { return variant_table[static_cast<std::size_t>(which)].name; }

/// A set of modules, for use as a template argument.
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
/// The set of all modules.
inline constexpr variant_set all_variants{{~std::uint64_t{0}, ~std::uint64_t{0}}};

}  // namespace intaglio::kernels
