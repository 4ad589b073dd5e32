// SPDX-License-Identifier: MIT
// A profile: what a plan assumes of a kind of device. It sets the width and number of workgroups, the fusions that pay
// off, and the length of a prefill chunk.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/device_classes.hpp"

namespace intaglio::plan {

/// Arithmetic of products with coded weights, in chunks of more than tile_tokens tokens and in passes over a batch
/// (batch_shape). A pass over drafts always has decode's bits.
enum class chunk_arithmetic : std::uint8_t {
  exact,  ///< the kernels of decode, with the same bits
  f16,    ///< weights and activations rounded to f16, sums in f32 (docs/kernels.md), several times faster with
          ///< cooperative matrices
};

/// Workgroup sizes are in subgroups, group counts in workgroups. A program carries several and picks by device.
struct profile {
  std::string_view name;
  std::span<const device_class* const> classes{};          ///< classes for which it is made, the most capable first
  std::uint32_t matmul_subgroups = 1, matmul_groups = 64;  ///< ternary products of one token
  std::uint32_t group_weights = 0;         ///< fewest weights of a product's group, with two groups at least; 0: any
  std::uint32_t chunk_matmul_groups = 64;  ///< matmul_groups of a chunk, for each tile of tokens
  bool chunk_tiles =
      false;  ///< chunks use int8 products and attention by tiles of tokens: ternary_chunk, attention_chunk
  chunk_arithmetic coded_chunks =
      chunk_arithmetic::exact;  ///< chunks of models with coded weights (f32, f16, bf16, q8_0, ...)
  chunk_arithmetic chunk_attention =
      chunk_arithmetic::exact;     ///< attention of the other models' chunks, whose products are exact
  std::uint32_t chunk_groups = 0;  ///< tiles that keep the device busy; tiles have 64 rows where 128 give fewer
  std::uint32_t head_subgroups = 1, head_groups = 64;
  bool head_firsts = false;  ///< decode: the head's workgroups find their first tokens in the sampler's order, so that
                             ///< the sampler does not have to
  bool unrolled = false;     ///< decode: unrolled products, whose loads llvmpipe compiles to loads of whole vectors
                             ///< (shaders/include/unrolled.glsl)
  std::uint64_t unrolled_weights =
      1u << 22;  ///< fewest weights of an FFN matrix for unrolled ternary products: more than caches hold
  bool head_screen =
      false;  ///< decode: int8 rows first show which logits are needed; takes half of the head's memory in addition
  std::uint32_t norm_subgroups = 1, attention_subgroups = 1, sample_subgroups = 1, embed_subgroups = 1;
  bool sample_slices = false;  ///< slices of the vocabulary are sorted by separate workgroups (sample_slice); else one
                               ///< workgroup draws
  std::uint32_t attention_heads = 1;  ///< most heads that share keys and values and are computed by one workgroup
  bool attention_splits = false;      ///< decode: a head's spans of positions are computed by separate workgroups
  std::uint32_t layers_parts = 0;  ///< decode: most workgroups of the resident dispatch; 0: there is no such sequence
  std::uint32_t layers_subgroups = 1;  ///< their subgroups; 1: no workgroup relies on others running; else that number
                                       ///< of 32 lanes, all workgroups at once (plan/resident.hpp)
  std::uint32_t prefill_tokens = 32;   ///< tokens of a prefill chunk; fewer if the context is shorter
  std::uint32_t long_prefill_tokens = 0;  ///< most tokens that long prompts take at once in whole chunks, on devices
                                          ///< with cooperative matrices (device_plan::long_prefill); 0: one chunk
  std::uint32_t logits_tokens = 32;       ///< tokens of a chunk whose logits are returned, which take much memory
  std::uint32_t verify_tokens = 8;        ///< tokens of the widest pass over drafts; fewer if the context is shorter
  std::uint32_t tile_tokens = 8;          ///< tokens that share one read of a weight tile in prefill
  std::uint32_t ternary_tile_tokens = 8;  ///< tokens that share one read of a ternary weight tile, with int8 inputs
  bool norm_prologue = true;              ///< decode: every workgroup normalises and quantises the whole input
  kernels::element cache_element = kernels::element::f16;
  std::uint32_t ring_size = 256;  ///< drawn tokens that the ring to the host holds
};

namespace profiles {
/// CPU drivers: workgroups of one subgroup, so that no barrier remains, and few invocations with much work. The cache
/// is f32: a conversion costs more than the bytes on a CPU, and results then agree with float32 implementations to the
/// last rounding of an activation.
inline constexpr profile cpu{.name = "cpu",
                             .classes = classes::cpus,
                             .matmul_groups = 64,
                             .group_weights = 1u << 20,
                             .chunk_matmul_groups = 8,
                             .head_groups = 64,
                             .unrolled = true,
                             .attention_heads = 2,
                             .layers_parts = 8,
                             .prefill_tokens = 32,
                             .ternary_tile_tokens = 16,
                             .cache_element = kernels::element::f32};
/// Any GPU. Figures were chosen on an H200 (docs/performance.md). A workgroup has at most 1,024 invocations where
/// subgroups are 64 wide.
inline constexpr profile portable{.name = "portable",
                                  .classes = classes::gpus,
                                  .matmul_subgroups = 8,
                                  .matmul_groups = 264,
                                  .chunk_matmul_groups = 512,
                                  .chunk_tiles = true,
                                  .coded_chunks = chunk_arithmetic::f16,
                                  .chunk_groups = 264,
                                  .head_subgroups = 8,
                                  .head_groups = 1056,
                                  .head_firsts = true,
                                  .norm_subgroups = 8,
                                  .attention_subgroups = 16,
                                  .sample_subgroups = 16,
                                  .embed_subgroups = 4,
                                  .sample_slices = true,
                                  .attention_splits = true,
                                  .layers_parts = 132,
                                  .layers_subgroups = kernels::layers::resident_subgroups,
                                  .prefill_tokens = 512,
                                  .long_prefill_tokens = 2048,
                                  .logits_tokens = 64,
                                  .verify_tokens = 16};
/// The profile portable with chunks that have decode's bits, for all codecs.
inline constexpr profile exact = [] {
  profile out = portable;
  out.name = "exact";
  out.coded_chunks = chunk_arithmetic::exact;
  return out;
}();
/// The profile portable with f16 attention of chunks by cooperative matrices, also where products are integers. Long
/// prompts of BitNet models are faster, and their bits differ from decode's.
inline constexpr profile attends_in_f16 = [] {
  profile out = portable;
  out.name = "attends_in_f16";
  out.chunk_attention = chunk_arithmetic::f16;
  return out;
}();
/// The profile portable with a screened head. It gives the same tokens, faster for greedy decoding and for sampling
/// with top-k or min-p.
inline constexpr profile screened = [] {
  profile out = portable;
  out.name = "screened";
  out.head_groups = 528;
  out.head_screen = true;
  return out;
}();
}  // namespace profiles

/// A profile whose caches have another element: q8_0 takes 8.5 bits an element, q4_0 4.5; heads must have a multiple of
/// 64 channels. Decode with such a cache runs the chain of dispatches.
constexpr profile with_cache(const profile& from, kernels::element type) {
  profile out = from;
  out.cache_element = type;
  // Unpacking codes stalls less if two workgroups share a multiprocessor (docs/performance.md, "Long contexts").
  if (kernels::is_coded(type)) out.attention_subgroups = (std::min)(out.attention_subgroups, 8u);
  return out;
}

}  // namespace intaglio::plan
