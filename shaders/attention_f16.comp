// SPDX-License-Identifier: MIT
// Attention of one head (x) for 64 neighbouring tokens (y), 32 if heads have more than 128 channels, or 16 if they have
// more than 256, by cooperative f16 matrices: scores and sums in f32, probabilities as f16, sums rescaled when the
// running maximum rises. A subgroup has 16 tokens; beyond 128 channels two subgroups share 16 tokens, with half of the
// channels each, and beyond 256 channels four subgroups, with a quarter each. With FRAGMENTS, up
// to 128 channels, scores stay in registers: of a matrix, invocation 4 g + t of 32 has tokens g and g + 8 and columns 2
// t, 2 t + 1 and these + 8, in pairs of columns. In a matrix of tokens a token's pairs are adjacent; in a matrix of
// sums they are either adjacent or alternate, which a matrix of numbers shows at run time (the proof at load checks the
// rest).
// variant: attention_f16 -DWIDE_LOADS=0 -DFRAGMENTS=0 -DEMULATED=0
// variant: attention_fragments -DWIDE_LOADS=0 -DFRAGMENTS=1 -DEMULATED=0
// variant: tests/attention_fragments_emulated -DWIDE_LOADS=0 -DFRAGMENTS=1 -DEMULATED=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if !EMULATED
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#endif
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 128;
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
const uint subgroup_width = 32u;
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

// Subgroups that share tokens; tokens of the workgroup, and positions of a step; each subgroup's channels of a query or
// key, and of a value, in fragments of 16.
const uint parts = head_dim > 256u ? 4u : head_dim > 128u ? 2u : 1u, tile = 64u / parts;
const uint fragments = head_dim / 16u / parts, value_fragments = cached_value_dim / 16u / parts;
// Rows of channels of queries, keys or values, 16 bytes longer, so that neighbours begin in different banks. Also rows
// of scores of a subgroup's tokens, later of their probabilities, and of factors.
const uint row_stride = chunks + 1u, score_stride = tile / 4u + 2u;
shared uvec4 staged[tile * row_stride];
#if !FRAGMENTS
shared uvec4 scores[4u * 16u * score_stride];
shared uvec4 spread[4u * 64u];
#endif

const uint items = tile * chunks, slots = items / 128u + (items % 128u != 0u ? 1u : 0u);
const uint value_items = tile * value_chunks, value_slots = value_items / 128u + (value_items % 128u != 0u ? 1u : 0u);
uvec4 coming[slots];  // eight channels of a position; values have no more channels than keys

// The first position that a token sees, and the end of those it sees. now: position and count of the pass.
uvec2 range_of(uvec2 now, uint token) { return seen_by(now.x, token, now.y); }

uint rounded(vec2 pair) { return packFloat2x16(f16vec2(pair)); }
uvec4 rounded(key_chunk k) {
  return uvec4(rounded(k.low.xy), rounded(k.low.zw), rounded(k.high.xy), rounded(k.high.zw));
}
// What a load returns, before it goes to shared memory: f16, rounded from f32 if the cache has f32, or codes.
uvec4 on_its_way(raw_chunk raw) { return cache_element == element_f32 ? rounded(widened_key(raw)) : raw.low; }
uvec4 arrived(uvec4 eight) { return coded_cache ? rounded(widened_key(raw_chunk(eight, uvec4(0u)))) : eight; }
raw_chunk load_value_chunk(uint index) {
  if (coded_cache) return raw_chunk(load_value_codes(values, index), uvec4(0u));
  return load_key(values, index);
}

uint lowest;  // first position that the first token sees

// The cache's slot for a position of the step at `first`; for a position that no token sees that of a neighbour.
uint slot_near(uint position, uint first, uint end) {
  return span_slot(first) + clamp(position, lowest, end - 1u) - first;
}

