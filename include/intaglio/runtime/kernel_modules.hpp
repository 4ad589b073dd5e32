// SPDX-License-Identifier: MIT
// Where a program has the SPIR-V modules of its plans.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/module_text.hpp"
#include "intaglio/kernels/spirv/accept.hpp"
#include "intaglio/kernels/spirv/attention.hpp"
#include "intaglio/kernels/spirv/attention_batch.hpp"
#include "intaglio/kernels/spirv/attention_chunk.hpp"
#include "intaglio/kernels/spirv/attention_cpu.hpp"
#include "intaglio/kernels/spirv/attention_f16.hpp"
#include "intaglio/kernels/spirv/attention_f16_portable.hpp"
#include "intaglio/kernels/spirv/attention_fragments.hpp"
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
#include "intaglio/kernels/spirv/rms_norm.hpp"
#include "intaglio/kernels/spirv/route.hpp"
#include "intaglio/kernels/spirv/sample.hpp"
#include "intaglio/kernels/spirv/sample_cpu.hpp"
#include "intaglio/kernels/spirv/short_conv.hpp"
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
#include "intaglio/kernels/splice.hpp"
#include "intaglio/runtime/module_source.hpp"

namespace intaglio::runtime {

#define INTAGLIO_EACH(module, of)                                              \
  template <>                                                                  \
  inline std::span<const std::byte> module_bytes<kernels::variant::module>() { \
    return kernels::whole(kernels::spirv::module##_parts);                     \
  }
INTAGLIO_VARIANTS(INTAGLIO_EACH)
#undef INTAGLIO_EACH

/// A hash that changes with the source of any module.
constexpr std::uint64_t modules_hash() {
  std::uint64_t mixed = 0;
#define INTAGLIO_EACH(module, of) kernels::spirv::module##_source_hash,
  for (const std::uint64_t each : {INTAGLIO_VARIANTS(INTAGLIO_EACH)}) mixed = (mixed ^ each) * 0x9E3779B97F4A7C15u;
#undef INTAGLIO_EACH
  return mixed;
}

/// The words of a module with an activation spliced in, and its marked loops unrolled as requested.
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
