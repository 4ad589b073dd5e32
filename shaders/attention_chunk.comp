// SPDX-License-Identifier: MIT
// Attention of one head (x) for 8 neighbouring tokens (y), which share the loads of keys and values. 128 parties,
// mostly one invocation each, compute a span of 256 positions at a time: four groups of 32 parties have 64 positions
// each. For scores a party has 4 tokens and 4 positions, for sums of values 4 channels and all tokens. The bits are
// those of the attention kernel: docs/kernels.md has the order of operations.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variant: attention_chunk -DWIDE_LOADS=0 -DTOGETHER=1
// variant: attention_f16_portable -DWIDE_LOADS=0 -DTOGETHER=tiles_of_f16
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint kv_heads = 1;
layout(constant_id = 3) const uint head_dim = 64;
layout(constant_id = 4) const uint context = 256;
layout(constant_id = 5) const uint cache_element = 0;
layout(constant_id = 6) const uint max_tokens = 512;
layout(constant_id = 7) const float scale = 0.0;
layout(constant_id = 8) const uint window = 0;
layout(constant_id = 9) const uint ring = 0;
layout(constant_id = 10) const float softcap = 0.0;
layout(constant_id = 11) const uint has_sinks = 0;
layout(constant_id = 12) const uint ahead = 0;
layout(constant_id = 13) const uint value_dim = 0;
layout(local_size_x_id = 0) in;
const uint subgroup_width = 0u;  // nothing here depends on it
#include "subgroup.glsl"
#define attention_window window
#define attention_ring ring
#define attention_scale scale
#define attention_softcap softcap
#define attention_sinks has_sinks
const uint cached_value_dim_ = value_dim != 0u ? value_dim : head_dim;
#define cached_value_dim cached_value_dim_
#include "attention.glsl"
#include "attention_range.glsl"
#include "coded_cache.glsl"

layout(push_constant, scalar) uniform Push {
  Words query, keys, values, output_, state;
  Floats sinks;
};

const uint tile = 8u;  // kernels::attention_tile
const uint parties = 128u;
#define each_party(v) for (uint v = gl_LocalInvocationIndex; v < parties; v += workgroup_size)

// Channels of values are summed 128 at a time.
const uint row_quads = quads < 32u ? quads : 32u, head_rows = (quads + row_quads - 1u) / row_quads;
// With many channels the queries are in the buffer of sums too, after the maxima, and are loaded again for each span.
const bool shares_sums = head_dim > 128u;
const uint sum_quads = 4u * tile * row_quads, maximum_quads = tile * 16u;
const uint early_quads = maximum_quads + (shares_sums ? tile * query_quads : 0u);
shared vec4 scores[tile * span_positions / 4u];                       // probabilities later
shared vec4 sums[sum_quads > early_quads ? sum_quads : early_quads];  // of groups; before that the maxima of parties
shared vec4 queries[shares_sums ? 1u : tile * query_quads];
#define staged_query(i) (shares_sums ? sums[maximum_quads + (i)] : queries[i])
const uint tiles_of_f16 = head_dim > 256u ? 2u : head_dim > 128u ? 4u : 8u;  // per workgroup of attention_f16

shared float octet_totals[tile * 32u], group_totals[4u * tile], maxima[tile];
shared vec2 weights[2u * tile];  // maximum and total of the spans so far, in two buffers used in turn

uint first_token, tokens, before;

// The first position that a token of the tile sees, and the end of those it sees; a token past the pass's last token
// sees the same as the last token.
uvec2 range_of(uint token) { return seen_by(before, min(token, tokens - 1u), tokens); }
bool is_seen(uint position, uvec2 range) { return position < range.y && (window == 0u || position >= range.x); }

