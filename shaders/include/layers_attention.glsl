// SPDX-License-Identifier: MIT
// Attention of one token in shaders/layers_coded.comp: a workgroup of 512 invocations computes one span of a head at a
// time. The set of spans depends on the position, which is loaded; subgroup operations would be slow here, so sums and
// maxima go through shared memory, in the order of docs/kernels.md.
#ifndef INTAGLIO_LAYERS_ATTENTION
#define INTAGLIO_LAYERS_ATTENTION

// Keys: an invocation has a position and two quarters of its chunks. Values: an invocation has a quad of channels and
// every `octets_at_once`-th octet.
const uint quarter_chunks = chunks / 4u;
const bool keys_at_once = quarter_chunks <= 4u;  // both quarters, and the values as well
const uint octets_at_once = threads / quads, own_octets = (32u + octets_at_once - 1u) / octets_at_once;
// In pool, after the sums of values by octet: halves of scores, probabilities, maxima, and totals of octets.
const uint parts_at = 32u * quads, chances_at = parts_at + 128u, maxima_at = parts_at + 192u,
           totals_at = parts_at + 200u;
uvec4 key_words[8];
uvec2 value_words[16];

vec4 pooled(uint at) { return uintBitsToFloat(pool[at]); }

// The layer's cache: whether it stores every position, its number of positions, the first position that the token sees,
// and the octet of the cache that holds a span's first octet.
bool has_all(uint layer) { return ring == context || full(layer); }
uint positions_of(uint layer) { return full(layer) ? context : ring; }
uint count_of(uint layer) { return has_all(layer) ? min(position + 1u, context) : position + 1u; }
uint seen_from(uint layer, uint count) { return full(layer) || count <= window ? 0u : count - window; }
uint slot_octet(uint layer, uint octet) { return has_all(layer) ? octet : octet % (ring / 8u); }

struct span_range {
  uint64_t keys, values;
  uint kv_head, positions, first, count, seen;
};

// Octets past the last one are replaced by the last one, so that loads need no condition.
uint64_t key_address(uint layer, span_range at) {
  uint octet = slot_octet(layer, min(at.first + (gl_LocalInvocationIndex & 255u) / 8u, (at.count - 1u) / 8u));
  return at.keys +
         uint64_t((at.kv_head * ((at.positions + 7u) / 8u) + octet) * chunks * 8u + (gl_LocalInvocationIndex & 7u)) *
             16u;
}
void fetch_quarter(uint64_t from, uint quarter, uint to) {
  [[unroll]] for (uint i = 0u; i < 8u; ++i)
    if (i < quarter_chunks) key_words[(to + i) & 7u] = WordQuads(from + uint64_t(quarter) * 128u).at[i * 32u];
}
void fetch_values(uint layer, span_range at, uint n, uint to) {
  uint octet =
      slot_octet(layer, min(at.first + gl_LocalInvocationIndex / quads + n * octets_at_once, (at.count - 1u) / 8u));
  WordPairs values = WordPairs(
      at.values + uint64_t((at.kv_head * at.positions + octet * 8u) * quads + gl_LocalInvocationIndex % quads) * 8u);
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    value_words[to + j] = uvec2(0u);
    if (context % 8u == 0u || octet * 8u + j < at.positions) value_words[to + j] = values.at[j * quads];
  }
}

// half_from_float of a value that is a normal f16.
uint half_of_normal(float value) {
  uint bits = floatBitsToUint(value), magnitude = bits & 0x7fffffffu;
  uint rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
  return (bits >> 16 & 0x8000u) | ((rounded - 0x38000000u) >> 13);
}
bool normal_half(float value) {
  uint magnitude = floatBitsToUint(value) & 0x7fffffffu;
  return magnitude >= 0x38800000u && magnitude < 0x477ff000u;
}
// pack_f16 of both pairs. Without branches if all four are normal f16 values, which is nearly always the case.
uvec2 f16_quad(vec4 x) {
  if (normal_half(x.x) && normal_half(x.y) && normal_half(x.z) && normal_half(x.w))
    return uvec2(half_of_normal(x.x) | half_of_normal(x.y) << 16, half_of_normal(x.z) | half_of_normal(x.w) << 16);
  return uvec2(pack_f16(x.x, x.y), pack_f16(x.z, x.w));
}

#include "block_sum.glsl"