// Loads the keys of a step, positions from `first` on.
void load_keys(uint kv_head, uint first, uint end) {
  LATER_UNROLLED for (uint i = 0u; i < slots; ++i) {
    uint item = gl_LocalInvocationIndex + 128u * i, position = item / (8u * chunks) * 8u + item % 8u,
         chunk = item / 8u % chunks;
    if (item < items)
      coming[i] = on_its_way(load_cached_key(keys, key_index(kv_head, slot_near(first + position, first, end), chunk)));
  }
}
void stage_keys() {
  LATER_UNROLLED for (uint i = 0u; i < slots; ++i) {
    uint item = gl_LocalInvocationIndex + 128u * i;
    if (item < items)
      staged[(item / (8u * chunks) * 8u + item % 8u) * row_stride + item / 8u % chunks] = arrived(coming[i]);
  }
}
void load_values(uint kv_head, uint first, uint end) {
  LATER_UNROLLED for (uint i = 0u; i < value_slots; ++i) {
    uint item = gl_LocalInvocationIndex + 128u * i, position = slot_near(first + item / value_chunks, first, end);
    if (item < value_items)
      coming[i] = on_its_way(load_value_chunk((kv_head * value_rows + position) * value_chunks + item % value_chunks));
  }
}
void stage_values() {
  LATER_UNROLLED for (uint i = 0u; i < value_slots; ++i) {
    uint item = gl_LocalInvocationIndex + 128u * i;
    if (item < value_items) staged[item / value_chunks * row_stride + item % value_chunks] = arrived(coming[i]);
  }
}

const float unseen = -1e30;  // less than any score
const float log2_e = 1.44269504;

// The exponent of 2 of a score's weight.
float turned(float sum, float in_turns) { return softcap != 0.0 ? scaled_score(sum) * log2_e : sum * in_turns; }

#if !EMULATED
#define subgroup_barrier() \
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease)
#define sum_matrix coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#endif

#if FRAGMENTS
#define LANE (gl_LocalInvocationIndex % 32u)
#define SUBGROUP (gl_LocalInvocationIndex / 32u)
#if EMULATED
#include "emulated_attention.glsl"
#else
#define sums_of sum_matrix
#define tokens_of coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define no_sums sums_of(0.0)
#define strip_barrier() subgroup_barrier()

tokens_of load_tokens(uint at) {
  tokens_of x;
  coopMatLoad(x, staged, at, row_stride, gl_CooperativeMatrixLayoutRowMajor);
  return x;
}
// The product plus c. by_rows: it sums over a row of `staged`; else a row is a column of the result.
sums_of times_staged(tokens_of x, uint at, bool by_rows, sums_of c) {
  coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> y;
  if (by_rows) coopMatLoad(y, staged, at, row_stride, gl_CooperativeMatrixLayoutRowMajor);
  else coopMatLoad(y, staged, at, row_stride, gl_CooperativeMatrixLayoutColumnMajor);
  return coopMatMulAdd(x, y, c);
}
sums_of load_sums(uint at) {
  sums_of x;
  coopMatLoad(x, staged, at, row_stride, gl_CooperativeMatrixLayoutRowMajor);
  return x;
}
void store_sums(uint at, sums_of sums) {
  coopMatStore(sums, staged, at, row_stride, gl_CooperativeMatrixLayoutRowMajor);
}
#endif
const uint position_fragments = tile / 16u;
sums_of score[position_fragments];
vec2 greatest, total;  // of the invocation's two tokens

// Whether the four pairs of a matrix of sums are two of one token and then two of the other.
bool by_tokens;
void find_order() {
  if (gl_LocalInvocationIndex < 64u)
    staged[gl_LocalInvocationIndex / 4u * row_stride + gl_LocalInvocationIndex % 4u] =
        floatBitsToUint(4.0 * float(gl_LocalInvocationIndex % 4u) + vec4(0.0, 1.0, 2.0, 3.0));
  barrier();
  by_tokens = load_sums(0u)[2] >= 8.0;
  barrier();
}
// Spreads two tokens' numbers over the pairs of a matrix, and the reverse.
vec4 for_pairs(vec2 of) { return vec4(of.x, by_tokens ? of.xy : of.yx, of.y); }
uvec4 for_pairs(uvec2 of) { return uvec4(of.x, by_tokens ? of.xy : of.yx, of.y); }
vec2 most_of_tokens(vec4 of) { return by_tokens ? max(of.xz, of.yw) : max(of.xy, of.zw); }
vec2 sum_of_tokens(vec4 of) { return by_tokens ? of.xz + of.yw : of.xy + of.zw; }

