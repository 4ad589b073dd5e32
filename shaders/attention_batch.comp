// SPDX-License-Identifier: MIT
// Attention of a small batch of tokens: one token (y) and up to two heads that share keys and values (x) per workgroup.
// An invocation has a position of a span of 256 for scores, then four channels of an octet for values. All values that
// cross invocations go through shared memory: subgroup operations are slow where control flow depends on a loaded
// position (docs/performance.md, "Subgroup operations and control flow").
// variant: attention_batch -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint kv_heads = 1;
layout(constant_id = 3) const uint head_dim = 64;
layout(constant_id = 4) const uint context = 256;
layout(constant_id = 5) const uint cache_element = 0;
layout(constant_id = 6) const uint heads_together = 1;
layout(constant_id = 7) const float scale = 0.0;
layout(constant_id = 8) const uint window = 0;
layout(constant_id = 9) const uint ring = 0;
layout(constant_id = 10) const uint slot_words = 0;
layout(constant_id = 11) const uint page_size = 0;
layout(constant_id = 12) const float softcap = 0.0;
layout(constant_id = 13) const uint has_sinks = 0;
layout(constant_id = 14) const uint ahead = 0;
layout(local_size_x_id = 0) in;
#define attention_window window
#define attention_ring ring
#define attention_scale scale
#define attention_softcap softcap
#define attention_sinks has_sinks
#include "attention.glsl"
#include "attention_range.glsl"
#include "coded_cache.glsl"

layout(push_constant, scalar) uniform Push {
  Words query, keys, values, output_, state;
  Floats sinks;
};
#define PAGED
#include "slots.glsl"

const uint octets_of_span = 32u, octets_of_half = 16u;
const uint most_quads = 64u / heads_together,
           row_quads = quads < most_quads ? quads : most_quads;  // channels that are summed together
shared vec4 queries[heads_together * quads];
shared vec4 scores[heads_together * octets_of_span * 2u];       // probabilities later; an octet has two quads
shared vec4 greatest_of[heads_together * octets_of_span / 4u];  // octets
shared vec4 totals[heads_together * octets_of_span / 4u];       // of their probabilities
shared uint octet_offsets[octets_of_span];                      // of octets in the cache, in octets
shared vec4 octet_sums[heads_together * octets_of_half * row_quads];
// Totals of the spans so far; except for the first, only the invocation that writes a number reads it.
shared float span_greatest[heads_together];
shared vec4 half_sums[heads_together * row_quads], sums[heads_together * quads];
shared vec2 weights[heads_together * row_quads],
    factors[heads_together * row_quads];  // maximum and total, and the factors that merge spans

#define own gl_LocalInvocationIndex
#define each_head(h)                        \
  [[unroll]] for (uint h = 0u; h < 2u; ++h) \
    if (h < heads_together)

// The token sees positions `seen` to `count` - 1 of the span.
uint seen, count;
bool has_octet(uint octet) { return 8u * octet < count && (window == 0u || octet >= seen / 8u); }
bool is_seen(uint position) { return position < count && (window == 0u || position >= seen); }

float greatest_quad(vec4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }

// Chunks first .. first + 3 of a position's key; past the end the last chunk. Loads of codes are not unrolled: their
// copies would be a third of the module.
#define LATER_UNROLLED [[dont_unroll]]  // as in subgroup.glsl
void load_quarters(out raw_chunk raw[4], uint key, uint offset, uint position, uint first) {
#define quarter_index(c) key + (offset * chunks + min(first + (c), chunks - 1u)) * 8u + (position & 7u)
  if (coded_cache) {
    LATER_UNROLLED for (uint c = 0u; c < 4u; ++c) raw[c] = load_cached_key(keys, quarter_index(c));
  } else {
    [[unroll]] for (uint c = 0u; c < 4u; ++c)
      raw[c] = load_key(keys, quarter_index(c));
  }
}

