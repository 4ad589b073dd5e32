// SPDX-License-Identifier: MIT
// Attention of shaders/layers.comp over long contexts, where four heads share keys and values. A workgroup has either
// one span of three of the heads or two spans of the last head: both take about as long. The first workgroups, one per
// head, then merge the spans. A workgroup has the same task at any position, so that its keys are in flight while q, k
// and v are computed.
#ifndef INTAGLIO_TERNARY_ATTENTION_LONG
#define INTAGLIO_TERNARY_ATTENTION_LONG

const uint together = sharing - 1u;  // heads of a task, unless it has the last head only
const uint pair_tasks = kv_heads * ((most_spans + 1u) / 2u), span_tasks = kv_heads * most_spans;
const uint merged_at_once = 16u;  // spans

// Whether the model has a form that this file does not support.
bool misfits() {
  bool out_ = heads_together != sharing;
  if (heads != sharing * kv_heads) out_ = true;
  if (heads > pair_tasks) out_ = true;
  if (pair_tasks + span_tasks > parts) out_ = true;
  return out_;
}
#define misfits_attention misfits()

// Loads this subgroup's octet of a span, or the last octet if it has none. head_dim is a multiple of 32, chunks one of
// 4.
void fetch_keys(uint layer, uint kv_head, uint span, uint count) {
  uint octet = min(span * 32u + sub, (count - 1u) / 8u), chunk = lane >> 3;
  WordQuads keys =
      WordQuads(address_of(layer, argument_keys) +
                uint64_t(((kv_head * octets_of_context + octet) * chunks + chunk) * 8u + (lane & 7u)) * 16u);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    key_words[i] = uvec4(0u);
    if (4u * i < chunks) key_words[i] = keys.at[i * 32u];
  }
}
void fetch_values(uint layer, uint kv_head, uint span, uint count, uint from, uint to) {
  uint octet = min(span * 32u + sub, (count - 1u) / 8u);
  WordPairs values = WordPairs(address_of(layer, argument_values) +
                               uint64_t((kv_head * context + octet * 8u) * quads + min(lane, quads - 1u)) * 8u);
  [[unroll]] for (uint j = from; j < to; ++j) {
    value_words[j] = uvec2(0u);
    if (context % 8u == 0u || octet * 8u + j < context) value_words[j] = values.at[j * quads];
  }
}
// Replaces this position's own key in the octet from position `first` on, and clears values after it.
void put_newest_key(uint first) {
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uint chunk = (lane >> 3) + 4u * i;
    if (first + (lane & 7u) == shared_position && 4u * i < chunks)
      key_words[i] = uvec4(fresh_words[2u * chunk], fresh_words[2u * chunk + 1u]);
  }
}
void put_newest_value(uint first) {
  uvec2 newest = fresh_words[quads + min(lane, quads - 1u)];
  [[unroll]] for (uint j = 0u; j < 8u; ++j)
    if (first + j >= shared_position) value_words[j] = first + j == shared_position ? newest : uvec2(0u);
}

void fetch_keys_ahead(uint layer) {
  if (gl_WorkGroupID.x < pair_tasks + span_tasks) {
    uint task = gl_WorkGroupID.x < pair_tasks ? gl_WorkGroupID.x : gl_WorkGroupID.x - pair_tasks,
         kv_head = task % kv_heads;
    uint span = gl_WorkGroupID.x < pair_tasks ? task / kv_heads * 2u : task / kv_heads,
         count = min(shared_position + 1u, context);
    fetch_keys(layer, kv_head, span, count);
  } else {  // set on every path
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      key_words[i] = uvec4(0u);
  }
}

// Reads queries of `count` heads, and key and value of this position.
void await_fresh(uint layer, uint kv_head, uint first_head, uint count) {
  uint t = gl_LocalInvocationIndex, which = t / quads;
  uint from = which < count ? first_head + which : which == count ? heads + kv_head : heads + kv_heads + kv_head;
  vec4 v = await_quad(SharedQuads(input_of(layer, step_attention)), from * quads + t % quads, t < (count + 2u) * quads);
  if (t < count * quads) fresh[t] = v;
  else if (t < (count + 2u) * quads)
    fresh_words[t - count * quads] = uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));  // exact: they are f16
  barrier();
}

