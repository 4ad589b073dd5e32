// SPDX-License-Identifier: MIT
// Code that all attention kernels share: cache indices and the merging of spans. docs/kernels.md has the order of
// operations.
#ifndef INTAGLIO_ATTENTION
#define INTAGLIO_ATTENTION

const uint chunks = head_dim / 8u;  // of channels of a query or key; keys are stored by chunks
// Kernels may define the channels of a value where these are not as many as the channels of a key.
#ifdef cached_value_dim
const uint quads = cached_value_dim / 4u, query_quads = head_dim / 4u;  // of channels
const uint value_chunks = cached_value_dim / 8u;
#else
const uint quads = head_dim / 4u;  // of channels
#define query_quads quads
#define value_chunks chunks
#endif
const uint span_positions = 256u;  // kernels::attention_span

// Kernels may define: the window of positions that a token sees, whether the cache is a ring, and the factor of scores.
#ifndef attention_window
#define attention_window 0u
#define attention_ring 0u
#define attention_scale 0.0
#endif

// The first position seen by a token that sees no position from `count` on.
uint first_seen(uint count) {
  return attention_window != 0u && count > attention_window ? count - attention_window : 0u;
}
// The end of the positions that a pass sees when it ends at `end`, and the cache's slot for a span's first position.
uint seen_before(uint end) { return attention_ring != 0u ? end : min(end, context); }
uint span_slot(uint first) { return attention_ring != 0u ? first % context : first; }

#define minus_infinity uintBitsToFloat(0xff800000u)

// Eight neighbouring channels as stored.
struct raw_chunk {
  uvec4 low, high;
};
struct key_chunk {
  vec4 low, high;
};

// Index of a chunk of a position's key: [kv_heads, octets, chunks, 8 positions].
uint key_index(uint kv_head, uint position, uint chunk) {
  return ((kv_head * ((context + 7u) / 8u) + position / 8u) * chunks + chunk) * 8u + (position & 7u);
}

raw_chunk load_key(Words keys, uint index) {
  if (cache_element == element_f32) return raw_chunk(word_quad(keys, 2u * index), word_quad(keys, 2u * index + 1u));
  return raw_chunk(word_quad(keys, index), uvec4(0u));
}
key_chunk widened(raw_chunk raw) {
  if (cache_element == element_f32) return key_chunk(uintBitsToFloat(raw.low), uintBitsToFloat(raw.high));
  return key_chunk(vec4(f16_pair(raw.low.x), f16_pair(raw.low.y)), vec4(f16_pair(raw.low.z), f16_pair(raw.low.w)));
}

// Four neighbouring channels of a value: [kv_heads, context, quads].
uvec4 load_value(Words values, uint index) {
  if (cache_element == element_f32) return word_quad(values, index);
  return uvec4(word_pair(values, index), 0u, 0u);
}
vec4 widened_value(uvec4 raw) {
  if (cache_element == element_f32) return uintBitsToFloat(raw);
  return vec4(f16_pair(raw.x), f16_pair(raw.y));
}

// Sum of an octet's eight probabilities.
float octet_total(vec4 low, vec4 high) {
  precise vec4 four = low + high;
  precise float sum = (four.x + four.z) + (four.y + four.w);
  return sum;
}

// Factors of the sums so far and of the next ones; `weight` becomes the merged maximum and total.
vec2 merge_factors(inout vec2 weight, vec2 later) {
  float merged = max(weight.x, later.x);
  precise float old_distance = weight.x - merged, new_distance = later.x - merged;
  vec2 f = vec2(canonical_exp(old_distance), canonical_exp(new_distance));
  precise float total = weight.y * f.x + later.y * f.y;
  weight = vec2(merged, total);
  return f;
}
vec4 merged_sums(vec4 sums, vec4 later, vec2 f) {
  precise vec4 merged = sums * f.x + later * f.y;
  return merged;
}

// Kernels that define attention_softcap bound scores, unless it is 0, by bound * tanh(score / bound), and may have
// sinks.
#ifdef attention_softcap
float bounded_score(float score) {
  precise float part = score / attention_softcap;
  precise float power = canonical_exp(2.0 * part) + 1.0;
  precise float bounded = attention_softcap * (1.0 - 2.0 / power);
  return bounded;
}

// Divides sums of values by their total. A head's sink counts as one more score, whose value is 0.
vec4 attended(vec4 sums, vec2 weight, float sink) {
  if (attention_sinks != 0u) {
    vec2 f = merge_factors(weight, vec2(sink, 1.0));
    sums = merged_sums(sums, vec4(0.0), f);
  }
  precise vec4 result = sums / weight.y;
  return result;
}
#endif

float scaled_score(float sum) {
  precise float score = sum * (attention_scale != 0.0 ? attention_scale : 1.0 / sqrt(float(head_dim)));
#ifdef attention_softcap
  if (attention_softcap != 0.0) score = bounded_score(score);
#endif
  return score;
}

#endif
