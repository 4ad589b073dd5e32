// SPDX-License-Identifier: MIT
// Attention of shaders/layers.comp over short contexts: a task is a span of one head, and the workgroup of a head's
// first span merges them.
#ifndef INTAGLIO_TERNARY_ATTENTION
#define INTAGLIO_TERNARY_ATTENTION

// The only form that this file supports.
#define misfits_attention heads_together != 1u

// Loads keys and values of this subgroup's octet of a span, or of the last octet if it has none, so that the loads need
// no condition. head_dim is a multiple of 32, chunks one of 4.
void fetch_octet(uint layer, uint head, uint span, uint count) {
  uint kv_head = head / (heads / kv_heads), octet = min(span * 32u + sub, (count - 1u) / 8u), chunk = lane >> 3;
  WordQuads keys =
      WordQuads(address_of(layer, argument_keys) +
                uint64_t(((kv_head * octets_of_context + octet) * chunks + chunk) * 8u + (lane & 7u)) * 16u);
  WordPairs values = WordPairs(address_of(layer, argument_values) +
                               uint64_t((kv_head * context + octet * 8u) * quads + min(lane, quads - 1u)) * 8u);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    key_words[i] = uvec4(0u);
    if (4u * i < chunks) key_words[i] = keys.at[i * 32u];
  }
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    value_words[j] = uvec2(0u);
    if (context % 8u == 0u || octet * 8u + j < context) value_words[j] = values.at[j * quads];
  }
}

// Computes maximum, total and sums of a span; every invocation of the first subgroups has the sums of channel quad sub
// * 8 + lane % 8.
vec4 compute_span(uint span, uint count, out vec2 weight) {
  uint octet = span * 32u + sub, first = octet * 8u, own = first + (lane & 7u);
  bool here = first < count;
  if (octet == shared_position / 8u) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uint chunk = (lane >> 3) + 4u * i;
      if (own == shared_position && 4u * i < chunks)
        key_words[i] = uvec4(fresh_words[2u * chunk], fresh_words[2u * chunk + 1u]);
    }
    uvec2 newest = fresh_words[quads + min(lane, quads - 1u)];
    [[unroll]] for (uint j = 0u; j < 8u; ++j)
      if (first + j >= shared_position) value_words[j] = first + j == shared_position ? newest : uvec2(0u);
  }
  precise vec4 a = vec4(0.0);
  if (here) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uint chunk = (lane >> 3) + 4u * i;
      if (4u * i < chunks) {
        uvec4 words = key_words[i];
        vec4 low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)),
             high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
        precise vec4 low_products = fresh[2u * chunk] * low;
        a = a + low_products;
        precise vec4 high_products = fresh[2u * chunk + 1u] * high;
        a = a + high_products;
      }
    }
  }
  precise float sum = (a.x + a.y) + (a.z + a.w);
  sum = sum + subgroupShuffleXor(sum, 8u);
  sum = sum + subgroupShuffleXor(sum, 16u);
  float score = own < count ? scaled_score(sum) : minus_infinity;
  float m = score;
  [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1)
    m = max(m, subgroupShuffleXor(m, d));
  if (lane == 0u) span_maxima[sub] = m;
  barrier();
  m = span_maxima[lane];
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1)
    m = max(m, subgroupShuffleXor(m, d));
  precise vec4 acc = vec4(0.0);
  precise float total = 0.0;
  precise float below = score - m;
  float p = own < count ? canonical_exp(own < count ? below : 0.0) : 0.0;
  total = p + subgroupShuffleXor(p, 4u);
  total = total + subgroupShuffleXor(total, 2u);
  total = total + subgroupShuffleXor(total, 1u);
  float chances[8];
  [[unroll]] for (uint j = 0u; j < 8u; ++j)
    chances[j] = subgroupShuffle(p, j);
  if (here) {
    [[unroll]] for (uint j = 0u; j < 8u; ++j) {
      uvec2 words = value_words[j];
      vec4 v = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
      precise vec4 products = chances[j] * v;
      acc = acc + products;
    }
  }
  if (lane < quads) sums_of[sub * quads + lane] = acc;
  if (lane == 0u) span_totals[sub] = total;
  barrier();
  precise vec4 s = vec4(0.0);
  precise float l = 0.0;
  if (sub * 8u < quads) {
    uint g = lane >> 3, c = sub * 8u + (lane & 7u);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      s = s + sums_of[(8u * g + i) * quads + c];
      l = l + span_totals[8u * g + i];
    }
    s = s + subgroupShuffleXor(s, 8u);
    s = s + subgroupShuffleXor(s, 16u);
    l = l + subgroupShuffleXor(l, 8u);
    l = l + subgroupShuffleXor(l, 16u);
  }
  weight = vec2(m, l);
  return s;
}