// Computes the party's scores, positions 64 * group + index + 16 j of the span; `end`: the end of the tile's positions.
void find_scores(uint v, uint kv_head, uint first, uint end) {
  uint group = v / 32u, index = v % 16u, token = 4u * (v / 16u % 2u);
  vec4 greatest = vec4(minus_infinity);
  if (first + 64u * group < end) {
    uint at[4];
    precise float lower[4][4], sum[4][4];
    LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) {
      at[j] = key_index(kv_head, span_slot(first) + min(64u * group + index + 16u * j, end - 1u - first), 0u);
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) lower[t][j] = sum[t][j] = 0.0;
    }
    for (uint quarter = 0u; quarter < 4u; ++quarter) {
      precise vec4 a[4][4];
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) a[t][j] = vec4(0.0);
      for (uint chunk = quarter; chunk < chunks; chunk += 4u) {
        raw_chunk raw[4];
        LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) raw[j] = load_cached_key(keys, at[j] + 8u * chunk);
        key_chunk k[4];
        LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) k[j] = widened_key(raw[j]);
        LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) {
          vec4 low = staged_query((token + t) * query_quads + 2u * chunk),
               high = staged_query((token + t) * query_quads + 2u * chunk + 1u);
          LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) {
            precise vec4 lower_product = low * k[j].low, upper_product = high * k[j].high;
            a[t][j] = a[t][j] + lower_product;
            a[t][j] = a[t][j] + upper_product;
          }
        }
      }
      LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) {
        precise float h = (a[t][j].x + a[t][j].y) + (a[t][j].z + a[t][j].w);
        if ((quarter & 1u) == 0u) sum[t][j] = h;
        else sum[t][j] = sum[t][j] + h;
        if (quarter == 1u) lower[t][j] = sum[t][j];
      }
    }
    LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) {
      uvec2 range = range_of(first_token + token + t);
      LATER_UNROLLED for (uint j = 0u; j < 4u; ++j) {
        uint position = 64u * group + index + 16u * j;
        precise float whole = lower[t][j] + sum[t][j];
        float score = scaled_score(whole);
        scores[(token + t) * 64u + position / 4u][position & 3u] = score;
        if (is_seen(first + position, range)) greatest[t] = max(greatest[t], score);
      }
    }
  }
  LATER_UNROLLED for (uint t = 0u; t < 4u; ++t) sums[(token + t) * 16u + 4u * group + index / 4u][index & 3u] =
      greatest[t];
}

// Computes probabilities of one token and two octets, and their totals.
void find_probabilities(uint v, uint first, uint end) {
  uint token = v / 16u;
  uvec2 range = range_of(first_token + token);
  vec4 four = vec4(minus_infinity);
  for (uint i = 0u; i < 16u; ++i) four = max(four, sums[token * 16u + i]);
  float greatest = max(max(four.x, four.y), max(four.z, four.w));
  if (v % 16u == 0u) maxima[token] = greatest;
  for (uint octet = v % 16u; first + 8u * octet < end && octet < 32u; octet += 16u) {
    vec4 p[2];
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
      uint at = token * 64u + 2u * octet + i;
      precise vec4 below = scores[at] - greatest;
      LATER_UNROLLED for (uint c = 0u; c < 4u; ++c) p[i][c] =
          is_seen(first + 8u * octet + 4u * i + c, range) ? canonical_exp(below[c]) : 0.0;
      scores[at] = p[i];
    }
    octet_totals[token * 32u + octet] = octet_total(p[0], p[1]);
  }
}

vec4 group_sums[8];

// Adds an octet's values for all tokens; `mixed`: some tokens see only a part of it, and values that they do not see
// may be NaN.
void add_octet(vec4 value[8], uint octet, uint position, bool mixed) {
  LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) {
    vec4 p[2];
    p[0] = scores[t * 64u + 2u * octet];
    p[1] = scores[t * 64u + 2u * octet + 1u];
    uvec2 range = mixed ? range_of(first_token + t) : uvec2(0u);
    precise vec4 a = vec4(0.0);
    LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) {
      precise vec4 product = p[r / 4u][r & 3u] * value[r];
      if (mixed && !is_seen(position + r, range)) product = vec4(0.0);
      a = a + product;
    }
    precise vec4 sum = group_sums[t] + a;
    group_sums[t] = sum;
  }
}