// Reads query, key and value of this position: adds biases if there are any, normalises q and k if there are norms,
// rotates them, and converts k and v to f16. The first of the heads that share k and v writes them to the caches.
void await_fresh(uint layer, uint head, span_range at, uint64_t from_qkv, bool stores) {
  const uint pair_quads = head_dim / 4u;  // pairs (p, p + head_dim / 2), two per quad
  uint t = gl_LocalInvocationIndex, which = t / pair_quads, j = t % pair_quads;
  uint from = which == 0u ? head : which == 1u ? heads + at.kv_head : heads + kv_heads + at.kv_head;
  bool mine = t < 3u * pair_quads;
  vec4 bias = vec4(0.0);
  if (biased_heads && mine) bias = FloatQuads(address_of(layer, argument_biases)).at[from * pair_quads + j];
  vec4 y = await_quad(SharedQuads(from_qkv), from * pair_quads + j, mine);
  vec2 low = y.xz, high = y.yw;
  if (turned != 0u) {  // quads of channels in their own order
    precise vec4 sum_of_both = y + bias;
    if (biased_heads) y = sum_of_both;
    precise vec4 square = y * y;
    precise float sum = (square.x + square.y) + (square.z + square.w);
    if (mine) {
      pool[t] = floatBitsToUint(y);
      if (head_norms == norms_each_head) pool[3u * quads + t / 4u][t & 3u] = floatBitsToUint(sum);
    }
    barrier();
    uint from_quad = min(which, 2u) * quads + (j >> 1);
    vec4 near = pooled(from_quad), far = pooled(from_quad + quads / 2u);
    low = (j & 1u) != 0u ? near.zw : near.xy;
    high = (j & 1u) != 0u ? far.zw : far.xy;
    if (head_norms != norms_none && which < 2u) {
      float r;
      uint first = 0u;  // index of the head's first pair among the weights' pairs
      if (head_norms == norms_all_heads) {
        r = which == 0u ? r_of_all_heads.x : r_of_all_heads.y;
        first = (which == 0u ? head : at.kv_head) * (head_dim / 2u);
      } else {
        precise float both = block_sum(3u * quads + which * quads / 4u);
        if (quads == 64u) both = both + block_sum(3u * quads + which * quads / 4u + 8u);
        precise float mean = both / float(head_dim) + eps;
        precise float root = 1.0 / sqrt(mean);
        r = finite(mean) ? root : not_a_number;
      }
      FloatPairs weight = FloatPairs(address_of(layer, which == 0u ? argument_q_norm : argument_k_norm));
      precise vec2 low_product = low * weight.at[first + j], high_product = high * weight.at[first + j + head_dim / 4u];
      precise vec2 low_y = low_product * r, high_y = high_product * r;
      low = low_y;
      high = high_y;
    }
  }
  if (which < 2u) {
    uint turn = (full(layer) ? 0u : head_dim / 2u) + 2u * j;
    vec2 a = rotation[turn], b = rotation[turn + 1u];
    vec2 sine = vec2(a.x, b.x), cosine = vec2(a.y, b.y);
    precise vec2 turned_low = low * cosine - high * sine, turned_high = high * cosine + low * sine;
    low = turned_low;
    high = turned_high;
  }
  if (mine) {
    if (which == 0u) {
      uint part = 2u * (j & 1u);
      fresh[j >> 1][part] = low.x;
      fresh[j >> 1][part + 1u] = low.y;
      fresh[(j >> 1) + head_dim / 8u][part] = high.x;
      fresh[(j >> 1) + head_dim / 8u][part + 1u] = high.y;
    } else {
      uvec2 words = f16_quad(vec4(low, high));
      uint pair = (which - 1u) * head_dim / 2u + j;
      fresh_words[pair >> 1][pair & 1u] = words.x;
      fresh_words[(pair >> 1) + head_dim / 8u][pair & 1u] = words.y;
    }
  }
  barrier();
  uint slot = has_all(layer) ? position : position % ring;
  if (stores && slot < at.positions) {
    if (t < chunks) {
      WordQuads(at.keys).at[((at.kv_head * ((at.positions + 7u) / 8u) + slot / 8u) * chunks + t) * 8u + (slot & 7u)] =
          uvec4(fresh_words[2u * t], fresh_words[2u * t + 1u]);
    } else if (t >= 64u && t < 64u + quads) {
      WordPairs(at.values).at[(at.kv_head * at.positions + slot) * quads + t - 64u] = fresh_words[quads + t - 64u];
    }
  }
}