// Sums up the octets' sums in sx for `rows` heads: every eight lanes of the subgroups from `by` on have a quad of
// channels.
void store_sums(SharedQuads partials, uint first_head, uint span, uint by, uint rows, bool wanted) {
  if (sub >= by && sub < by + rows * quads / 8u) {
    uint head = (sub - by) / (quads / 8u), c = (sub - by) % (quads / 8u) * 8u + (lane & 7u), g = lane >> 3;
    precise vec4 s = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < 8u; ++i)
      s = s + uintBitsToFloat(sx[(head * 32u + 8u * g + i) * quads + c]);
    s = s + subgroupShuffleXor(s, 8u);
    s = s + subgroupShuffleXor(s, 16u);
    if (lane < 8u && wanted) partials.at[((first_head + head) * most_spans + span) * partial_quads + c] = written(s);
  }
}

// A span of all but the last of the heads that share keys and values.
void attend(uint layer, uint task) {
  uint kv_head = task % kv_heads, span = task / kv_heads;
  uint count = min(shared_position + 1u, context), spans = (count + span_positions - 1u) / span_positions;
  SharedQuads partials = SharedQuads(address_of(layer, argument_partials));
  await_fresh(layer, kv_head, kv_head * sharing, together);
  uint octet = span * 32u + sub, first = octet * 8u, own = first + (lane & 7u);
  if (octet == shared_position / 8u) put_newest_key(first);
  precise vec4 a[together];
  [[unroll]] for (uint h = 0u; h < together; ++h)
    a[h] = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uint chunk = (lane >> 3) + 4u * i;
    if (4u * i < chunks) {
      uvec4 words = key_words[i];
      vec4 low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
      [[unroll]] for (uint h = 0u; h < together; ++h) {
        precise vec4 products = fresh[h * quads + 2u * chunk] * low;
        a[h] = a[h] + products;
      }
      vec4 high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
      [[unroll]] for (uint h = 0u; h < together; ++h) {
        precise vec4 products = fresh[h * quads + 2u * chunk + 1u] * high;
        a[h] = a[h] + products;
      }
    }
    // Loaded piecewise: all loads at once would delay the workgroups that read queries.
    fetch_values(layer, kv_head, span, count, 2u * i, 2u * i + 2u);
  }
  precise vec4 by_head = vec4(0.0);
  [[unroll]] for (uint h = 0u; h < together; ++h)
    by_head[h] = (a[h].x + a[h].y) + (a[h].z + a[h].w);
  // Lanes exchange halves of the work: of a position's four lanes each ends with one head's score, the last one with
  // none.
  bool upper = (lane & 8u) != 0u, odd = (lane & 16u) != 0u;
  precise vec2 two = (upper ? by_head.zw : by_head.xy) + subgroupShuffleXor(upper ? by_head.xy : by_head.zw, 8u);
  precise float sum = (odd ? two.y : two.x) + subgroupShuffleXor(odd ? two.x : two.y, 16u);
  uint head = (upper ? 2u : 0u) + (odd ? 1u : 0u);
  float score = own < count ? scaled_score(sum) : minus_infinity;
  float m = score;
  [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1)
    m = max(m, subgroupShuffleXor(m, d));
  if ((lane & 7u) == 0u) maxima_of[head * 8u + sub / 4u][sub % 4u] = m;
  barrier();
  vec4 most = maxima_of[head * 8u + (lane & 7u)];
  m = max(max(most.x, most.y), max(most.z, most.w));
  [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1)
    m = max(m, subgroupShuffleXor(m, d));
  precise float below = score - m;
  float p = own < count ? canonical_exp(own < count ? below : 0.0) : 0.0;
  precise float total = p + subgroupShuffleXor(p, 4u);
  total = total + subgroupShuffleXor(total, 2u);
  total = total + subgroupShuffleXor(total, 1u);
  if ((lane & 7u) == 0u) totals_of[head * 8u + sub / 4u][sub % 4u] = total;
  sx[sub * quads + (lane & 7u)][head] = floatBitsToUint(p);  // replaced by its sums later
  subgroupBarrier();
  if (octet == shared_position / 8u) put_newest_value(first);
  precise vec4 acc[together];
  [[unroll]] for (uint h = 0u; h < together; ++h)
    acc[h] = vec4(0.0);
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    vec4 chances = uintBitsToFloat(sx[sub * quads + j]);
    vec4 v = vec4(unpackHalf2x16(value_words[j].x), unpackHalf2x16(value_words[j].y));
    [[unroll]] for (uint h = 0u; h < together; ++h) {
      precise vec4 products = chances[h] * v;
      acc[h] = acc[h] + products;
    }
  }
  subgroupBarrier();
  bool wanted = span < spans;
  // Two heads at a time: registers do not suffice for more.
  if (lane < quads) {
    [[unroll]] for (uint h = 0u; h < 2u; ++h)
      sx[(h * 32u + sub) * quads + lane] = floatBitsToUint(acc[h]);
  }
  barrier();
  store_sums(partials, kv_head * sharing, span, 0u, 2u, wanted);
  if (sub == members - 1u) {
    uint h = (lane >> 2) & 3u, g = lane & 3u;
    float its = subgroupShuffle(m, (h >> 1) << 3 | (h & 1u) << 4);
    vec4 low = totals_of[h * 8u + 2u * g], high = totals_of[h * 8u + 2u * g + 1u];
    precise float l = 0.0;
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      l = l + low[i];
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      l = l + high[i];
    l = l + subgroupShuffleXor(l, 1u);
    l = l + subgroupShuffleXor(l, 2u);
    if (g == 0u && lane < 4u * together && wanted)
      partials.at[((kv_head * sharing + h) * most_spans + span) * partial_quads + quads] =
          written(vec4(its, l, 0.0, 0.0));
  }
  barrier();
  if (lane < quads) {
    [[unroll]] for (uint h = 2u; h < together; ++h)
      sx[((h - 2u) * 32u + sub) * quads + lane] = floatBitsToUint(acc[h]);
  }
  barrier();
  store_sums(partials, kv_head * sharing + 2u, span, 2u * quads / 8u, together - 2u, wanted);
}

