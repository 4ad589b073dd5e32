// SPDX-License-Identifier: MIT
// What a plan assumes of a kind of device: how wide workgroups are, how many there are, which fusions pay, how long a
// prefill chunk is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/device_classes.hpp"

namespace intaglio::plan {

/// How chunks of more than tile_tokens tokens, and passes over a batch (batch_shape), multiply coded weights. A pass
/// over drafts always has decode's bits.
enum class chunk_arithmetic : std::uint8_t {
  exact,  ///< as decode does, with its bits
  f16,    ///< weights and activations rounded to f16, sums in f32 (docs/kernels.md), several times faster with
          ///< cooperative matrices
};

/// Workgroup sizes are in subgroups, group counts in workgroups. A program carries several and picks by device.
struct profile {
  std::string_view name;
  std::span<const device_class* const> classes{};          ///< that it is made for, the strongest first
  std::uint32_t matmul_subgroups = 1, matmul_groups = 64;  ///< ternary products of one token
  std::uint32_t group_weights = 0;  ///< weights that a group of a product takes at least, two groups at least; 0: any
  std::uint32_t chunk_matmul_groups = 64;  ///< the same for a chunk, for each tile of tokens
  bool chunk_tiles =
      false;  ///< chunks: int8 products and attention by tiles of tokens, ternary_chunk and attention_chunk
  chunk_arithmetic coded_chunks =
      chunk_arithmetic::exact;  ///< chunks of models with coded weights (f32, f16, bf16, q8_0, ...)
  chunk_arithmetic chunk_attention =
      chunk_arithmetic::exact;     ///< attention of the other models' chunks, whose products are exact
  std::uint32_t chunk_groups = 0;  ///< tiles that keep the device busy: where 128 rows give fewer, they have 64
  std::uint32_t head_subgroups = 1, head_groups = 64;
  bool head_firsts =
      false;  ///< decode: the head's workgroups find the first of their tokens, so that the sampler need not
  bool unrolled = false;  ///< decode: products without loops, whose loads llvmpipe makes of whole vectors
                          ///< (shaders/include/unrolled.glsl)
  std::uint64_t unrolled_weights =
      1u << 22;  ///< of ternary products where the FFN's matrices have so many weights, more than caches hold
  bool head_screen =
      false;  ///< decode: rows as int8 say first which logits are wanted; takes half of the head's memory besides
  std::uint32_t norm_subgroups = 1, attention_subgroups = 1, sample_subgroups = 1, embed_subgroups = 1;
  bool sample_slices = false;  ///< slices of the vocabulary are sorted by workgroups of their own (sample_slice); else
                               ///< one workgroup draws
  std::uint32_t attention_heads = 1;  ///< heads that share keys and values and are done by one workgroup, at most
  bool attention_splits = false;      ///< decode: a head's spans of positions go to workgroups of their own
  std::uint32_t layers_parts = 0;  ///< decode: most workgroups that do all layers in one dispatch; 0: no such sequence
  std::uint32_t layers_subgroups =
      1;  ///< theirs; 1: none relies on others to run, else so many of 32 all at once (plan/resident.hpp)
  std::uint32_t prefill_tokens = 32;      ///< tokens of a prefill chunk, where the context has as many
  std::uint32_t long_prefill_tokens = 0;  ///< as many whole chunks at once have these of long prompts, where the device
                                          ///< has matrices (device_plan::long_prefill); 0: no more than one
  std::uint32_t logits_tokens = 32;       ///< tokens of a chunk whose logits are wanted, which take much memory
  std::uint32_t verify_tokens = 8;        ///< tokens of the widest pass over drafts, where the context has as many
  std::uint32_t tile_tokens = 8;          ///< tokens that share one read of a weight tile in prefill
  std::uint32_t ternary_tile_tokens = 8;  ///< tokens that share a weight tile of ternary products with int8
  bool norm_prologue = true;              ///< decode: every workgroup normalises and quantises for itself
  kernels::element cache_element = kernels::element::f16;
  std::uint32_t ring_size = 256;  ///< drawn tokens on their way to the host
};

namespace profiles {
/// CPU drivers: one subgroup a workgroup, so that no barrier remains, and few long invocations. The cache is f32: there
/// a conversion costs more than the bytes, and the numbers then agree with float32 implementations to the last rounding
/// of an activation.
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
/// Any GPU. Figures chosen on an H200 (docs/performance.md); a workgroup has at most 1,024 invocations where subgroups
/// are 64 wide.
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
/// portable whose chunks leave decode's bits, whatever the weights.
inline constexpr profile exact = [] {
  profile out = portable;
  out.name = "exact";
  out.coded_chunks = chunk_arithmetic::exact;
  return out;
}();
/// portable whose chunks attend in f16, by cooperative matrices, where products are integers too: long prompts of
/// BitNet models sooner, in other bits than decode's.
inline constexpr profile attends_in_f16 = [] {
  profile out = portable;
  out.name = "attends_in_f16";
  out.chunk_attention = chunk_arithmetic::f16;
  return out;
}();
/// portable with a screened head: the same tokens, sooner where they are greedy or of sampling with top-k or min-p.
inline constexpr profile screened = [] {
  profile out = portable;
  out.name = "screened";
  out.head_groups = 528;
  out.head_screen = true;
  return out;
}();
}  // namespace profiles

/// A profile whose caches are held in another element: q8_0 takes 8.5 bits an element, q4_0 4.5, of heads of a multiple
/// of 64 channels. Decode with such a cache goes by the chain of dispatches.
constexpr profile with_cache(const profile& from, kernels::element type) {
  profile out = from;
  out.cache_element = type;
  // What unpacks codes waits less where two workgroups share a multiprocessor (docs/performance.md, "Long contexts").
  if (kernels::is_coded(type)) out.attention_subgroups = (std::min)(out.attention_subgroups, 8u);
  return out;
}

}  // namespace intaglio::plan