// One quarter's part of a score.
float quarter_score(uint quarter, uint from, bool newest) {
  precise vec4 a = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 8u; ++i)
    if (i < quarter_chunks) {
      uint chunk = quarter + 4u * i;
      uvec4 words = key_words[(from + i) & 7u];
      if (newest) words = uvec4(fresh_words[2u * chunk], fresh_words[2u * chunk + 1u]);
      vec4 low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)),
           high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
      precise vec4 low_products = fresh[2u * chunk] * low;
      a = a + low_products;
      precise vec4 high_products = fresh[2u * chunk + 1u] * high;
      a = a + high_products;
    }
  precise float sum = (a.x + a.y) + (a.z + a.w);
  return sum;
}
float score_of(uint own, span_range at) {
  precise float sum =
      uintBitsToFloat(pool[parts_at + own / 4u][own & 3u]) + uintBitsToFloat(pool[parts_at + 64u + own / 4u][own & 3u]);
  uint its = at.first * 8u + own;
  return its < at.count && its >= at.seen ? scaled_score(sum) : minus_infinity;
}

// Computes a span's maximum and total. The first invocations return the sums of a quad of channels each.
vec4 compute_span(uint layer, span_range at, out vec2 weight) {
  uint t = gl_LocalInvocationIndex, own = t & 255u, quarter = t >> 8 << 1;
  bool newest = at.first * 8u + own == position;
  precise float part = quarter_score(quarter, 0u, newest);
  if (!keys_at_once) fetch_quarter(key_address(layer, at), quarter + 1u, 0u);
  part = part + quarter_score(quarter + 1u, keys_at_once ? 4u : 0u, newest);
  if (!keys_at_once) {
    fetch_values(layer, at, 0u, 0u);
    fetch_values(layer, at, 1u, 8u);
  }
  pool[parts_at + t / 4u][t & 3u] = floatBitsToUint(part);
  barrier();
  if (t < 32u) {
    vec4 most4 = vec4(minus_infinity);
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      precise vec4 sum = pooled(parts_at + 2u * t + i) + pooled(parts_at + 64u + 2u * t + i);
      [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        uint its = at.first * 8u + 8u * t + 4u * i + j;
        if (its < at.count && its >= at.seen) most4[j] = max(most4[j], scaled_score(sum[j]));
      }
    }
    pool[maxima_at + t / 4u][t & 3u] = floatBitsToUint(max(max(most4.x, most4.y), max(most4.z, most4.w)));
  }
  barrier();
  vec4 most = pooled(maxima_at);
  [[unroll]] for (uint i = 1u; i < 8u; ++i)
    most = max(most, pooled(maxima_at + i));
  float m = max(max(most.x, most.y), max(most.z, most.w));
  if (t < 256u) {
    float score = score_of(t, at);
    precise float below = score - m;
    bool sees = at.first * 8u + t < at.count && at.first * 8u + t >= at.seen;
    pool[chances_at + t / 4u][t & 3u] = floatBitsToUint(sees ? canonical_exp(sees ? below : 0.0) : 0.0);
  }
  barrier();
  [[dont_unroll]] for (uint n = 0u; n < own_octets; n += 2u) {
    if (n != 0u) {
      fetch_values(layer, at, n, 0u);
      fetch_values(layer, at, n + 1u, 8u);
    }
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      uint octet = t / quads + (n + i) * octets_at_once;
      if (octet < 32u && t < octets_at_once * quads) {
        vec4 p_low = pooled(chances_at + 2u * octet), p_high = pooled(chances_at + 2u * octet + 1u);
        uint first = (at.first + octet) * 8u;
        precise vec4 acc = vec4(0.0);
        if (first < at.count) {
          [[unroll]] for (uint j = 0u; j < 8u; ++j) {
            uvec2 words = value_words[8u * i + j];
            if (first + j >= position) words = first + j == position ? fresh_words[quads + t % quads] : uvec2(0u);
            vec4 x = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
            precise vec4 products = (j < 4u ? p_low[j & 3u] : p_high[j & 3u]) * x;
            acc = acc + products;
          }
        }
        pool[octet * quads + t % quads] = floatBitsToUint(acc);
      }
    }
  }
  if (t < 32u)
    pool[totals_at + t / 4u][t & 3u] =
        floatBitsToUint(octet_total(pooled(chances_at + 2u * t), pooled(chances_at + 2u * t + 1u)));
  barrier();
  precise vec4 s[4];
  precise float l[4];
  if (t < quads) [[unroll]]
    for (uint g = 0u; g < 4u; ++g) {
      s[g] = vec4(0.0);
      l[g] = 0.0;
      [[unroll]] for (uint i = 0u; i < 8u; ++i) {
        s[g] = s[g] + pooled((8u * g + i) * quads + t);
        l[g] = l[g] + pooled(totals_at + 2u * g + i / 4u)[i & 3u];
      }
    }
  precise float total = (l[0] + l[1]) + (l[2] + l[3]);
  precise vec4 sums = (s[0] + s[1]) + (s[2] + s[3]);
  weight = vec2(m, total);
  return sums;
}

