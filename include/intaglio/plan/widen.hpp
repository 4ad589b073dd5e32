// SPDX-License-Identifier: MIT
// A sequence of chunks for several times as many tokens. It has the same dispatches with more workgroups. Each value
// in the arena has its tokens one after the other, so all offsets and sizes there grow by the same factor.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// A kernel of chunks whose workgroups split the tokens.
struct shares_chunk {
  kernels::kernel which;
  std::size_t axis = 1;      ///< the axis of its workgroups that counts tokens, or tiles of tokens
  bool has_room = false;     ///< its constant max_tokens is the number of tokens of the widest pass
  std::string_view lists{};  ///< constant that is not 0 where tokens come in lists of experts; empty: no such constant
};
inline constexpr shares_chunk chunk_kernels[] = {
    {kernels::kernel::embed},
    {kernels::kernel::norm_quantize},
    {kernels::kernel::rms_norm},
    {kernels::kernel::norm_add},
    {kernels::kernel::gated},
    {kernels::kernel::turn},
    {kernels::kernel::quantize_f16, 1, false, "experts_used"},
    {kernels::kernel::matmul, 1, false, "experts_used"},
    {kernels::kernel::ternary_matmul},
    {kernels::kernel::ternary_float},
    {kernels::kernel::attention},
    {kernels::kernel::matmul_chunk, 0, true, "experts_used"},
    {kernels::kernel::ternary_chunk, 1, true},
    {kernels::kernel::attention_chunk, 1, true},
    {kernels::kernel::attention_f16, 1, true},
};
constexpr const shares_chunk* shares_chunk_of(const dispatch& d) {
  const kernels::kernel_interface& face = kernels::interface_of(d.kernel);
  for (const shares_chunk& each : chunk_kernels)
    if (each.which == d.kernel)
      return !each.lists.empty() && d.specialization[face.specialization_index(each.lists)] != 0 ? nullptr : &each;
  return nullptr;
}

/// The most tokens of a chunk's tile. Only chunks in multiples of it are widened, since they have no partial tiles.
inline constexpr std::uint32_t most_chunk_tile = 128;

/// Number of chunks that a plan's long prompts take at once; 1: a single chunk. It is 1 in four cases: a ring cache is
/// too short, tokens come in lists of experts, layers process a chunk token by token, or the plan is a stage of a cut,
/// whose stages work at once because each has another chunk.
constexpr std::uint32_t chunks_at_once(const table& t) {
  const std::uint32_t chunk = t.prefill.max_tokens;
  if (chunk == 0 || chunk % most_chunk_tile != 0 || t.model_layers != 0) return 1;
  for (std::uint8_t kind = 0; kind < t.pattern.kinds(); ++kind) {
    const layer_cache& own = t.caches[kind];
    if (own.positions != 0 && own.positions < t.context && own.positions < own.window + t.max_tokens - 1) return 1;
  }
  for (const auto part : {t.prefill.prologue, t.prefill.period, t.prefill.epilogue})
    for (const dispatch& d : part)
      if (shares_chunk_of(d) == nullptr) return 1;
  return t.max_tokens / chunk;
}

/// Widens a dispatch. @param d of a chunk  @param times factor of the number of tokens
constexpr dispatch widened(const dispatch& d, std::uint32_t times) {
  dispatch out = d;
  for (operand& each : out.push)
    if (each.where == region::arena) each.offset *= times;
  for (access& each : out.accesses)
    if (each.where == region::arena) each.offset *= times, each.bytes *= times;
  const shares_chunk& how = *shares_chunk_of(d);
  out.groups[how.axis] *= times;
  if (how.has_room) out.specialization[kernels::interface_of(d.kernel).specialization_index("max_tokens")] *= times;
  return out;
}

}  // namespace intaglio::plan