// Computes the scores of one position. offset: of its octet; key: the head's first chunk of keys.
void score_position(uint position, uint key, uint offset) {
  vec4 a[8];  // four quarters of each head
  [[unroll]] for (uint k = 0u; k < 8u; ++k)
    a[k] = vec4(0.0);
  raw_chunk raw[4],
      next[4];  // a chunk of each quarter: little code in the loop, which every multiprocessor fetches anew
  load_quarters(next, key, offset, position, 0u);
  for (uint first = 0u; first < chunks; first += 4u) {
    [[unroll]] for (uint c = 0u; c < 4u; ++c)
      raw[c] = next[c];
    load_quarters(next, key, offset, position, first + 4u);
    [[unroll]] for (uint c = 0u; c < 4u; ++c)
      if (chunks % 4u == 0u || first + c < chunks) {
        key_chunk k = widened_key(raw[c]);
        each_head(h) {
          uint quad = h * quads + 2u * (first + c);
          precise vec4 low = queries[quad] * k.low, high = queries[quad + 1u] * k.high;
          a[4u * h + c] = a[4u * h + c] + low;
          a[4u * h + c] = a[4u * h + c] + high;
        }
      }
  }
  each_head(h) {
    precise float quarter[4];
    [[unroll]] for (uint k = 0u; k < 4u; ++k)
      quarter[k] = (a[4u * h + k].x + a[4u * h + k].y) + (a[4u * h + k].z + a[4u * h + k].w);
    precise float sum = (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
    scores[(h * octets_of_span + (position >> 3)) * 2u + (position >> 2 & 1u)][position & 3u] = scaled_score(sum);
  }
}

// Index of quad `quad` of the values of an item's octet, for all its positions. A position that is not seen is replaced
// by the nearest one that is.
uint value_index(uint first_row, uint octet, uint r, uint quad) {
  uint at = min(8u * octet + r, count - 1u);
  at = window == 0u ? at : max(at, seen);
  return (first_row + 8u * octet_offsets[at >> 3] + (at & 7u)) * quads + quad;
}
void load_octet(out uvec4 raw[8], uint first_row, uint octet, uint quad) {
  if (coded_cache) {
    LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) raw[r] =
        load_cached_value(values, value_index(first_row, octet, r, quad));
  } else {
    [[unroll]] for (uint r = 0u; r < 8u; ++r)
      raw[r] = load_value(values, value_index(first_row, octet, r, quad));
  }
}
void sum_octet(uvec4 raw[8], uint octet, uint item) {
  precise vec4 a[2];
  a[0] = a[1] = vec4(0.0);
  [[unroll]] for (uint r = 0u; r < 8u; ++r) {
    vec4 value = widened_cached_value(raw[r]);
    each_head(h) {
      precise vec4 product = scores[(h * octets_of_span + octet) * 2u + r / 4u][r & 3u] * value;
      a[h] = a[h] + product;
    }
  }
  each_head(h) octet_sums[h * octets_of_half * row_quads + item] = has_octet(octet) ? a[h] : vec4(0.0);
}

// Maximum and total of a head's span.
vec2 span_weight(uint h) {
  precise float group[4];
  [[unroll]] for (uint g = 0u; g < 4u; ++g) {
    vec4 low = totals[h * octets_of_span / 4u + 2u * g], high = totals[h * octets_of_span / 4u + 2u * g + 1u];
    group[g] = 0.0;  // a missing octet is +0, which changes no sum
    [[unroll]] for (uint o = 0u; o < 8u; ++o)
      group[g] = group[g] + (o < 4u ? low[o & 3u] : high[o & 3u]);
  }
  precise float total = (group[0] + group[1]) + (group[2] + group[3]);
  return vec2(span_greatest[h], total);
}

// Sums up the octets of half a span from `first` on; after the last half adds the span to the totals.
void sum_half(uint row, uint first, bool merges) {
  bool last = 8u * (first + octets_of_half) >= count || first != 0u;
  for (uint item = own; item < heads_together * row_quads; item += workgroup_size) {
    uint h = item / row_quads, quad = item % row_quads, at = h * quads + min(row_quads * row + quad, quads - 1u);
    precise vec4 group[2];
    [[unroll]] for (uint g = 0u; g < 2u; ++g) {
      group[g] = vec4(0.0);
      [[unroll]] for (uint o = 0u; o < 8u; ++o)
        group[g] = group[g] + octet_sums[(h * octets_of_half + 8u * g + o) * row_quads + quad];
    }
    precise vec4 all = group[0] + group[1];
    if (first != 0u) all = half_sums[item] + all;
    half_sums[item] = all;
    if (last) {
      if (row == 0u) {
        vec2 later = span_weight(h), weight = weights[item];
        if (merges) factors[item] = merge_factors(weight, later);
        weights[item] = merges ? weight : later;
      }
      if (row_quads * row + quad < quads) sums[at] = merges ? merged_sums(sums[at], all, factors[item]) : all;
    }
  }
}