// The sums of values by their total, with a head's sink.
#if EXPERTS
#define DIVIDED(sums, weight) attended(sums, weight, sink)
float sink_of(uint layer, uint head) {
  float its = 0.0;
  if (has_sinks) its = Floats(address_of(layer, argument_sinks)).at[head];
  return its;
}
#else
#define DIVIDED(sums, weight) (sums / weight.y)
#endif

// Task i is span i / heads, counted among the spans that the token sees, of head i % heads. The workgroup of a head's
// first span merges the head's spans.
void attention(uint layer, uint64_t from, uint64_t to) {
  uint count = count_of(layer), seen = seen_from(layer, count), first_span = seen / span_positions;
  uint t = gl_LocalInvocationIndex, spans = (count + span_positions - 1u) / span_positions - first_span;
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
    span_range at = span_range(address_of(layer, argument_keys), address_of(layer, argument_values),
                               head / (heads / kv_heads), positions_of(layer), (first_span + span) * 32u, count, seen);
#if EXPERTS
    float sink = sink_of(layer, head);
#endif
    uint quarter = t >> 8 << 1;
    fetch_quarter(key_address(layer, at), quarter, 0u);
    if (keys_at_once) {
      fetch_quarter(key_address(layer, at), quarter + 1u, 4u);
      fetch_values(layer, at, 0u, 0u);
      fetch_values(layer, at, 1u, 8u);
    }
    barrier();  // the product's x, or the previous sums, have been read
    await_fresh(layer, head, at, from, span == 0u && head % (heads / kv_heads) == 0u);
    vec2 weight;
    vec4 s = compute_span(layer, at, weight);
    if (spans == 1u) {
      precise vec4 result = DIVIDED(s, weight);
      if (t < quads) SharedQuads(to).at[head * quads + t] = written(result);
    } else if (span != 0u) {
      uint index_ = (head * most_spans + span) * partial_quads;
      if (t < quads) partials.at[index_ + t] = written(s);
      if (t == 0u) partials.at[index_ + quads] = written(vec4(weight, 0.0, 0.0));
    } else {
      merged = s;
      totals = weight;
    }
  }
  if (spans > 1u && gl_WorkGroupID.x < heads) {
    uint head = gl_WorkGroupID.x;
#if EXPERTS
    float sink = sink_of(layer, head);
#endif
    barrier();
    [[dont_unroll]] for (uint round = 1u; round < spans; round += merged_together) {
      uint there = min(merged_together, spans - round), own = t / quads,
           first = (head * most_spans + round) * partial_quads;
      vec4 s = await_quad(partials, first + own * partial_quads + t % quads, own < there);
      if (own < there) pool[own * quads + t % quads] = floatBitsToUint(s);
      vec4 its = await_quad(partials, first + t * partial_quads + quads, t < there);
      if (t < there) pool[maxima_at + t] = floatBitsToUint(its);
      barrier();
      if (t < quads) {
        [[dont_unroll]] for (uint b = 0u; b < there; ++b) {
          vec2 f = merge_factors(totals, pooled(maxima_at + b).xy);
          merged = merged_sums(merged, pooled(b * quads + t), f);
        }
      }
      barrier();
    }
    precise vec4 result = DIVIDED(merged, totals);
    if (t < quads) SharedQuads(to).at[head * quads + t] = written(result);
  }
}

// Attention by four workgroups per head and span, for models with few wide heads: each workgroup scores a quarter of
// the positions, writes its scores for the others and sums up a quarter of the channels. A workgroup always has the
// same head and quarter. It computes the scores of all of its spans before it waits for others' scores.
const uint shares = 4u, shared_quads = quads / shares, shared_positions = span_positions / shares;
const bool shares_heads = (inner_norms == 0u ? unwritten : shares * heads) <= parts;
const uint scores_at = 32u * shared_quads;  // in pool, after the sums of values by octet

