// SPDX-License-Identifier: MIT
// A sequence of chunks for several times as many tokens. It has the same dispatches with more workgroups. Each value
// in the arena has its tokens one after the other, so all offsets and sizes there grow by the same factor.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>

#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// A kernel of chunks whose workgroups split the tokens.
struct shares_chunk {
  kernels::kernel which;
  std::size_t axis = 1;  ///< the axis of its workgroups that counts tokens, or tiles of tokens
  std::uint32_t room = none, lists = none;

  static constexpr std::uint32_t none = kernels::max_specialization_constants;
  /// With the id of a constant that is the number of tokens of the widest pass.
  template <auto Member>
  constexpr shares_chunk with_room() const {
    return {which, axis, kernels::constant_id<Member>, lists};
  }
  /// With the id of a constant that is not 0 where tokens come in lists of experts.
  template <auto Member>
  constexpr shares_chunk with_lists() const {
    return {which, axis, room, kernels::constant_id<Member>};
  }
};
/// The kernels of chunks whose workgroups split the tokens.
inline constexpr shares_chunk chunk_kernels[] = {
    {kernels::kernel::embed},
    {kernels::kernel::norm_quantize},
    {kernels::kernel::rms_norm},
    {kernels::kernel::norm_add},
    {kernels::kernel::gated},
    {kernels::kernel::turn},
    shares_chunk{kernels::kernel::quantize_f16}.with_lists<&kernels::quantize_f16_kernel::constants::experts_used>(),
    shares_chunk{kernels::kernel::matmul}.with_lists<&kernels::matmul_kernel::constants::experts_used>(),
    {kernels::kernel::ternary_matmul},
    {kernels::kernel::ternary_float},
    {kernels::kernel::attention},
    shares_chunk{kernels::kernel::matmul_chunk, 0}
        .with_room<&kernels::matmul_chunk_kernel::constants::max_tokens>()
        .with_lists<&kernels::matmul_chunk_kernel::constants::experts_used>(),
    shares_chunk{kernels::kernel::ternary_chunk}.with_room<&kernels::ternary_chunk_kernel::constants::max_tokens>(),
    shares_chunk{kernels::kernel::attention_chunk}.with_room<&kernels::attention_chunk_kernel::constants::max_tokens>(),
    shares_chunk{kernels::kernel::attention_f16}.with_room<&kernels::attention_f16_kernel::constants::max_tokens>(),
};
/// How a dispatch of a chunk shares tokens among workgroups; null where it cannot be widened.
constexpr const shares_chunk* shares_chunk_of(const dispatch& d) {
  for (const shares_chunk& each : chunk_kernels)
    if (each.which == d.kernel)
      return each.lists != shares_chunk::none && d.specialization[each.lists] != 0 ? nullptr : &each;
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
  if (how.room != shares_chunk::none) out.specialization[how.room] *= times;
  return out;
}

}  // namespace intaglio::plan