// Sums of a group of 8 octets for 4 channels of a row of 128, and the group's totals of probabilities.
void sum_values(uint v, uint kv_head, uint first, uint end, uint row) {
  uint group = v / 32u, quad = 32u * row + v % 32u, octets = min((end - first + 7u) / 8u, 32u),
       last = min(8u * group + 8u, octets);
  LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) group_sums[t] = vec4(0.0);
  for (uint octet = 8u * group; octet < last; ++octet) {
    uint position = first + 8u * octet;
    uvec4 raw[8];
    LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) raw[r] = load_cached_value(
        values, (kv_head * value_rows + span_slot(first) + min(position + r, end - 1u) - first) * quads +
                    min(quad, quads - 1u));
    vec4 value[8];
    LATER_UNROLLED for (uint r = 0u; r < 8u; ++r) value[r] = widened_cached_value(raw[r]);
    if (position + 8u > range_of(first_token).y || (window != 0u && position < range_of(first_token + tile - 1u).x))
      add_octet(value, octet, position, true);
    else add_octet(value, octet, position, false);
  }
  if (quad < quads)
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) sums[(group * tile + t) * row_quads + v % 32u] = group_sums[t];
  if (quad < tile) {
    precise float total = 0.0;
    for (uint octet = 8u * group; octet < last; ++octet) total = total + octet_totals[quad * 32u + octet];
    group_totals[group * tile + quad] = total;
  }
}

// Merges the span into the output, which holds sums until the token's last span divides them.
void merge_span(uint head, uint span, uint row) {
  for (uint i = gl_LocalInvocationIndex; i < tile * row_quads; i += workgroup_size) {
    uint t = i / row_quads, quad = 32u * row + i % row_quads, token = first_token + t;
    uvec2 range = range_of(token);
    uint first_span = range.x / span_positions;
    if (token >= tokens || quad >= quads || span * span_positions >= range.y || span < first_span) continue;
    uint index = (token * heads + head) * quads + quad;
    precise vec4 all =
        (sums[i] + sums[i + tile * row_quads]) + (sums[i + 2u * tile * row_quads] + sums[i + 3u * tile * row_quads]);
    precise float total =
        (group_totals[t] + group_totals[tile + t]) + (group_totals[2u * tile + t] + group_totals[3u * tile + t]);
    vec2 weight = vec2(maxima[t], total);
    if (span != first_span) {
      weight = weights[(span + 1u) % 2u * tile + t];
      vec2 f = merge_factors(weight, vec2(maxima[t], total));
      all = merged_sums(FloatQuads(output_).at[index], all, f);
    }
    if (quad == 0u) weights[span % 2u * tile + t] = weight;
    vec4 result = attended(all, weight, has_sinks != 0u ? sinks.at[head] : 0.0);
    FloatQuads(output_).at[index] = (span + 1u) * span_positions >= range.y ? result : all;
  }
}

void load_queries(uint head) {
  for (uint i = gl_LocalInvocationIndex; i < tile * query_quads; i += workgroup_size) {
    uint token = min(first_token + i / query_quads, tokens - 1u);
    vec4 each = FloatQuads(query).at[(token * heads + head) * query_quads + i % query_quads];
    if (shares_sums) sums[maximum_quads + i] = each;
    else queries[i] = each;
  }
  barrier();
}

// Computes the tokens from first_token on.
void attend(uint head) {
  uint kv_head = head / (heads / kv_heads), end = range_of(first_token + tile - 1u).y;
  if (!shares_sums) load_queries(head);
  for (uint first = range_of(first_token).x / span_positions * span_positions; first < end; first += span_positions) {
    if (shares_sums) load_queries(head);
    each_party(v) find_scores(v, kv_head, first, end);
    barrier();
    each_party(v) find_probabilities(v, first, end);
    barrier();
    LATER_UNROLLED for (uint row = 0u; row < head_rows; ++row) {
      each_party(v) sum_values(v, kv_head, first, end, row);
      barrier();
      merge_span(head, first / span_positions, row);
      barrier();
    }
  }
}

void main() {
  uvec2 now = word_pair(state, 0u);                                              // position and count
  first_token = TOGETHER * tile * (gl_NumWorkGroups.y - 1u - gl_WorkGroupID.y);  // the most work comes first
  tokens = min(now.y, max_tokens);
  before = now.x;
  if (TOGETHER == 1) {
    if (first_token < tokens) attend(gl_WorkGroupID.x);
  } else {
    for (uint i = 0u; i < TOGETHER && first_token < tokens; ++i, first_token += tile) attend(gl_WorkGroupID.x);
  }
}
