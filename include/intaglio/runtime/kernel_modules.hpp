// SPDX-License-Identifier: MIT
// Where a program has the SPIR-V modules of its plans.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/module_text.hpp"
#include "intaglio/kernels/spirv/accept.hpp"
#include "intaglio/kernels/spirv/attention.hpp"
#include "intaglio/kernels/spirv/attention_chunk.hpp"
#include "intaglio/kernels/spirv/attention_cpu.hpp"
#include "intaglio/kernels/spirv/attention_few.hpp"
#include "intaglio/kernels/spirv/attention_halves.hpp"
#include "intaglio/kernels/spirv/attention_halves_portable.hpp"
#include "intaglio/kernels/spirv/dense_few.hpp"
#include "intaglio/kernels/spirv/dense_matmul.hpp"
#include "intaglio/kernels/spirv/dense_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/dense_rows.hpp"
#include "intaglio/kernels/spirv/embed.hpp"
#include "intaglio/kernels/spirv/expert_sum.hpp"
#include "intaglio/kernels/spirv/expert_tiles.hpp"
#include "intaglio/kernels/spirv/fixed.hpp"
#include "intaglio/kernels/spirv/halves.hpp"
#include "intaglio/kernels/spirv/head_rescore.hpp"
#include "intaglio/kernels/spirv/head_screen.hpp"
#include "intaglio/kernels/spirv/head_screen_portable.hpp"
#include "intaglio/kernels/spirv/layers.hpp"
#include "intaglio/kernels/spirv/layers_coded.hpp"
#include "intaglio/kernels/spirv/layers_cpu.hpp"
#include "intaglio/kernels/spirv/layers_dense.hpp"
#include "intaglio/kernels/spirv/layers_few.hpp"
#include "intaglio/kernels/spirv/layers_few_normed.hpp"
#include "intaglio/kernels/spirv/layers_long.hpp"
#include "intaglio/kernels/spirv/layers_many.hpp"
#include "intaglio/kernels/spirv/layers_many_normed.hpp"
#include "intaglio/kernels/spirv/layers_ternary_few.hpp"
#include "intaglio/kernels/spirv/matmul.hpp"
#include "intaglio/kernels/spirv/matmul_chunk.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_few.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_fragments.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_cpu.hpp"
#include "intaglio/kernels/spirv/matmul_few.hpp"
#include "intaglio/kernels/spirv/matmul_few_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_few_portable.hpp"
#include "intaglio/kernels/spirv/matmul_few_tiled.hpp"
#include "intaglio/kernels/spirv/matmul_portable.hpp"
#include "intaglio/kernels/spirv/norm_add.hpp"
#include "intaglio/kernels/spirv/norm_quantize.hpp"
#include "intaglio/kernels/spirv/norm_quantize_cpu.hpp"
#include "intaglio/kernels/spirv/pages.hpp"
#include "intaglio/kernels/spirv/rms_norm.hpp"
#include "intaglio/kernels/spirv/route.hpp"
#include "intaglio/kernels/spirv/sample.hpp"
#include "intaglio/kernels/spirv/sample_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_chunk.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_portable.hpp"
#include "intaglio/kernels/spirv/ternary_few.hpp"
#include "intaglio/kernels/spirv/ternary_few_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_few_portable.hpp"
#include "intaglio/kernels/spirv/ternary_float.hpp"
#include "intaglio/kernels/spirv/ternary_float_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_portable.hpp"
#include "intaglio/kernels/spirv/ternary_rows.hpp"
#include "intaglio/kernels/spirv/turn.hpp"
#include "intaglio/kernels/spirv/walk_down.hpp"
#include "intaglio/kernels/spirv/walk_down_cpu.hpp"
#include "intaglio/kernels/spirv/walk_down_portable.hpp"
#include "intaglio/kernels/spirv/walk_gate_up.hpp"
#include "intaglio/kernels/spirv/walk_gate_up_cpu.hpp"
#include "intaglio/kernels/spirv/walk_gate_up_portable.hpp"
#include "intaglio/kernels/spirv/walk_select.hpp"
#include "intaglio/kernels/spirv/walk_sum.hpp"
#include "intaglio/kernels/spirv/walk_trace.hpp"
#include "intaglio/kernels/spirv/walk_up.hpp"
#include "intaglio/kernels/splice.hpp"
#include "intaglio/runtime/module_source.hpp"

