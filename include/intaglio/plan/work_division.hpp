// SPDX-License-Identifier: MIT
// How dispatches divide their work on a kind of device: derived from its class, not chosen (plan/profile.hpp has the
// choices).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

#include "intaglio/kernels/device_class.hpp"
#include "intaglio/kernels/layers.hpp"

namespace intaglio::plan {

/// How dispatches divide their work among workgroups. Members `..._subgroups` are subgroups of a workgroup, members
/// `..._groups` are workgroups of a dispatch.
struct work_division {
  std::uint32_t matmul_subgroups = 1, matmul_groups = 64;  ///< ternary products of one token
  std::uint32_t group_weights = 0;         ///< fewest weights of a product's group, with two groups at least; 0: any
  std::uint32_t chunk_matmul_groups = 64;  ///< matmul_groups of a chunk, for each tile of tokens
  bool chunk_tiles =
      false;  ///< chunks use int8 products and attention by tiles of tokens: ternary_chunk, attention_chunk
  std::uint32_t chunk_groups = 0;  ///< tiles that keep the device busy; tiles have 64 rows where 128 give fewer
  std::uint32_t head_subgroups = 1, head_groups = 64;  ///< product of the head
  bool head_firsts = false;  ///< decode: the head's workgroups find their first tokens in the sampler's order, so that
                             ///< the sampler does not have to
  bool unrolled = false;     ///< decode: unrolled products, whose loads llvmpipe compiles to loads of whole vectors
                             ///< (shaders/include/unrolled.glsl)
  std::uint64_t unrolled_weights =
      1u << 22;  ///< fewest weights of an FFN matrix for unrolled ternary products: more than caches hold
  std::uint32_t norm_subgroups = 1, attention_subgroups = 1;  ///< norms and attention of one token
  std::uint32_t sample_subgroups = 1, embed_subgroups = 1;    ///< the sampler, and the embedding's rows
  bool sample_slices = false;  ///< slices of the vocabulary are sorted by separate workgroups (sample_slice); else one
                               ///< workgroup draws
  std::uint32_t attention_heads = 1;  ///< most heads that share keys and values and are computed by one workgroup
  bool attention_splits = false;      ///< decode: a head's spans of positions are computed by separate workgroups
  std::uint32_t layers_parts = 0;  ///< decode: most workgroups of the resident dispatch; 0: there is no such sequence
  std::uint32_t layers_subgroups = 1;     ///< their subgroups; 1: no workgroup relies on others running; else that
                                          ///< number of 32 lanes, all workgroups at once (plan/resident.hpp)
  std::uint32_t tile_tokens = 8;          ///< tokens that share one read of a weight tile in prefill
  std::uint32_t ternary_tile_tokens = 8;  ///< tokens that share one read of a ternary weight tile, with int8 inputs
  bool norm_prologue = true;              ///< decode: every workgroup normalises and quantises the whole input
};

/// CPU drivers: workgroups of one subgroup, so that no barrier remains, and few invocations with much work.
constexpr work_division work_of_cpu() {
  return {.matmul_groups = 64,
          .group_weights = 1u << 20,
          .chunk_matmul_groups = 8,
          .head_groups = 64,
          .unrolled = true,
          .attention_heads = 2,
          .layers_parts = 8,
          .ternary_tile_tokens = 16};
}
/// GPUs. Figures for each processor were chosen on an H200 (docs/performance.md). A workgroup has at most 1,024
/// invocations where subgroups are 64 wide.
/// @param processors that each run one workgroup of a resident dispatch
constexpr work_division work_of_gpu(std::uint32_t processors) {
  return {.matmul_subgroups = 8,
          .matmul_groups = 2 * processors,
          .chunk_matmul_groups = 512,
          .chunk_tiles = true,
          .chunk_groups = 2 * processors,
          .head_subgroups = 8,
          .head_groups = 8 * processors,
          .head_firsts = true,
          .norm_subgroups = 8,
          .attention_subgroups = 16,
          .sample_subgroups = 16,
          .embed_subgroups = 4,
          .sample_slices = true,
          .attention_splits = true,
          .layers_parts = processors,
          .layers_subgroups = kernels::layers::resident_subgroups};
}

/// Processors of a GPU whose class does not state how many workgroups run at once: those of an H100.
inline constexpr std::uint32_t usual_processors = 132;

/// The division of work on devices of a class.
constexpr work_division work_of(const kernels::device_class& of) {
  if (of.is_cpu) return work_of_cpu();
  return work_of_gpu(of.resident_workgroups != 0 ? of.resident_workgroups : usual_processors);
}

}  // namespace intaglio::plan