// Adds a span to the totals. key: octets of the cache before the head's octets; first_row: rows before its rows.
void attend_span(uint first, uint key, uint first_row, uint slot, uint own_slot, bool merges) {
  for (uint position = own; position < span_positions; position += workgroup_size)
    if (has_octet(position >> 3)) {
      uint offset = batched ? pool_offset(own_slot, first + position) / 8u : slot / 8u + (position >> 3);
      if ((position & 7u) == 0u) octet_offsets[position >> 3] = offset;
      if (is_seen(position)) score_position(position, key, offset);
      else
        each_head(h) scores[(h * octets_of_span + (position >> 3)) * 2u + (position >> 2 & 1u)][position & 3u] =
            minus_infinity;
    }
  barrier();
  for (uint item = own; item < heads_together * octets_of_span; item += workgroup_size)
    greatest_of[item >> 2][item & 3u] =
        has_octet(item % octets_of_span) ? max(greatest_quad(scores[2u * item]), greatest_quad(scores[2u * item + 1u]))
                                         : minus_infinity;
  barrier();
  // Neighbours have the same position of another head, so that none is idle while there are positions.
  uint head = own % heads_together;
  float greatest = minus_infinity;
  [[unroll]] for (uint i = 0u; i < octets_of_span / 4u; ++i)
    greatest = max(greatest, greatest_quad(greatest_of[head * octets_of_span / 4u + i]));
  if (own < heads_together) span_greatest[own] = greatest;
  for (uint item = own; item < heads_together * span_positions; item += workgroup_size) {
    uint position = item / heads_together, quad = (head * octets_of_span + (position >> 3)) * 2u + (position >> 2 & 1u);
    if (has_octet(position >> 3)) {
      precise float below = scores[quad][position & 3u] - greatest;
      scores[quad][position & 3u] = is_seen(position) ? canonical_exp(below) : 0.0;
    }
  }
  barrier();
  for (uint item = own; item < heads_together * octets_of_span; item += workgroup_size)
    totals[item >> 2][item & 3u] =
        has_octet(item % octets_of_span) ? octet_total(scores[2u * item], scores[2u * item + 1u]) : 0.0;
  for (uint row = 0u; row * row_quads < quads; ++row)
    for (uint begin = 0u; begin < octets_of_span; begin += octets_of_half)
      if (8u * begin < count) {
        uvec4 raw[8], later[8];  // of two octets, in flight together
        const uint items = octets_of_half * row_quads;
        for (uint item = own; item < items; item += 2u * workgroup_size) {
          uint item_after = min(item + workgroup_size, items - 1u);
          load_octet(raw, first_row, begin + item / row_quads, min(row_quads * row + item % row_quads, quads - 1u));
          load_octet(later, first_row, begin + item_after / row_quads,
                     min(row_quads * row + item_after % row_quads, quads - 1u));
          for (uint i = 0u; i < 2u; ++i) {
            uint which = item + i * workgroup_size;
            if (which < items) sum_octet(raw, begin + which / row_quads, which);
            [[unroll]] for (uint r = 0u; r < 8u; ++r)
              raw[r] = later[r];
          }
        }
        barrier();
        sum_half(row, begin, merges);
        barrier();  // octet_sums, and after the last half all of the span's data, have been read
      }
}

void main() {
  uvec2 now = word_pair(state, 0u);  // position and count
  uint token = gl_WorkGroupID.y, first_head = gl_WorkGroupID.x * heads_together;
  if (token >= now.y) return;
  uvec2 range = seen_by(now.x, token, now.y);
  uint own_slot = 0u;
  if (batched) {
    own_slot = slot_at(token);
    now = word_pair(state, own_slot / 2u);
    range.y = min(now.x + 1u, limit_of(own_slot));
    range.x = first_seen(range.y);
    if (now.y == 0u) return;
  }
  uint start = range.x, end = range.y;
  if (end == 0u) return;
  uint first_quad = (token * heads + first_head) * quads, kv_head = first_head / (heads / kv_heads);
  for (uint item = own; item < heads_together * quads; item += workgroup_size)
    queries[item] = FloatQuads(query).at[first_quad + item];
  barrier();
  uint last = (end - 1u) / span_positions;
  for (uint span = start / span_positions; span <= last; ++span) {
    uint first = span * span_positions;
    uint slot = batched ? 0u : span_slot(first);
    count = min(end - first, span_positions);
    seen = window != 0u && start > first ? start - first : 0u;
    attend_span(first, key_index(kv_head, 0u, 0u), kv_head * value_rows, slot, own_slot, first > start);
  }
  for (uint item = own; item < heads_together * row_quads; item += workgroup_size)
    for (uint row = 0u; row * row_quads < quads; ++row) {
      uint quad = row_quads * row + item % row_quads, at = item / row_quads * quads + quad;
      if (quad < quads) {
        float sink = has_sinks != 0u ? sinks.at[first_head + item / row_quads] : 0.0;
        FloatQuads(output_).at[first_quad + at] = attended(sums[at], weights[item], sink);
      }
    }
}