namespace intaglio::runtime {

namespace detail {
/// An embedded module. @tparam Parts a function object that hands on the literals which hold it
template <class Parts>
struct listed {
  kernels::variant which;
  std::uint64_t source_hash;
  Parts parts;
};
template <class Parts>
listed(kernels::variant, std::uint64_t, Parts) -> listed<Parts>;  // clang 16 deduces none of an aggregate
/// Every one, by kernels::variant.
inline constexpr std::tuple every_module{
    listed{kernels::variant::accept, kernels::spirv::accept_source_hash, kernels::spirv::accept_parts},
    listed{kernels::variant::attention, kernels::spirv::attention_source_hash, kernels::spirv::attention_parts},
    listed{kernels::variant::attention_chunk, kernels::spirv::attention_chunk_source_hash,
           kernels::spirv::attention_chunk_parts},
    listed{kernels::variant::attention_cpu, kernels::spirv::attention_cpu_source_hash,
           kernels::spirv::attention_cpu_parts},
    listed{kernels::variant::attention_few, kernels::spirv::attention_few_source_hash,
           kernels::spirv::attention_few_parts},
    listed{kernels::variant::attention_halves, kernels::spirv::attention_halves_source_hash,
           kernels::spirv::attention_halves_parts},
    listed{kernels::variant::attention_halves_portable, kernels::spirv::attention_halves_portable_source_hash,
           kernels::spirv::attention_halves_portable_parts},
    listed{kernels::variant::dense_few, kernels::spirv::dense_few_source_hash, kernels::spirv::dense_few_parts},
    listed{kernels::variant::dense_matmul, kernels::spirv::dense_matmul_source_hash,
           kernels::spirv::dense_matmul_parts},
    listed{kernels::variant::dense_matmul_cpu, kernels::spirv::dense_matmul_cpu_source_hash,
           kernels::spirv::dense_matmul_cpu_parts},
    listed{kernels::variant::dense_rows, kernels::spirv::dense_rows_source_hash, kernels::spirv::dense_rows_parts},
    listed{kernels::variant::embed, kernels::spirv::embed_source_hash, kernels::spirv::embed_parts},
    listed{kernels::variant::expert_sum, kernels::spirv::expert_sum_source_hash, kernels::spirv::expert_sum_parts},
    listed{kernels::variant::expert_tiles, kernels::spirv::expert_tiles_source_hash,
           kernels::spirv::expert_tiles_parts},
    listed{kernels::variant::fixed, kernels::spirv::fixed_source_hash, kernels::spirv::fixed_parts},
    listed{kernels::variant::halves, kernels::spirv::halves_source_hash, kernels::spirv::halves_parts},
    listed{kernels::variant::head_rescore, kernels::spirv::head_rescore_source_hash,
           kernels::spirv::head_rescore_parts},
    listed{kernels::variant::head_screen, kernels::spirv::head_screen_source_hash, kernels::spirv::head_screen_parts},
    listed{kernels::variant::head_screen_portable, kernels::spirv::head_screen_portable_source_hash,
           kernels::spirv::head_screen_portable_parts},
    listed{kernels::variant::layers, kernels::spirv::layers_source_hash, kernels::spirv::layers_parts},
    listed{kernels::variant::layers_coded, kernels::spirv::layers_coded_source_hash,
           kernels::spirv::layers_coded_parts},
    listed{kernels::variant::layers_cpu, kernels::spirv::layers_cpu_source_hash, kernels::spirv::layers_cpu_parts},
    listed{kernels::variant::layers_dense, kernels::spirv::layers_dense_source_hash,
           kernels::spirv::layers_dense_parts},
    listed{kernels::variant::layers_few, kernels::spirv::layers_few_source_hash, kernels::spirv::layers_few_parts},
    listed{kernels::variant::layers_few_normed, kernels::spirv::layers_few_normed_source_hash,
           kernels::spirv::layers_few_normed_parts},
    listed{kernels::variant::layers_long, kernels::spirv::layers_long_source_hash, kernels::spirv::layers_long_parts},
    listed{kernels::variant::layers_many, kernels::spirv::layers_many_source_hash, kernels::spirv::layers_many_parts},
    listed{kernels::variant::layers_many_normed, kernels::spirv::layers_many_normed_source_hash,
           kernels::spirv::layers_many_normed_parts},
    listed{kernels::variant::layers_ternary_few, kernels::spirv::layers_ternary_few_source_hash,
           kernels::spirv::layers_ternary_few_parts},
    listed{kernels::variant::matmul, kernels::spirv::matmul_source_hash, kernels::spirv::matmul_parts},
    listed{kernels::variant::matmul_chunk, kernels::spirv::matmul_chunk_source_hash,
           kernels::spirv::matmul_chunk_parts},
    listed{kernels::variant::matmul_chunk_few, kernels::spirv::matmul_chunk_few_source_hash,
           kernels::spirv::matmul_chunk_few_parts},
    listed{kernels::variant::matmul_chunk_fragments, kernels::spirv::matmul_chunk_fragments_source_hash,
           kernels::spirv::matmul_chunk_fragments_parts},
    listed{kernels::variant::matmul_chunk_matrix, kernels::spirv::matmul_chunk_matrix_source_hash,
           kernels::spirv::matmul_chunk_matrix_parts},
    listed{kernels::variant::matmul_cpu, kernels::spirv::matmul_cpu_source_hash, kernels::spirv::matmul_cpu_parts},
    listed{kernels::variant::matmul_few, kernels::spirv::matmul_few_source_hash, kernels::spirv::matmul_few_parts},
    listed{kernels::variant::matmul_few_matrix, kernels::spirv::matmul_few_matrix_source_hash,
           kernels::spirv::matmul_few_matrix_parts},
    listed{kernels::variant::matmul_few_portable, kernels::spirv::matmul_few_portable_source_hash,
           kernels::spirv::matmul_few_portable_parts},
    listed{kernels::variant::matmul_few_tiled, kernels::spirv::matmul_few_tiled_source_hash,
           kernels::spirv::matmul_few_tiled_parts},
    listed{kernels::variant::matmul_portable, kernels::spirv::matmul_portable_source_hash,
           kernels::spirv::matmul_portable_parts},
    listed{kernels::variant::norm_add, kernels::spirv::norm_add_source_hash, kernels::spirv::norm_add_parts},
    listed{kernels::variant::norm_quantize, kernels::spirv::norm_quantize_source_hash,
           kernels::spirv::norm_quantize_parts},
    listed{kernels::variant::norm_quantize_cpu, kernels::spirv::norm_quantize_cpu_source_hash,
           kernels::spirv::norm_quantize_cpu_parts},
    listed{kernels::variant::pages, kernels::spirv::pages_source_hash, kernels::spirv::pages_parts},
    listed{kernels::variant::rms_norm, kernels::spirv::rms_norm_source_hash, kernels::spirv::rms_norm_parts},
    listed{kernels::variant::route, kernels::spirv::route_source_hash, kernels::spirv::route_parts},
    listed{kernels::variant::sample, kernels::spirv::sample_source_hash, kernels::spirv::sample_parts},
    listed{kernels::variant::sample_cpu, kernels::spirv::sample_cpu_source_hash, kernels::spirv::sample_cpu_parts},
    listed{kernels::variant::ternary_chunk, kernels::spirv::ternary_chunk_source_hash,
           kernels::spirv::ternary_chunk_parts},
    listed{kernels::variant::ternary_chunk_matrix, kernels::spirv::ternary_chunk_matrix_source_hash,
           kernels::spirv::ternary_chunk_matrix_parts},
    listed{kernels::variant::ternary_chunk_portable, kernels::spirv::ternary_chunk_portable_source_hash,
           kernels::spirv::ternary_chunk_portable_parts},
    listed{kernels::variant::ternary_few, kernels::spirv::ternary_few_source_hash, kernels::spirv::ternary_few_parts},
    listed{kernels::variant::ternary_few_matrix, kernels::spirv::ternary_few_matrix_source_hash,
           kernels::spirv::ternary_few_matrix_parts},
    listed{kernels::variant::ternary_few_portable, kernels::spirv::ternary_few_portable_source_hash,
           kernels::spirv::ternary_few_portable_parts},
    listed{kernels::variant::ternary_float, kernels::spirv::ternary_float_source_hash,
           kernels::spirv::ternary_float_parts},
    listed{kernels::variant::ternary_float_cpu, kernels::spirv::ternary_float_cpu_source_hash,
           kernels::spirv::ternary_float_cpu_parts},
    listed{kernels::variant::ternary_matmul, kernels::spirv::ternary_matmul_source_hash,
           kernels::spirv::ternary_matmul_parts},
    listed{kernels::variant::ternary_matmul_cpu, kernels::spirv::ternary_matmul_cpu_source_hash,
           kernels::spirv::ternary_matmul_cpu_parts},
    listed{kernels::variant::ternary_matmul_portable, kernels::spirv::ternary_matmul_portable_source_hash,
           kernels::spirv::ternary_matmul_portable_parts},
    listed{kernels::variant::ternary_rows, kernels::spirv::ternary_rows_source_hash,
           kernels::spirv::ternary_rows_parts},
    listed{kernels::variant::turn, kernels::spirv::turn_source_hash, kernels::spirv::turn_parts},
    listed{kernels::variant::walk_down, kernels::spirv::walk_down_source_hash, kernels::spirv::walk_down_parts},
    listed{kernels::variant::walk_down_cpu, kernels::spirv::walk_down_cpu_source_hash,
           kernels::spirv::walk_down_cpu_parts},
    listed{kernels::variant::walk_down_portable, kernels::spirv::walk_down_portable_source_hash,
           kernels::spirv::walk_down_portable_parts},
    listed{kernels::variant::walk_gate_up, kernels::spirv::walk_gate_up_source_hash,
           kernels::spirv::walk_gate_up_parts},
    listed{kernels::variant::walk_gate_up_cpu, kernels::spirv::walk_gate_up_cpu_source_hash,
           kernels::spirv::walk_gate_up_cpu_parts},
    listed{kernels::variant::walk_gate_up_portable, kernels::spirv::walk_gate_up_portable_source_hash,
           kernels::spirv::walk_gate_up_portable_parts},
    listed{kernels::variant::walk_select, kernels::spirv::walk_select_source_hash, kernels::spirv::walk_select_parts},
    listed{kernels::variant::walk_sum, kernels::spirv::walk_sum_source_hash, kernels::spirv::walk_sum_parts},
    listed{kernels::variant::walk_trace, kernels::spirv::walk_trace_source_hash, kernels::spirv::walk_trace_parts},
    listed{kernels::variant::walk_up, kernels::spirv::walk_up_source_hash, kernels::spirv::walk_up_parts}};
}  // namespace detail

static_assert(std::tuple_size_v<decltype(detail::every_module)> == kernels::variant_count);

template <kernels::variant_set used>
std::span<const std::byte> modules_of(kernels::variant which) {
  std::span<const std::byte> out;
  const auto take = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    if constexpr (constexpr auto its = std::get<i>(detail::every_module).which; used.has(its))
      if (which == its) out = kernels::whole(std::get<i>(detail::every_module).parts);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (take(std::integral_constant<std::size_t, i>{}), ...);
  }(std::make_index_sequence<kernels::variant_count>{});
  return out;
}

/// Changes with the source of any module.
constexpr std::uint64_t modules_hash() {
  std::uint64_t mixed = 0;
  std::apply([&](const auto&... each) { ((mixed = (mixed ^ each.source_hash) * 0x9E3779B97F4A7C15u), ...); },
             detail::every_module);
  return mixed;
}

/// The words of a module that gates, with the activation in its place, and its marked loops as asked for.
inline std::vector<std::uint32_t> patched_module(std::span<const std::byte> module,
                                                 const shader::expression& activation, kernels::variant which,
                                                 bool unrolls = false) {
  std::vector<std::uint32_t> words(module.size() / 4);
  std::copy(module.begin(), module.end(), std::as_writable_bytes(std::span(words)).begin());
  words = kernels::splicer(words, activation).spliced();
  if (kernels::kernel_of(which) == kernels::kernel::layers_coded) kernels::hint_loops(words, unrolls);
  return words;
}

}  // namespace intaglio::runtime