// Scores of one head, in parts, for the span that becomes row `row` of two.
float score_of_one(uint own, uint count) {
  precise vec4 a = vec4(0.0);
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
  precise float sum = (a.x + a.y) + (a.z + a.w);
  sum = sum + subgroupShuffleXor(sum, 8u);
  sum = sum + subgroupShuffleXor(sum, 16u);
  return own < count ? scaled_score(sum) : minus_infinity;
}
void keep_largest(float m, uint row) {
  [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1)
    m = max(m, subgroupShuffleXor(m, d));
  if (lane == 0u) maxima_of[row * 8u + sub / 4u][sub % 4u] = m;
}
float largest_of(uint row) {
  vec4 most = maxima_of[row * 8u + (lane & 7u)];
  float m = max(max(most.x, most.y), max(most.z, most.w));
  [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1)
    m = max(m, subgroupShuffleXor(m, d));
  return m;
}
void sum_values_of_one(float score, float m, bool sees, uint row) {
  precise float below = score - m;
  float p = sees ? canonical_exp(sees ? below : 0.0) : 0.0;
  precise float total = p + subgroupShuffleXor(p, 4u);
  total = total + subgroupShuffleXor(total, 2u);
  total = total + subgroupShuffleXor(total, 1u);
  if (lane == 0u) totals_of[row * 8u + sub / 4u][sub % 4u] = total;
  uint index_ = (row * 32u + sub) * quads;
  if (lane < 8u) sx[index_ + (lane >> 2)][lane & 3u] = floatBitsToUint(p);  // replaced by its sums later
  subgroupBarrier();
  vec4 p_low = uintBitsToFloat(sx[index_]), p_high = uintBitsToFloat(sx[index_ + 1u]);
  precise vec4 acc = vec4(0.0);
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    vec4 v = vec4(unpackHalf2x16(value_words[j].x), unpackHalf2x16(value_words[j].y));
    precise vec4 products = (j < 4u ? p_low[j & 3u] : p_high[j & 3u]) * v;
    acc = acc + products;
  }
  subgroupBarrier();
  if (lane < quads) sx[index_ + lane] = floatBitsToUint(acc);
}

// Two spans of the last of the heads that share keys and values. The second span's loads are in flight while the first
// is computed.
void attend_pair(uint layer, uint task) {
  uint kv_head = task % kv_heads, span = task / kv_heads * 2u, head = kv_head * sharing + sharing - 1u;
  uint count = min(shared_position + 1u, context), spans = (count + span_positions - 1u) / span_positions;
  SharedQuads partials = SharedQuads(address_of(layer, argument_partials));
  await_fresh(layer, kv_head, head, 1u);
  fetch_values(layer, kv_head, span, count, 0u, 8u);
  uint octet = span * 32u + sub, first = octet * 8u, own = first + (lane & 7u);
  if (octet == shared_position / 8u) put_newest_key(first);
  float score = score_of_one(own, count);
  fetch_keys(layer, kv_head, span + 1u, count);
  keep_largest(score, 0u);
  barrier();
  float m = largest_of(0u);
  if (octet == shared_position / 8u) put_newest_value(first);
  sum_values_of_one(score, m, own < count, 0u);
  fetch_values(layer, kv_head, span + 1u, count, 0u, 8u);
  octet += 32u, first += span_positions, own += span_positions;
  if (octet == shared_position / 8u) put_newest_key(first);
  score = score_of_one(own, count);
  keep_largest(score, 1u);
  barrier();
  float m_later = largest_of(1u);
  if (octet == shared_position / 8u) put_newest_value(first);
  sum_values_of_one(score, m_later, own < count, 1u);
  barrier();
  if (sub < 2u * quads / 8u) {
    uint row = sub / (quads / 8u), c = sub % (quads / 8u) * 8u + (lane & 7u), g = lane >> 3;
    precise vec4 s = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < 8u; ++i)
      s = s + uintBitsToFloat(sx[(row * 32u + 8u * g + i) * quads + c]);
    s = s + subgroupShuffleXor(s, 8u);
    s = s + subgroupShuffleXor(s, 16u);
    if (lane < 8u && span + row < spans) partials.at[(head * most_spans + span + row) * partial_quads + c] = written(s);
  }
  if (sub == members - 1u) {
    uint row = (lane >> 2) & 1u, g = lane & 3u;
    vec4 low = totals_of[row * 8u + 2u * g], high = totals_of[row * 8u + 2u * g + 1u];
    precise float l = 0.0;
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      l = l + low[i];
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      l = l + high[i];
    l = l + subgroupShuffleXor(l, 1u);
    l = l + subgroupShuffleXor(l, 2u);
    if (g == 0u && lane < 8u && span + row < spans)
      partials.at[(head * most_spans + span + row) * partial_quads + quads] =
          written(vec4(row == 0u ? m : m_later, l, 0.0, 0.0));
  }
}