// Converts a step's scores in place to probabilities as f16 and adds them to the totals. `counts` and `firsts`: the
// positions that the invocation's tokens see, for each pair; `whole`: all of the subgroup's tokens see all positions of
// the step. @return the factors of earlier sums
vec2 find_probabilities(uint first, uvec4 counts, uvec4 firsts, bool whole, float in_turns) {
  vec4 most = vec4(unseen), sum = vec4(0.0);
  uvec4 column = 2u * (LANE & 3u) + (by_tokens ? uvec4(0u, 8u, 0u, 8u) : uvec4(0u, 0u, 8u, 8u));
  LATER_UNROLLED for (uint p = 0u; p < position_fragments; ++p) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    float s = turned(score[p][i], in_turns);
    if (!whole) {
      uint position = first + 16u * p + column[i / 2u] + (i & 1u);
      s = position < counts[i / 2u] && position >= firsts[i / 2u] ? s : unseen;
    }
    score[p][i] = s;
    most[i / 2u] = max(most[i / 2u], s);
  }
  vec2 largest = max(greatest, most_of_tokens(most));
  LATER_UNROLLED for (uint by = 1u; by <= 2u; ++by) largest =
      max(largest, vec2(subgroupShuffleXor(largest.x, by), subgroupShuffleXor(largest.y, by)));
  bvec2 none_seen = equal(largest, vec2(unseen));  // no position seen so far: all factors are 1
  vec2 factors = mix(exp2(greatest - largest), vec2(1.0), none_seen);
  greatest = largest;
  vec4 less = for_pairs(mix(largest, vec2(0.0), none_seen));
  LATER_UNROLLED for (uint p = 0u; p < position_fragments; ++p) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    float kept = float(float16_t(exp2(score[p][i] - less[i / 2u])));
    score[p][i] = kept;
    sum[i / 2u] += kept;
  }
  total = total * factors + sum_of_tokens(sum);
  return factors;
}

void main() {
  uvec2 now = word_pair(state, 0u);  // position and count
  uint tokens = min(now.y, max_tokens),
       first_token = tile * (gl_NumWorkGroups.y - 1u - gl_WorkGroupID.y);  // workgroups with the most work come first
  if (first_token >= tokens) return;
  uint head = gl_WorkGroupID.x, kv_head = head / (heads / kv_heads), last_token = min(first_token + tile, tokens) - 1u;
  uint end = range_of(now, last_token).y, first;
  lowest = range_of(now, first_token).x;
  first = lowest / tile * tile;
  uint own_token = SUBGROUP * 16u, least = range_of(now, min(first_token + own_token, last_token)).y;
  uvec2 counts, firsts;
  LATER_UNROLLED for (uint h = 0u; h < 2u; ++h) {
    uint token = first_token + own_token + LANE / 4u + 8u * h;
    uvec2 range = range_of(now, min(token, last_token));
    firsts[h] = range.x;
    counts[h] = range.y;
  }
  uint highest_first = range_of(now, min(first_token + own_token + 15u, last_token)).x;
  find_order();
  load_keys(kv_head, first, end);
  for (uint item = gl_LocalInvocationIndex; item < items; item += 128u) {
    uint token = min(first_token + item / chunks, last_token),
         at = (token * heads + head) * query_quads + 2u * (item % chunks);
    vec4 low = float_quad(query, at), high = float_quad(query, at + 1u);
    staged[item / chunks * row_stride + item % chunks] =
        uvec4(rounded(low.xy), rounded(low.zw), rounded(high.xy), rounded(high.zw));
  }
  barrier();
  tokens_of q[fragments];
  sums_of sums[fragments];
  LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) {
    q[c] = load_tokens(own_token * row_stride + 2u * c);
    sums[c] = no_sums;
  }
  greatest = vec2(unseen);
  total = vec2(0.0);
  float in_turns = (scale != 0.0 ? scale : 1.0 / sqrt(float(head_dim))) * log2_e;

  for (; first < end; first += tile) {
    barrier();  // queries or values have been read
    stage_keys();
    barrier();
    load_values(kv_head, first, end);
    LATER_UNROLLED for (uint p = 0u; p < position_fragments; ++p) {
      score[p] = no_sums;
      LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) score[p] =
          times_staged(q[c], 16u * p * row_stride + 2u * c, false, score[p]);
    }
    barrier();  // keys have been read
    stage_values();
    if (first + tile < end) load_keys(kv_head, first + tile, end);
    bool whole = first + tile <= least && first >= highest_first;
    vec4 factors = for_pairs(find_probabilities(first, for_pairs(counts), for_pairs(firsts), whole, in_turns));
    LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) sums[c][i] *=
        factors[i / 2u];
    barrier();
    LATER_UNROLLED for (uint p = 0u; p < position_fragments; ++p) {
      tokens_of probabilities;
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
        uint turned_ = i < 2u || i >= 6u ? i : i ^ 6u;
        probabilities[i] = float16_t(by_tokens ? score[p][i] : score[p][turned_]);
      }
      LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) sums[c] =
          times_staged(probabilities, 16u * p * row_stride + 2u * c, true, sums[c]);
    }
  }

  LATER_UNROLLED for (uint by = 1u; by <= 2u; ++by) total +=
      vec2(subgroupShuffleXor(total.x, by), subgroupShuffleXor(total.y, by));
  vec2 inverse = 1.0 / total;
  if (has_sinks != 0u) {  // one more score, whose value is 0
    vec2 sink = vec2(sinks.at[head] * log2_e), merged = max(greatest, sink), kept = exp2(greatest - merged);
    inverse = kept / (total * kept + exp2(sink - merged));
  }
  vec4 by_all = for_pairs(inverse);
  barrier();  // values have been read
  // Two neighbouring channels of eight invocations are less than 16 bytes, so sums go through shared memory, two
  // fragments at a time.
  uint strip = SUBGROUP * (16u * row_stride);
  for (uint part = 0u; part < fragments; part += 2u) {
    LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) if (c / 2u == part / 2u) {
      LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) sums[c][i] *= by_all[i / 2u];
      store_sums(strip + 4u * (c & 1u), sums[c]);
    }
    strip_barrier();
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
      uint item = LANE + 32u * i, token = first_token + own_token + item / 8u;
      if (token <= last_token && 4u * part + item % 8u < quads)
        FloatQuads(output_).at[(token * heads + head) * quads + 4u * part + item % 8u] =
            uintBitsToFloat(staged[strip + item / 8u * row_stride + item % 8u]);
    }
    strip_barrier();
  }
}

