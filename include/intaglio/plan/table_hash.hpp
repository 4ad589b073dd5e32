// SPDX-License-Identifier: MIT
// A hash of a table, which identifies a plan in pipeline caches and saved sessions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// A hash with one more word. The multiplier is 2^64 divided by the golden ratio.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

/// Hash of everything that changes a pipeline, the recorded commands, or the weights' layout in memory. Names are not
/// hashed.
constexpr std::uint64_t hash_of(const table& t) {
  std::uint64_t hash = 0;
  const auto mix = [&](auto... words) { ((hash = mixed(hash, static_cast<std::uint64_t>(words))), ...); };
  mix(t.context, t.max_tokens, t.ring_size, t.cache_element, t.global_weight_bytes, t.layer_weight_bytes,
      t.pattern.period);
  for (std::uint32_t i = 0; i < t.pattern.period; ++i) {
    const layer_cache cache = i < t.caches.size() ? t.caches[i] : layer_cache{};
    mix(t.pattern.blocks[i], cache.positions, cache.window, cache.key_bytes, cache.value_bytes);
    if (cache.kept_bytes != 0) mix(cache.kept_bytes);
    if (cache.shared) mix(1);
  }
  const std::uint64_t every_kind = ~std::uint64_t{0} >> (64 - t.pattern.kinds());
  for (const weight& w : t.weights) {
    mix(w.source_count, w.per_layer, w.layout, w.order, w.codec, w.head_dim, w.rows, w.columns, w.offset, w.bytes);
    for (const auto rows : w.source_rows) mix(rows);
    if (w.per_layer && (w.kinds & every_kind) != every_kind) mix(w.kinds);
    if (w.scale != 1.f) mix(std::bit_cast<std::uint32_t>(w.scale));
    if (w.rope.no_rope_interval != 0) mix(w.rope.no_rope_interval);
    if (w.rope.turning_pairs != 0) mix(w.rope.turning_pairs);
    if (!w.rope.scaling.truncate) mix(1);
    if (w.rope.rotary_dim != 0 || w.rope.long_context) mix(w.rope.rotary_dim, w.rope.long_context);
    if (w.layout == weight_layout::rope_turns)
      mix(std::bit_cast<std::uint32_t>(w.rope.theta), w.rope.scaling.type,
          std::bit_cast<std::uint32_t>(w.rope.scaling.factor),
          std::bit_cast<std::uint32_t>(w.rope.scaling.low_freq_factor),
          std::bit_cast<std::uint32_t>(w.rope.scaling.high_freq_factor),
          w.rope.scaling.original_max_position_embeddings);
  }
  for (const sequence* s :
       {&t.decode, &t.prefill, &t.logits, &t.verify, &t.resident_decode, &t.batch, &t.resident_batch, &t.moves}) {
    if (s->batched) mix(t.shape.slot_count, t.shape.page_size, t.shape.pages);
    else if (s == &t.batch || s == &t.resident_batch || s == &t.moves) continue;
    mix(s->max_tokens, s->layers, s->arena_bytes, s->residual_offset, s->logits_offset, s->blank_offset, s->blank_bytes,
        s->long_from, s->has_head, s->has_sampler);
    for (const auto part : {s->prologue, s->period, s->epilogue, s->resident, s->resident_long}) {
      mix(part.size());
      for (const auto& d : part) {
        mix(static_cast<std::uint64_t>(d.kernel) | std::uint64_t{d.subgroups} << 8 | std::uint64_t{d.barrier} << 40 |
            std::uint64_t{d.block} << 48);
        mix(d.activation == nullptr ? 0 : d.activation->hash());
        for (const auto word : d.groups) mix(word);
        mix(d.least_groups);
        for (const auto word : d.specialization) mix(word);
        for (const auto& each : d.push)
          mix(static_cast<std::uint64_t>(each.where) | std::uint64_t{each.slot} << 8, each.offset, each.layer_stride);
      }
    }
  }
  return hash;
}

}  // namespace intaglio::plan