// Merges a head's spans in rising order, `merged_at_once` at a time. Each of the first subgroups waits for a span's
// sums, the next subgroup for the weights of the spans, one per lane: the factors are known before the sums arrive.
void merge_spans(uint layer, uint head) {
  uint count = min(shared_position + 1u, context), spans = (count + span_positions - 1u) / span_positions;
  SharedQuads partials = SharedQuads(address_of(layer, argument_partials));
  precise float merged = 0.0, total = 0.0;
  float largest = minus_infinity;
  uint channel = sub * 32u + lane;
  [[dont_unroll]] for (uint round = 0u; round < most_spans; round += merged_at_once) {
    bool of_sums = sub < merged_at_once;
    uint its_span = round + (of_sums ? sub : lane);
    bool wanted = its_span < spans && its_span < most_spans &&
                  (of_sums ? lane < quads : sub == merged_at_once && lane < merged_at_once);
    vec4 s = await_quad(partials, (head * most_spans + its_span) * partial_quads + (of_sums ? lane : quads), wanted);
    if (round != 0u) barrier();
    if (of_sums && lane < quads) sx[sub * quads + lane] = floatBitsToUint(s);
    if (sub == merged_at_once) {
      float m = wanted ? s.x : minus_infinity, up_to = m;
      [[unroll]] for (uint d = 1u; d < merged_at_once; d <<= 1) {
        float other = subgroupShuffle(up_to, lane - min(d, lane));
        up_to = max(up_to, other);
      }
      up_to = max(up_to, largest);
      float before = subgroupShuffle(up_to, lane - min(1u, lane));
      if (lane == 0u) before = largest;
      largest = subgroupShuffle(up_to, merged_at_once - 1u);
      precise float old_distance = before - up_to, new_distance = m - up_to;
      vec2 factors = vec2(canonical_exp(old_distance), canonical_exp(new_distance));
      if (round + lane == 0u) factors = vec2(0.0, 1.0);
      factors_of[lane] = vec4(factors, s.y, 0.0);
    }
    barrier();
    if (channel < head_dim) {
      uint there = min(spans - min(spans, round), merged_at_once);
      [[dont_unroll]] for (uint b = 0u; b < there; b += 8u) {
        [[unroll]] for (uint i = 0u; i < 8u; ++i) {
          vec4 f = factors_of[b + i];
          float sums = uintBitsToFloat(sx[(b + i) * quads + channel / 4u][channel & 3u]);
          precise float next = merged * f.x + sums * f.y;
          precise float next_total = total * f.x + f.z * f.y;
          if (b + i < there) {
            merged = next;
            total = next_total;
          }
        }
      }
    }
  }
  if (channel < head_dim) {
    precise float result = merged / total;
    SharedWords(output_of(layer, step_attention)).at[head * head_dim + channel] =
        floatBitsToUint(isnan(result) ? not_a_number : result);
  }
}

void attention(uint layer) {
  if (gl_WorkGroupID.x < pair_tasks) attend_pair(layer, gl_WorkGroupID.x);
  else if (gl_WorkGroupID.x < pair_tasks + span_tasks) attend(layer, gl_WorkGroupID.x - pair_tasks);
  if (gl_WorkGroupID.x < heads) {
    barrier();
    merge_spans(layer, gl_WorkGroupID.x);
  }
}

#endif
