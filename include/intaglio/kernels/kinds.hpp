// SPDX-License-Identifier: MIT
// The list of kernels, and the values of specialization constants that choose between forms.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

#include "intaglio/codecs/rows.h"

namespace intaglio::kernels {

/// The kernels, by number.
enum class kernel : std::uint8_t {
  embed,
  norm_quantize,
  ternary_matmul,
  ternary_batch,
  ternary_chunk,
  ternary_float,
  attention,
  attention_chunk,
  dense_matmul,
  dense_batch,
  head_screen,
  head_rescore,
  sample,
  accept,
  layers,
  matmul,
  turn,
  norm_add,
  route,
  expert_sum,
  quantize_f16,
  matmul_chunk,
  attention_f16,
  walk_gate_up,
  walk_down,
  pages,
  walk_select,
  walk_up,
  walk_sum,
  fixed,
  matmul_batch,
  layers_coded,
  walk_trace,
  rms_norm,
  attention_batch,
  expert_tiles,
  dense_rows,
  ternary_rows,
  layers_rows,
  layers_ternary_rows,
  layers_batch,
  layers_rows_normed,
  layers_batch_normed,
  gated,
  short_conv,
  delta_net,
  head_gate,
  streams
};
/// Number of kernels.
inline constexpr std::size_t kernel_count = 48;

/// How a ternary product gets its inputs. ternary_matmul reads int8 or quantises (quantized, norm_quantize, quantize);
/// ternary_float reads f32 (plain, norm).
enum class prologue : std::uint32_t {
  quantized = 0,      ///< input is int8 [tokens, columns] with `factors`, written by norm_quantize
  norm_quantize = 1,  ///< input is f32; every workgroup normalises and quantises its own copy
  plain = 2,          ///< input is f32 [tokens, columns], used unchanged
  norm = 3,           ///< input is f32; every workgroup computes the root mean square itself
  quantize = 4,       ///< input is f32; every workgroup quantises its own copy, without a norm
};
/// The most columns that a product's workgroups quantise themselves. They keep one byte for each column in shared
/// memory, of which every device has 16 KiB.
inline constexpr std::uint32_t prologue_columns = 8192;
/// Whether a product's workgroups quantise f32 inputs.
constexpr bool quantizes(prologue value) { return value == prologue::norm_quantize || value == prologue::quantize; }

/// The use that a matrix product makes of its sums.
enum class epilogue : std::uint32_t {
  store = 0,       ///< output[token, row] = y, f32
  add = 1,         ///< output[token, row] += y (the residual stream)
  rope_cache = 2,  ///< rows are q, k, v: rotate q and k, q to output f32 [tokens, q_size], k and v to the cache
  gated = 3,       ///< rows are gate, up pairs: output[token, row / 2] = activation(gate, up), f32 [tokens, rows / 2]
                   ///< (kernels/splice.hpp)
};

/// Element type of the KV cache and of dense weights, as specialization constants. q8_0 and q4_0 are only for caches
/// (kernels/cache_layout.hpp); each has the number of its name in `codec`.
enum class element : std::uint32_t { f16 = 0, f32 = 1, bf16 = 2, q8_0 = 3, q4_0 = 4 };

/// Codec of the weights of `matmul` and the rows of `embed` (kernels/matmul_layout.hpp). The first three have the
/// numbers of `element`; the others are the rows of codecs/rows.h.
#define INTAGLIO_NAMED(name, id, ...) name = id,
enum class codec : std::uint32_t { f16 = 0, f32 = 1, bf16 = 2, INTAGLIO_BLOCK_CODECS(INTAGLIO_NAMED) };
#undef INTAGLIO_NAMED
static_assert(static_cast<std::uint32_t>(codec::q8_0) == static_cast<std::uint32_t>(element::q8_0) &&
              static_cast<std::uint32_t>(codec::q4_0) == static_cast<std::uint32_t>(element::q4_0));
/// Whether a codec stores numbers without blocks.
constexpr bool is_dense(codec type) { return type <= codec::bf16; }

/// Whether kernels that locate a codec's parts themselves support it: the resident kernels, matmul_batch_matrix and
/// matmul_batch_tiled. The other kernels support every codec (shaders/include/codec.glsl).
constexpr bool has_own_forms(codec type) { return type <= codec::q6_k; }

}  // namespace intaglio::kernels
