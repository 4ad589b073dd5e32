// SPDX-License-Identifier: MIT
// Compares every embedded shader with the catalogue at compile time. Including this file is the check.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/reflection.hpp"
#include "intaglio/kernels/spirv/accept.hpp"
#include "intaglio/kernels/spirv/attention.hpp"
#include "intaglio/kernels/spirv/attention_batch.hpp"
#include "intaglio/kernels/spirv/attention_chunk.hpp"
#include "intaglio/kernels/spirv/attention_cpu.hpp"
#include "intaglio/kernels/spirv/attention_f16.hpp"
#include "intaglio/kernels/spirv/attention_f16_portable.hpp"
#include "intaglio/kernels/spirv/attention_fragments.hpp"
#include "intaglio/kernels/spirv/calibrate.hpp"
#include "intaglio/kernels/spirv/delta_net.hpp"
#include "intaglio/kernels/spirv/dense_batch.hpp"
#include "intaglio/kernels/spirv/dense_matmul.hpp"
#include "intaglio/kernels/spirv/dense_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/dense_rows.hpp"
#include "intaglio/kernels/spirv/embed.hpp"
#include "intaglio/kernels/spirv/expert_sum.hpp"
#include "intaglio/kernels/spirv/expert_tiles.hpp"
#include "intaglio/kernels/spirv/fixed.hpp"
#include "intaglio/kernels/spirv/gated.hpp"
#include "intaglio/kernels/spirv/head_gate.hpp"
#include "intaglio/kernels/spirv/head_rescore.hpp"
#include "intaglio/kernels/spirv/head_screen.hpp"
#include "intaglio/kernels/spirv/head_screen_portable.hpp"
#include "intaglio/kernels/spirv/layers.hpp"
#include "intaglio/kernels/spirv/layers_batch.hpp"
#include "intaglio/kernels/spirv/layers_batch_normed.hpp"
#include "intaglio/kernels/spirv/layers_coded.hpp"
#include "intaglio/kernels/spirv/layers_cpu.hpp"
#include "intaglio/kernels/spirv/layers_dense.hpp"
#include "intaglio/kernels/spirv/layers_experts.hpp"
#include "intaglio/kernels/spirv/layers_long.hpp"
#include "intaglio/kernels/spirv/layers_mixed.hpp"
#include "intaglio/kernels/spirv/layers_rows.hpp"
#include "intaglio/kernels/spirv/layers_rows_normed.hpp"
#include "intaglio/kernels/spirv/layers_ternary_rows.hpp"
#include "intaglio/kernels/spirv/matmul.hpp"
#include "intaglio/kernels/spirv/matmul_batch.hpp"
#include "intaglio/kernels/spirv/matmul_batch_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_batch_portable.hpp"
#include "intaglio/kernels/spirv/matmul_batch_tiled.hpp"
#include "intaglio/kernels/spirv/matmul_chunk.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_batch.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_fragments.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_cpu.hpp"
#include "intaglio/kernels/spirv/matmul_portable.hpp"
#include "intaglio/kernels/spirv/norm_add.hpp"
#include "intaglio/kernels/spirv/norm_quantize.hpp"
#include "intaglio/kernels/spirv/norm_quantize_cpu.hpp"
#include "intaglio/kernels/spirv/pages.hpp"
#include "intaglio/kernels/spirv/quantize_f16.hpp"
#include "intaglio/kernels/spirv/residency.hpp"
#include "intaglio/kernels/spirv/rms_norm.hpp"
#include "intaglio/kernels/spirv/route.hpp"
#include "intaglio/kernels/spirv/sample.hpp"
#include "intaglio/kernels/spirv/sample_cpu.hpp"
#include "intaglio/kernels/spirv/short_conv.hpp"
#include "intaglio/kernels/spirv/stream_read.hpp"
#include "intaglio/kernels/spirv/streams.hpp"
#include "intaglio/kernels/spirv/ternary_batch.hpp"
#include "intaglio/kernels/spirv/ternary_batch_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_batch_portable.hpp"
#include "intaglio/kernels/spirv/ternary_chunk.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_fragments.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_portable.hpp"
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