void fetch_shared_values(uint layer, span_range at, uint share) {
  uint octet = slot_octet(layer, min(at.first + gl_LocalInvocationIndex / shared_quads, (at.count - 1u) / 8u));
  WordPairs values = WordPairs(at.values + uint64_t((at.kv_head * at.positions + octet * 8u) * quads +
                                                    share * shared_quads + gl_LocalInvocationIndex % shared_quads) *
                                               8u);
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    value_words[j] = uvec2(0u);
    if (gl_LocalInvocationIndex < 32u * shared_quads && (context % 8u == 0u || octet * 8u + j < at.positions))
      value_words[j] = values.at[j * quads];
  }
}
void fetch_shared_keys(uint layer, span_range at, uint share) {
  uint octet = slot_octet(
      layer, min(at.first + (share * shared_positions + (gl_LocalInvocationIndex & (shared_positions - 1u))) / 8u,
                 (at.count - 1u) / 8u));
  uint64_t from =
      at.keys +
      uint64_t((at.kv_head * ((at.positions + 7u) / 8u) + octet) * chunks * 8u + (gl_LocalInvocationIndex & 7u)) * 16u;
  [[unroll]] for (uint i = 0u; i < 8u; ++i)
    key_words[i] = uvec4(0u);
  if (gl_LocalInvocationIndex < 4u * shared_positions)
    fetch_quarter(from, gl_LocalInvocationIndex / shared_positions, 0u);
}