#else

void main() {
  uvec2 now = word_pair(state, 0u);  // position and count
  uint tokens = min(now.y, max_tokens),
       first_token = tile * (gl_NumWorkGroups.y - 1u - gl_WorkGroupID.y);  // workgroups with the most work come first
  if (first_token >= tokens) return;
  uint head = gl_WorkGroupID.x, kv_head = head / (heads / kv_heads), last_token = min(first_token + tile, tokens) - 1u;
  uint end = range_of(now, last_token).y, first;
  lowest = range_of(now, first_token).x;
  first = lowest / tile * tile;
  uint part = gl_SubgroupID % parts, own_token = gl_SubgroupID / parts * 16u, first_channel = part * fragments * 2u,
       first_value = part * value_fragments * 2u;  // in chunks
  // Two lanes share a token's row of scores and take its quads of positions alternately.
  uint row = gl_SubgroupInvocationID / 2u, side = gl_SubgroupInvocationID & 1u;
  uvec2 own_range = range_of(now, min(first_token + own_token + row, last_token));
  uint own_first = own_range.x, own_count = own_range.y;
  uint own_scores = gl_SubgroupID * 16u * score_stride, own_spread = gl_SubgroupID * 64u,
       shared_scores = (gl_SubgroupID - part) * 16u * score_stride;

  load_keys(kv_head, first, end);
  for (uint item = gl_LocalInvocationIndex; item < items; item += 128u) {
    uint token = min(first_token + item / chunks, last_token),
         at = (token * heads + head) * query_quads + 2u * (item % chunks);
    vec4 low = float_quad(query, at), high = float_quad(query, at + 1u);
    staged[item / chunks * row_stride + item % chunks] =
        uvec4(rounded(low.xy), rounded(low.zw), rounded(high.xy), rounded(high.zw));
  }
  barrier();
  coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> q[fragments];
  sum_matrix sums[value_fragments];
  LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) coopMatLoad(
      q[c], staged, own_token * row_stride + first_channel + 2u * c, row_stride, gl_CooperativeMatrixLayoutRowMajor);
  LATER_UNROLLED for (uint c = 0u; c < value_fragments; ++c) sums[c] = sum_matrix(0.0);
  float greatest = unseen, total = 0.0, in_turns = (scale != 0.0 ? scale : 1.0 / sqrt(float(head_dim))) * log2_e;

  for (; first < end; first += tile) {
    barrier();  // queries or values have been read
    stage_keys();
    barrier();
    load_values(kv_head, first, end);
    LATER_UNROLLED for (uint p = 0u; p < tile / 16u; ++p) {
      sum_matrix score = sum_matrix(0.0);
      LATER_UNROLLED for (uint c = 0u; c < fragments; ++c) {
        coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> k;
        coopMatLoad(k, staged, 16u * p * row_stride + first_channel + 2u * c, row_stride,
                    gl_CooperativeMatrixLayoutColumnMajor);
        score = coopMatMulAdd(q[c], k, score);
      }
      coopMatStore(score, scores, own_scores + 4u * p, score_stride, gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
    stage_values();
    if (first + tile < end) load_keys(kv_head, first + tile, end);
    vec4 s[tile / 8u];
    float largest = greatest;
    LATER_UNROLLED for (uint i = 0u; i < tile / 8u; ++i) {
      uint at = row * score_stride + 2u * i + side;
      // All subgroups that share the tokens add in the same order.
      s[i] = uintBitsToFloat(scores[shared_scores + at]);
      LATER_UNROLLED for (uint other = 1u; other < parts; ++other) s[i] +=
          uintBitsToFloat(scores[shared_scores + other * 16u * score_stride + at]);
      uint position = first + 8u * i + 4u * side;
      LATER_UNROLLED for (uint c = 0u; c < 4u; ++c) {
        s[i][c] = position + c < own_count && position + c >= own_first ? turned(s[i][c], in_turns) : unseen;
        largest = max(largest, s[i][c]);
      }
    }
    largest = max(largest, subgroupShuffleXor(largest, 1u));
    bool none_seen = largest == unseen;  // no position seen so far
    float factor = none_seen ? 1.0 : exp2(greatest - largest), sum = 0.0;
    greatest = largest;
    barrier();  // the other lane's scores have been read
    LATER_UNROLLED for (uint i = 0u; i < tile / 8u; ++i) {
      vec4 p = none_seen ? vec4(0.0) : exp2(s[i] - largest);
      uvec2 words = uvec2(rounded(p.xy), rounded(p.zw));
      vec4 kept = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
      sum += (kept.x + kept.y) + (kept.z + kept.w);
      uint at = own_scores + row * score_stride + i;
      if (side == 0u) scores[at].xy = words;
      else scores[at].zw = words;
    }
    total = total * factor + (sum + subgroupShuffleXor(sum, 1u));
    spread[own_spread + 4u * row + 2u * side] = floatBitsToUint(vec4(factor));
    spread[own_spread + 4u * row + 2u * side + 1u] = floatBitsToUint(vec4(factor));
    subgroup_barrier();
    sum_matrix factors;
    coopMatLoad(factors, spread, own_spread, 4u, gl_CooperativeMatrixLayoutRowMajor);
    LATER_UNROLLED for (uint c = 0u; c < value_fragments; ++c) sums[c] = sums[c] * factors;
    LATER_UNROLLED for (uint p = 0u; p < tile / 16u; ++p) {
      coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> probabilities;
      coopMatLoad(probabilities, scores, own_scores + 2u * p, score_stride, gl_CooperativeMatrixLayoutRowMajor);
      LATER_UNROLLED for (uint c = 0u; c < value_fragments; ++c) {
        coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> v;
        coopMatLoad(v, staged, 16u * p * row_stride + first_value + 2u * c, row_stride,
                    gl_CooperativeMatrixLayoutRowMajor);
        sums[c] = coopMatMulAdd(probabilities, v, sums[c]);
      }
    }
  }

  float inverse = 1.0 / total;
  if (has_sinks != 0u) {  // one more score, whose value is 0
    float sink = sinks.at[head] * log2_e, merged = max(greatest, sink), kept = exp2(greatest - merged);
    inverse = kept / (total * kept + exp2(sink - merged));
  }
  subgroup_barrier();  // factors have been read
  spread[own_spread + 4u * row + 2u * side] = floatBitsToUint(vec4(inverse));
  spread[own_spread + 4u * row + 2u * side + 1u] = floatBitsToUint(vec4(inverse));
  subgroup_barrier();
  sum_matrix factors;
  coopMatLoad(factors, spread, own_spread, 4u, gl_CooperativeMatrixLayoutRowMajor);
  LATER_UNROLLED for (uint c = 0u; c < value_fragments; ++c) {
    sum_matrix result = sums[c] * factors;
    coopMatStore(result, scores, own_scores, 4u, gl_CooperativeMatrixLayoutRowMajor);
    subgroup_barrier();
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
      uint item = gl_SubgroupInvocationID + 32u * i, token = first_token + own_token + item / 4u;
      if (token <= last_token)
        FloatQuads(output_).at[(token * heads + head) * quads + 2u * first_value + 4u * c + item % 4u] =
            uintBitsToFloat(scores[own_scores + item]);
    }
    subgroup_barrier();
  }
}

#endif