namespace intaglio::kernels {

static_assert(shader_interface<matches(embed_interface, spirv::embed_spirv)>::agrees);
static_assert(shader_interface<matches(norm_quantize_interface, spirv::norm_quantize_spirv)>::agrees);
static_assert(shader_interface<matches(norm_quantize_interface, spirv::norm_quantize_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_matmul_interface, spirv::ternary_matmul_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_matmul_interface, spirv::ternary_matmul_portable_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_matmul_interface, spirv::ternary_matmul_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_batch_interface, spirv::ternary_batch_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_batch_interface, spirv::ternary_batch_portable_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_batch_interface, spirv::ternary_batch_matrix_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_chunk_interface, spirv::ternary_chunk_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_chunk_interface, spirv::ternary_chunk_portable_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_chunk_interface, spirv::ternary_chunk_fragments_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_float_interface, spirv::ternary_float_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_float_interface, spirv::ternary_float_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(attention_interface, spirv::attention_spirv)>::agrees);
static_assert(
    shader_interface<matches(attention_interface, spirv::attention_cpu_spirv, unused_constants::allowed)>::agrees);
static_assert(shader_interface<matches(attention_chunk_interface, spirv::attention_chunk_spirv)>::agrees);
static_assert(shader_interface<matches(attention_batch_interface, spirv::attention_batch_spirv)>::agrees);
static_assert(shader_interface<matches(attention_f16_interface, spirv::attention_fragments_spirv)>::agrees);
static_assert(shader_interface<matches(attention_f16_interface, spirv::attention_f16_spirv)>::agrees);
static_assert(shader_interface<matches(attention_f16_interface, spirv::attention_f16_portable_spirv)>::agrees);
static_assert(shader_interface<matches(dense_matmul_interface, spirv::dense_matmul_spirv)>::agrees);
static_assert(shader_interface<matches(dense_matmul_interface, spirv::dense_matmul_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(dense_batch_interface, spirv::dense_batch_spirv)>::agrees);
static_assert(shader_interface<matches(dense_rows_interface, spirv::dense_rows_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_rows_interface, spirv::ternary_rows_spirv)>::agrees);
static_assert(shader_interface<matches(head_screen_interface, spirv::head_screen_spirv)>::agrees);
static_assert(shader_interface<matches(head_screen_interface, spirv::head_screen_portable_spirv)>::agrees);
static_assert(shader_interface<matches(head_rescore_interface, spirv::head_rescore_spirv)>::agrees);
static_assert(shader_interface<matches(sample_interface, spirv::sample_spirv)>::agrees);
static_assert(shader_interface<matches(sample_interface, spirv::sample_cpu_spirv, unused_constants::allowed)>::agrees);
static_assert(shader_interface<matches(accept_interface, spirv::accept_spirv)>::agrees);
static_assert(shader_interface<matches(layers_interface, spirv::layers_spirv)>::agrees);
static_assert(shader_interface<matches(layers_interface, spirv::layers_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(layers_interface, spirv::layers_long_spirv)>::agrees);
static_assert(
    shader_interface<matches(layers_coded_interface, spirv::layers_coded_spirv, unused_constants::allowed)>::agrees);
static_assert(
    shader_interface<matches(layers_coded_interface, spirv::layers_dense_spirv, unused_constants::allowed)>::agrees);
static_assert(shader_interface<matches(layers_coded_interface, spirv::layers_mixed_spirv)>::agrees);
static_assert(
    shader_interface<matches(layers_coded_interface, spirv::layers_experts_spirv, unused_constants::allowed)>::agrees);
static_assert(shader_interface<matches(layers_rows_interface, spirv::layers_rows_spirv)>::agrees);
static_assert(shader_interface<matches(layers_rows_normed_interface, spirv::layers_rows_normed_spirv)>::agrees);
static_assert(shader_interface<matches(layers_batch_normed_interface, spirv::layers_batch_normed_spirv)>::agrees);
static_assert(shader_interface<matches(layers_batch_interface, spirv::layers_batch_spirv)>::agrees);
static_assert(shader_interface<matches(layers_ternary_rows_interface, spirv::layers_ternary_rows_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_interface, spirv::matmul_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_interface, spirv::matmul_portable_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_interface, spirv::matmul_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(turn_interface, spirv::turn_spirv)>::agrees);
static_assert(shader_interface<matches(norm_add_interface, spirv::norm_add_spirv)>::agrees);
static_assert(shader_interface<matches(rms_norm_interface, spirv::rms_norm_spirv)>::agrees);
static_assert(shader_interface<matches(route_interface, spirv::route_spirv)>::agrees);
static_assert(shader_interface<matches(expert_sum_interface, spirv::expert_sum_spirv)>::agrees);
static_assert(shader_interface<matches(expert_tiles_interface, spirv::expert_tiles_spirv)>::agrees);
static_assert(shader_interface<matches(quantize_f16_interface, spirv::quantize_f16_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_chunk_interface, spirv::matmul_chunk_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_chunk_interface, spirv::matmul_chunk_matrix_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_chunk_interface, spirv::matmul_chunk_batch_spirv,
                                       unused_constants::allowed)>::agrees);
static_assert(shader_interface<matches(matmul_chunk_interface, spirv::matmul_chunk_fragments_spirv)>::agrees);
static_assert(shader_interface<matches(walk_gate_up_interface, spirv::walk_gate_up_spirv)>::agrees);
static_assert(shader_interface<matches(walk_gate_up_interface, spirv::walk_gate_up_portable_spirv)>::agrees);
static_assert(shader_interface<matches(walk_gate_up_interface, spirv::walk_gate_up_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(walk_down_interface, spirv::walk_down_spirv)>::agrees);
static_assert(shader_interface<matches(walk_down_interface, spirv::walk_down_portable_spirv)>::agrees);
static_assert(shader_interface<matches(walk_down_interface, spirv::walk_down_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(pages_interface, spirv::pages_spirv)>::agrees);
static_assert(shader_interface<matches(walk_select_interface, spirv::walk_select_spirv)>::agrees);
static_assert(shader_interface<matches(walk_up_interface, spirv::walk_up_spirv)>::agrees);
static_assert(shader_interface<matches(walk_sum_interface, spirv::walk_sum_spirv)>::agrees);
static_assert(shader_interface<matches(walk_trace_interface, spirv::walk_trace_spirv)>::agrees);
static_assert(shader_interface<matches(fixed_interface, spirv::fixed_spirv)>::agrees);
static_assert(shader_interface<matches(gated_interface, spirv::gated_spirv)>::agrees);
static_assert(shader_interface<matches(short_conv_interface, spirv::short_conv_spirv)>::agrees);
static_assert(shader_interface<matches(delta_net_interface, spirv::delta_net_spirv)>::agrees);
static_assert(shader_interface<matches(head_gate_interface, spirv::head_gate_spirv)>::agrees);
static_assert(shader_interface<matches(streams_interface, spirv::streams_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_batch_interface, spirv::matmul_batch_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_batch_interface, spirv::matmul_batch_portable_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_batch_interface, spirv::matmul_batch_matrix_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_batch_interface, spirv::matmul_batch_tiled_spirv)>::agrees);
static_assert(shader_interface<matches(stream_read_interface, spirv::stream_read_spirv)>::agrees);
static_assert(shader_interface<matches(residency_interface, spirv::residency_spirv)>::agrees);
static_assert(shader_interface<matches(calibrate_interface, spirv::calibrate_spirv)>::agrees);

}  // namespace intaglio::kernels