void await_fresh(uint layer, uint head) {
  uint t = gl_LocalInvocationIndex, which = t / quads, kv_head = head / (heads / kv_heads);
  uint from = which == 0u ? head : which == 1u ? heads + kv_head : heads + kv_heads + kv_head;
  vec4 v = await_quad(SharedQuads(input_of(layer, step_attention)), from * quads + t % quads, t < 3u * quads);
  if (t < quads) fresh[t] = v;
  else if (t < 3u * quads)
    fresh_words[t - quads] = uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));  // exact: they are f16
  barrier();
}

void store_attended(uint layer, uint quad, vec4 v) {
  if (lane < 8u) SharedQuads(output_of(layer, step_attention)).at[quad] = written(v);
}

// Task i is span i / heads of head i % heads; the workgroup of span 0 merges a head's spans, most of them while others
// have a last task.
void attention(uint layer) {
  uint count = min(shared_position + 1u, context);
  uint t = gl_LocalInvocationIndex, spans = (count + span_positions - 1u) / span_positions;
  uint channel = sub * 8u + (lane & 7u);
  bool first_subgroups = sub * 8u < quads && lane < 8u;
  SharedQuads partials = SharedQuads(address_of(layer, argument_partials));
  vec4 merged = vec4(0.0);
  vec2 totals = vec2(0.0);
  uint tasks_of_all = heads * spans, whole_rounds = tasks_of_all / parts * parts;
  for (uint turn = gl_WorkGroupID.x; turn < whole_rounds + parts; turn += parts) {
    // If the last round has fewer tasks than workgroups, the last workgroups take them; the first ones merge.
    uint task = turn;
    if (whole_rounds != 0u && turn >= whole_rounds) task = whole_rounds + parts - 1u - gl_WorkGroupID.x;
    if (task >= tasks_of_all) break;
    uint head = task % heads, span = task / heads;
    if (task != gl_WorkGroupID.x) barrier();
    fetch_octet(layer, head, span, count);
    await_fresh(layer, head);
    vec2 weight;
    vec4 s = compute_span(span, count, weight);
    if (spans == 1u) {
      if (sub * 8u < quads) {
        precise vec4 result = s / weight.y;
        store_attended(layer, head * quads + channel, result);
      }
    } else if (span != 0u) {
      uint first = (head * most_spans + span) * partial_quads;
      if (first_subgroups) partials.at[first + channel] = written(s);
      if (t == 0u) partials.at[first + quads] = written(vec4(weight, 0.0, 0.0));
    } else {
      merged = s;
      totals = weight;
    }
  }
  if (spans > 1u && gl_WorkGroupID.x < heads) {
    uint head = gl_WorkGroupID.x;
    barrier();
    for (uint round = 1u; round < spans; round += merged_together) {
      uint own = round + sub, first = (head * most_spans + own) * partial_quads;
      vec4 s = await_quad(partials, first + min(lane, quads - 1u), own < spans && sub < merged_together);
      vec4 weight = await_quad(partials, first + quads, own < spans && sub < merged_together);
      if (sub < merged_together && lane < quads) sums_of[sub * quads + lane] = s;
      if (sub < merged_together && lane == 0u) {
        span_maxima[sub] = weight.x;
        span_totals[sub] = weight.y;
      }
      barrier();
      if (sub * 8u < quads) {
        uint there = min(merged_together, spans - round);
        // Each lane has the factors of one span.
        float before = totals.x, largest = totals.x;
        [[unroll]] for (uint b = 0u; b < merged_together; ++b) {
          if (b == lane) before = largest;
          if (b <= lane && b < there) largest = max(largest, span_maxima[b]);
        }
        precise float old_distance = before - largest, new_distance = span_maxima[min(lane, there - 1u)] - largest;
        vec2 factors = vec2(canonical_exp(old_distance), canonical_exp(new_distance));
        [[unroll]] for (uint b = 0u; b < merged_together; ++b) {
          vec2 f = vec2(subgroupShuffle(factors.x, b), subgroupShuffle(factors.y, b));
          float m = subgroupShuffle(largest, b);
          if (b < there) {
            precise float total = totals.y * f.x + span_totals[b] * f.y;
            totals = vec2(m, total);
            merged = merged_sums(merged, sums_of[b * quads + channel], f);
          }
        }
      }
      barrier();
    }
    if (sub * 8u < quads) {
      precise vec4 result = merged / totals.y;
      store_attended(layer, head * quads + channel, result);
    }
  }
}

#endif