void attention_of_shares(uint layer, uint64_t from, uint64_t to) {
  uint count = count_of(layer), seen = seen_from(layer, count), first_span = seen / span_positions;
  uint t = gl_LocalInvocationIndex, spans = (count + span_positions - 1u) / span_positions - first_span;
  const uint takers = heads * shares, at_once = parts / takers;  // spans
  uint head = gl_WorkGroupID.x % heads, share = gl_WorkGroupID.x / heads % shares,
       first_of_own = gl_WorkGroupID.x / takers;
  if (first_of_own < at_once && first_of_own < spans) {
    SharedQuads partials = SharedQuads(address_of(layer, argument_partials)),
                scores = SharedQuads(from + uint64_t(4u * (q_size + 2u * kv_size)));
    span_range at =
        span_range(address_of(layer, argument_keys), address_of(layer, argument_values), head / (heads / kv_heads),
                   positions_of(layer), (first_span + first_of_own) * 32u, count, seen);
    fetch_shared_keys(layer, at, share);
    fetch_shared_values(layer, at, share);
    barrier();  // the product's x has been read
    await_fresh(layer, head, at, from, first_of_own == 0u && share == 0u && head % (heads / kv_heads) == 0u);
    [[dont_unroll]] for (uint span = first_of_own; span < spans; span += at_once) {
      at.first = (first_span + span) * 32u;
      if (span != first_of_own) {
        fetch_shared_keys(layer, at, share);
        barrier();
      }
      uint own = t & (shared_positions - 1u);
      if (t < 4u * shared_positions) {
        float part =
            quarter_score(t / shared_positions, 0u, at.first * 8u + share * shared_positions + own == position);
        pool[scores_at + t / 4u][t & 3u] = floatBitsToUint(part);
      }
      barrier();
      if (t < shared_positions) {
        uint index_ = scores_at + own / 4u;
        precise float low =
            uintBitsToFloat(pool[index_][own & 3u]) + uintBitsToFloat(pool[index_ + shared_positions / 4u][own & 3u]);
        precise float high = uintBitsToFloat(pool[index_ + shared_positions / 2u][own & 3u]) +
                             uintBitsToFloat(pool[index_ + 3u * shared_positions / 4u][own & 3u]);
        precise float sum = low + high;
        uint its = at.first * 8u + share * shared_positions + own;
        float score = its < at.count && its >= at.seen ? scaled_score(sum) : minus_infinity;
        SharedWords(uint64_t(scores)).at[(span * heads + head) * span_positions + share * shared_positions + own] =
            floatBitsToUint(written(vec2(score)).x);
      }
    }
    vec4 merged = vec4(0.0);
    vec2 totals = vec2(0.0);
    [[dont_unroll]] for (uint span = first_of_own; span < spans; span += at_once) {
      at.first = (first_span + span) * 32u;
      if (span != first_of_own) fetch_shared_values(layer, at, share);
      vec4 its = await_quad(scores, (span * heads + head) * (span_positions / 4u) + t, t < span_positions / 4u);
      barrier();  // the previous content of pool has been read
      if (t < span_positions / 4u) pool[scores_at + t] = floatBitsToUint(its);
      barrier();
      const uint chances_from = scores_at + 64u, maxima_from = chances_from + 64u, totals_from = maxima_from + 8u;
      if (t < 32u) {
        vec4 a = pooled(scores_at + 2u * t), b = pooled(scores_at + 2u * t + 1u), c = max(a, b);
        pool[maxima_from + t / 4u][t & 3u] = floatBitsToUint(max(max(c.x, c.y), max(c.z, c.w)));
      }
      barrier();
      vec4 most = pooled(maxima_from);
      [[unroll]] for (uint i = 1u; i < 8u; ++i)
        most = max(most, pooled(maxima_from + i));
      float m = max(max(most.x, most.y), max(most.z, most.w));
      if (t < 256u) {
        float score = uintBitsToFloat(pool[scores_at + t / 4u][t & 3u]);
        precise float below = score - m;
        bool sees = at.first * 8u + t < at.count && at.first * 8u + t >= at.seen;
        pool[chances_from + t / 4u][t & 3u] = floatBitsToUint(sees ? canonical_exp(sees ? below : 0.0) : 0.0);
      }
      barrier();
      uint octet = t / shared_quads;
      if (octet < 32u) {
        vec4 p_low = pooled(chances_from + 2u * octet), p_high = pooled(chances_from + 2u * octet + 1u);
        uint first = (at.first + octet) * 8u;
        precise vec4 acc = vec4(0.0);
        if (first < at.count) {
          [[unroll]] for (uint j = 0u; j < 8u; ++j) {
            uvec2 words = value_words[j];
            if (first + j >= position)
              words = first + j == position ? fresh_words[quads + share * shared_quads + t % shared_quads] : uvec2(0u);
            vec4 x = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
            precise vec4 products = (j < 4u ? p_low[j & 3u] : p_high[j & 3u]) * x;
            acc = acc + products;
          }
        }
        pool[octet * shared_quads + t % shared_quads] = floatBitsToUint(acc);
      }
      if (t < 32u)
        pool[totals_from + t / 4u][t & 3u] =
            floatBitsToUint(octet_total(pooled(chances_from + 2u * t), pooled(chances_from + 2u * t + 1u)));
      barrier();
      precise vec4 s[4];
      precise float l[4];
      if (t < shared_quads) [[unroll]]
        for (uint g = 0u; g < 4u; ++g) {
          s[g] = vec4(0.0);
          l[g] = 0.0;
          [[unroll]] for (uint i = 0u; i < 8u; ++i) {
            s[g] = s[g] + pooled((8u * g + i) * shared_quads + t);
            l[g] = l[g] + pooled(totals_from + 2u * g + i / 4u)[i & 3u];
          }
        }
      precise float total = (l[0] + l[1]) + (l[2] + l[3]);
      precise vec4 sums = (s[0] + s[1]) + (s[2] + s[3]);
      if (spans == 1u) {
        precise vec4 result = sums / total;
        if (t < shared_quads) SharedQuads(to).at[head * quads + share * shared_quads + t] = written(result);
      } else if (span != 0u) {
        uint index_ = (head * most_spans + span) * partial_quads;
        if (t < shared_quads) partials.at[index_ + share * shared_quads + t] = written(sums);
        if (t == 0u && share == 0u) partials.at[index_ + quads] = written(vec4(m, total, 0.0, 0.0));
      } else {
        merged = sums;
        totals = vec2(m, total);
      }
    }
    if (spans > 1u && first_of_own == 0u) {
      barrier();
      [[dont_unroll]] for (uint round = 1u; round < spans; round += merged_together) {
        uint there = min(merged_together, spans - round), own = t / shared_quads,
             first = (head * most_spans + round) * partial_quads;
        vec4 s =
            await_quad(partials, first + own * partial_quads + share * shared_quads + t % shared_quads, own < there);
        if (own < there) pool[t] = floatBitsToUint(s);
        vec4 its = await_quad(partials, first + t * partial_quads + quads, t < there);
        if (t < there) pool[scores_at + t] = floatBitsToUint(its);
        barrier();
        if (t < shared_quads) {
          [[dont_unroll]] for (uint b = 0u; b < there; ++b) {
            vec2 f = merge_factors(totals, pooled(scores_at + b).xy);
            merged = merged_sums(merged, pooled(b * shared_quads + t), f);
          }
        }
        barrier();
      }
      precise vec4 result = merged / totals.y;
      if (t < shared_quads) SharedQuads(to).at[head * quads + share * shared_quads + t] = written(result);
    }
  }
}

#endif
