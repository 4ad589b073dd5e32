// SPDX-License-Identifier: MIT
// Recognises the attention sublayer of coded blocks: q, k and v, norms of heads and RoPE, attention, and the windows
// of layers.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/coded_chain.hpp"

namespace intaglio::plan {

/// Operands of the dispatch that writes the KV cache.
struct cache_operands {
  operand keys, values, rope;
  static constexpr cache_operands of(const dispatch& d) {
    cache_operands out;
    with_constants(d, kernels::kernel_list<kernels::turn_kernel, kernels::matmul_kernel>{},
                   [&](const auto&, const auto& at) {
                     out = {d[at.keys], d[at.values], d[at.rope]};
                   });
    return out;
  }
};

/// The attention sublayer that all coded blocks of a model have, and the windows of its layers.
struct coded_attention {
  kernels::turn_norms head_norms = kernels::turn_norms::none;
  bool turns = false, biased = false, has_sinks = false;
  float rope_factor = 1.f;
  std::uint32_t ring = 0, full_every = 1, window = 0;

  /// The sublayer of the first kind of block, without windows.
  static constexpr coded_attention of(const coded_chain& chain) {
    coded_attention out;
    out.has_sinks = chain.attention_at(chain.blocks[0].attends).has_sinks != 0;
    const std::size_t turn = chain.blocks[0].turn;
    if (turn == no_step) return out;
    const auto c = chain.turn_at(turn);
    out.turns = true, out.head_norms = c.norms, out.biased = c.biased != 0, out.rope_factor = c.rope_factor;
    return out;
  }
  constexpr bool normalises_heads() const { return head_norms != kernels::turn_norms::none; }
  /// The dispatch that writes the KV cache.
  constexpr std::size_t with_cache(const block_steps& of) const { return turns ? of.turn : of.qkv; }

  /// Whether a kind of block has this sublayer, up to the projection.
  constexpr bool is_in(const coded_chain& chain, const block_steps& of) const {
    const decoder_config& c = chain.config;
    const auto stored = of.turn != no_step ? kernels::epilogue::store : kernels::epilogue::rope_cache;
    if (of.apart() && !chain.multiplies(of.v, chain.outer_norms, stored, c.hidden_size,
                                        chain.keys_apart(of) ? 2 * c.kv_size() : c.kv_size()))
      return false;
    if (!chain.multiplies(of.qkv, chain.outer_norms, stored, c.hidden_size, chain.stacked_rows(of))) return false;
    const auto attends = chain.attention_at(of.attends), first = chain.attention_at(chain.blocks[0].attends);
    return turns_alike(chain, of) && (attends.has_sinks != 0) == has_sinks && attends.ahead == 0 &&
           attends.cache_element == kernels::element::f16 && attends.scale == first.scale &&
           attends.softcap == first.softcap;
  }

  /// Finds which layers see all positions: all layers, or the last of every `full_every` layers. The other layers see a
  /// window. They may also see all positions but have another RoPE table, or have RoPE where the last one has none.
  constexpr bool finds_windows(const coded_chain& chain, const layer_pattern& pattern, std::uint32_t context) {
    const std::uint32_t layers = chain.config.num_hidden_layers;
    const auto steps = [&](std::uint32_t layer) -> const block_steps& { return chain.blocks[pattern(layer)]; };
    full_every = 1;
    while (full_every < layers && sees_alike(chain, steps(full_every), steps(0))) ++full_every;
    full_every = full_every < layers ? full_every + 1 : 1;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const bool last = layer % full_every == full_every - 1;
      if (!sees_alike(chain, steps(layer), steps(last ? full_every - 1 : 0))) return false;
    }
    const auto full = chain.attention_at(steps(full_every - 1).attends), other = chain.attention_at(steps(0).attends);
    if (full.window != 0 || full.ring != 0 || full.context != context) return false;
    if (const std::uint32_t n = chain.config.no_rope_layer_interval; n != 0 && n <= layers) {
      // Each layer has its own RoPE table: every n-th layer has none, and the others see all positions too.
      if (full_every != 1) return false;
      full_every = n, window = ring = context;
      return true;
    }
    if (full_every == 1) return true;
    window = other.window != 0 ? other.window : context, ring = other.context;
    // The cache is a ring, or holds all positions if the context is not longer.
    return (other.ring != 0) == (ring != context);
  }

 private:
  /// Whether q, k and v of a kind of block reach attention as they do in the first kind.
  constexpr bool turns_alike(const coded_chain& chain, const block_steps& of) const {
    if ((of.turn != no_step) != turns) return false;
    if (of.turn == no_step) return !of.apart();
    const auto c = chain.turn_at(of.turn), first = chain.turn_at(chain.blocks[0].turn);
    const std::uint32_t stacked = chain.stacked_rows(of), apart = of.apart_rows(chain.period);
    return c.norms == first.norms && c.biased == first.biased && c.v_norm == 0 &&
           (c.norms != kernels::turn_norms::all_heads || c.biased == 0) && c.rope_factor == first.rope_factor &&
           (c.norms == kernels::turn_norms::none || c.eps == chain.eps()) && c.q_stride == stacked &&
           c.k_stride == (chain.keys_apart(of) ? apart : stacked) && c.v_stride == (of.apart() ? apart : stacked);
  }
  /// Whether two kinds of blocks have the same window and the same RoPE table.
  constexpr bool sees_alike(const coded_chain& chain, const block_steps& a, const block_steps& b) const {
    const auto one = chain.attention_at(a.attends), other = chain.attention_at(b.attends);
    return one.window == other.window && one.ring == other.ring && one.context == other.context &&
           cache_operands::of(chain.period[with_cache(a)]).rope == cache_operands::of(chain.period[with_cache(b)]).rope;
  }
};

}  // namespace intaglio::plan
