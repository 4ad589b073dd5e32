// SPDX-License-Identifier: MIT
// Holds every embedded shader against the catalogue while compiling. Including this file is the check.
#pragma once

#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/reflection.hpp"
#include "intaglio/kernels/spirv/accept.hpp"
#include "intaglio/kernels/spirv/attention.hpp"
#include "intaglio/kernels/spirv/attention_chunk.hpp"
#include "intaglio/kernels/spirv/attention_cpu.hpp"
#include "intaglio/kernels/spirv/attention_halves.hpp"
#include "intaglio/kernels/spirv/attention_halves_portable.hpp"
#include "intaglio/kernels/spirv/dense_few.hpp"
#include "intaglio/kernels/spirv/dense_matmul.hpp"
#include "intaglio/kernels/spirv/dense_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/embed.hpp"
#include "intaglio/kernels/spirv/halves.hpp"
#include "intaglio/kernels/spirv/head_norm.hpp"
#include "intaglio/kernels/spirv/head_rescore.hpp"
#include "intaglio/kernels/spirv/head_screen.hpp"
#include "intaglio/kernels/spirv/head_screen_portable.hpp"
#include "intaglio/kernels/spirv/layers.hpp"
#include "intaglio/kernels/spirv/layers_cpu.hpp"
#include "intaglio/kernels/spirv/matmul.hpp"
#include "intaglio/kernels/spirv/matmul_chunk.hpp"
#include "intaglio/kernels/spirv/matmul_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/matmul_cpu.hpp"
#include "intaglio/kernels/spirv/matmul_portable.hpp"
#include "intaglio/kernels/spirv/norm_add.hpp"
#include "intaglio/kernels/spirv/norm_quantize.hpp"
#include "intaglio/kernels/spirv/norm_quantize_cpu.hpp"
#include "intaglio/kernels/spirv/sample.hpp"
#include "intaglio/kernels/spirv/stream_read.hpp"
#include "intaglio/kernels/spirv/ternary_chunk.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_matrix.hpp"
#include "intaglio/kernels/spirv/ternary_chunk_portable.hpp"
#include "intaglio/kernels/spirv/ternary_few.hpp"
#include "intaglio/kernels/spirv/ternary_few_portable.hpp"
#include "intaglio/kernels/spirv/ternary_float.hpp"
#include "intaglio/kernels/spirv/ternary_float_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_cpu.hpp"
#include "intaglio/kernels/spirv/ternary_matmul_portable.hpp"

namespace intaglio::kernels {

static_assert(shader_interface<matches(embed_interface, spirv::embed_spirv)>::agrees);
static_assert(shader_interface<matches(norm_quantize_interface, spirv::norm_quantize_spirv)>::agrees);
static_assert(shader_interface<matches(norm_quantize_interface, spirv::norm_quantize_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_matmul_interface, spirv::ternary_matmul_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_matmul_interface, spirv::ternary_matmul_portable_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_matmul_interface, spirv::ternary_matmul_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_few_interface, spirv::ternary_few_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_few_interface, spirv::ternary_few_portable_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_chunk_interface, spirv::ternary_chunk_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_chunk_interface, spirv::ternary_chunk_portable_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_chunk_interface, spirv::ternary_chunk_matrix_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_float_interface, spirv::ternary_float_spirv)>::agrees);
static_assert(shader_interface<matches(ternary_float_interface, spirv::ternary_float_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(attention_interface, spirv::attention_spirv)>::agrees);
static_assert(shader_interface<matches(attention_interface, spirv::attention_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(attention_chunk_interface, spirv::attention_chunk_spirv)>::agrees);
static_assert(shader_interface<matches(attention_halves_interface, spirv::attention_halves_spirv)>::agrees);
static_assert(shader_interface<matches(attention_halves_interface, spirv::attention_halves_portable_spirv)>::agrees);
static_assert(shader_interface<matches(dense_matmul_interface, spirv::dense_matmul_spirv)>::agrees);
static_assert(shader_interface<matches(dense_matmul_interface, spirv::dense_matmul_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(dense_few_interface, spirv::dense_few_spirv)>::agrees);
static_assert(shader_interface<matches(head_screen_interface, spirv::head_screen_spirv)>::agrees);
static_assert(shader_interface<matches(head_screen_interface, spirv::head_screen_portable_spirv)>::agrees);
static_assert(shader_interface<matches(head_rescore_interface, spirv::head_rescore_spirv)>::agrees);
static_assert(shader_interface<matches(sample_interface, spirv::sample_spirv)>::agrees);
static_assert(shader_interface<matches(accept_interface, spirv::accept_spirv)>::agrees);
static_assert(shader_interface<matches(layers_interface, spirv::layers_spirv)>::agrees);
static_assert(shader_interface<matches(layers_interface, spirv::layers_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_interface, spirv::matmul_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_interface, spirv::matmul_portable_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_interface, spirv::matmul_cpu_spirv)>::agrees);
static_assert(shader_interface<matches(head_norm_interface, spirv::head_norm_spirv)>::agrees);
static_assert(shader_interface<matches(norm_add_interface, spirv::norm_add_spirv)>::agrees);
static_assert(shader_interface<matches(halves_interface, spirv::halves_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_chunk_interface, spirv::matmul_chunk_spirv)>::agrees);
static_assert(shader_interface<matches(matmul_chunk_interface, spirv::matmul_chunk_matrix_spirv)>::agrees);
static_assert(shader_interface<matches(stream_read_interface, spirv::stream_read_spirv)>::agrees);

}  // namespace intaglio::kernels
