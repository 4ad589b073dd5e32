// SPDX-License-Identifier: MIT
// Attention of a batch's sessions in shaders/layers_rows.comp and layers_batch.comp. A workgroup has up to four heads
// that share a session's keys and values and computes span after span; a subgroup has 16 positions of a span, whose
// keys and values go from memory into matrices. Precision is that of prompts: query, keys, values and probabilities are
// f16, all else f32 (docs/kernels.md). The including shader has heads_each, value_parts (workgroups that share the
// channels of values of a task), value_turns (turns in which a workgroup computes its channels, at most most_turns),
// most_value_octets (octets of value channels of a task per lane), tasks, kept_tasks, fresh, fresh_words,
// octet_offsets, pool with a quad for each four of members * heads_each * head_dim sums, attention_quad(index) apart
// from it, and publish_attended, which all invocations call. With INNER_NORMS there are heads of up to 256 channels,
// which the including shader computes from the exchanged q, k and v (bring_heads), and full_every: every full_every-th
// layer has no window.
#ifndef INTAGLIO_ROWS_ATTENTION
#define INTAGLIO_ROWS_ATTENTION

#define attention_float(index) attention_quad((index) >> 2)[uint(index) & 3u]
const uint attention_members = 16u;                               // subgroups per span: span_positions / 16
const uint greatest_at = 0u, totals_at = 4u * attention_members;  // indices for attention_float, [head, subgroup]: the
                                                                  // greatest score, and the total of its probabilities
const uint key_quads = chunks / 4u;                               // per lane and position: chunks 4 * j + lane % 4
const uint turn_chunks = chunks / (value_parts * value_turns),
           value_octets = (turn_chunks + 7u) / 8u;  // octets of value channels in a turn: lane / 4 and lane / 4 + 8
const uint turn_channels = 8u * turn_chunks;
#ifdef INNER_NORMS
const uint most_key_quads = 8u;
#else
const uint most_key_quads = 4u;
const uint query_words = heads_each * head_dim / 2u;  // pairs of channels
#endif

#include "rows_spans.glsl"

float greatest_of_span(uint head) {
  vec4 most = attention_quad((greatest_at + head * attention_members) / 4u);
  [[unroll]] for (uint i = 1u; i < 4u; ++i)
    most = max(most, attention_quad((greatest_at + head * attention_members) / 4u + i));
  return max(max(most.x, most.y), max(most.z, most.w));
}
// One channel of two positions.
f16vec2 same_channel(uvec4 a, uvec4 b, uint channel) {
  uint from = a[channel / 2u], to = b[channel / 2u];
  return as_pair((channel & 1u) == 0u ? from & 0xffffu | to << 16 : from >> 16 | to & 0xffff0000u);
}

void attend(uint layer, uint row, uint first_head, uint part, uint kept) {
  uint t = gl_LocalInvocationIndex, kv_head = first_head / heads_of_key, end = ends[row], newest = positions[row],
       r = lane >> 2, c = lane & 3u;
  uint64_t exchange = address(layer, argument_exchange), keys = address(layer, argument_keys),
           values = address(layer, argument_values);
  float sum[most_turns];  // of a channel of a head
  [[unroll]] for (uint turn = 0u; turn < most_turns; ++turn)
    sum[turn] = 0.0;
  vec2 weight = vec2(0.0);
#ifdef INNER_NORMS
  uint seen = (layer + 1u) % full_every != 0u ? first_seen(end) : 0u;
#else
  uint seen = 0u;
#endif
  uint first_span = seen / span_positions * span_positions;
#define is_seen(position) ((position) < end && (position) >= seen)
#define sees_some(position) ((position) < end && (position) + 16u > seen)  // among a subgroup's positions
  [[dependency_infinite]] for (uint first = first_span; first < end; first += span_positions) {
    uint offsets_from = first == 0u ? 32u * kept : 32u * kept_tasks, own_first = first + 16u * sub;
    if (first != 0u) {
      barrier();
      keep_octets(32u * kept_tasks, row, first);
      barrier();
    }
    bool has_positions = (members == attention_members || sub < attention_members) && sees_some(own_first);
    uvec4 key_words[2u * most_key_quads],
        value_words[4u * most_value_octets];  // [octet of positions, j]; [position: 2 * c, 2 * c + 1 and both + 8,
                                              // octet of channels]
    [[unroll]] for (uint i = 0u; i < 2u * most_key_quads; ++i)
      key_words[i] = uvec4(0u);
    [[unroll]] for (uint i = 0u; i < 4u * most_value_octets; ++i)
      value_words[i] = uvec4(0u);
    if (has_positions) {
      [[unroll]] for (uint n = 0u; n < 2u; ++n) {
        uint octet_offset = octet_offsets[offsets_from + 2u * sub + n];
        if (is_seen(own_first + 8u * n + r)) {
          WordQuads from = WordQuads(keys + uint64_t(key_index(kv_head, octet_offset + r, c)) * 16u);
          [[unroll]] for (uint j = 0u; j < most_key_quads; ++j)
            if (j < key_quads) key_words[most_key_quads * n + j] = from.at[32u * j];
        }
#define BRING_VALUES(turn)                                                                                    \
  [[unroll]] for (uint i = 0u; i < 2u; ++i)                                                                   \
    if (is_seen(own_first + 8u * n + 2u * c + i)) {                                                           \
      WordQuads from = WordQuads(values + uint64_t((kv_head * context + octet_offset + 2u * c + i) * chunks + \
                                                   (part * value_turns + turn) * turn_chunks + r) *           \
                                              16u);                                                           \
      [[unroll]] for (uint o = 0u; o < most_value_octets; ++o)                                                \
        if (o < value_octets) value_words[most_value_octets * (2u * n + i) + o] = from.at[8u * o];            \
    }
#ifndef INNER_NORMS
        BRING_VALUES(0u)
#endif
      }
    }
#ifdef INNER_NORMS
    if (first == first_span) bring_heads(layer, row, first_head, part == 0u);
#else
    if (first == 0u) {
      SharedWords from = SharedWords(exchange + uint64_t(query_at + row * qkv_size * 4u));
      if (t < query_words) {
        uint at = first_head * head_dim + 2u * t, low = from.at[at], high = from.at[at + 1u];
        low = awaited(from, at, low);
        high = awaited(from, at + 1u, high);
        fresh[t / 4u][t & 3u] = rounded(uintBitsToFloat(low), uintBitsToFloat(high));
      } else if (t < query_words + head_dim) {
        uint pair = t - query_words, is_value = pair / (head_dim / 2u),
             at = q_size + (is_value * kv_heads + kv_head) * (head_dim / 2u) + pair % (head_dim / 2u);
        fresh_words[pair / 4u][pair & 3u] = awaited(from, at, from.at[at]);
      }
    }
#endif
    barrier();
    sums_of scores[2];
    float most = minus_infinity;
    [[unroll]] for (uint n = 0u; n < 2u; ++n)
      scores[n] = sums_of(0.0);
    if (has_positions) {
      [[unroll]] for (uint n = 0u; n < 2u; ++n)
        if (own_first + 8u * n + r == newest) {
          [[unroll]] for (uint j = 0u; j < most_key_quads; ++j)
            if (j < key_quads) key_words[most_key_quads * n + j] = fresh_words[4u * j + c];
        }
      [[unroll]] for (uint j = 0u; j < most_key_quads; ++j)
        if (j < key_quads) {
          uvec4 q = fresh[r % heads_each * chunks + 4u * j + c];
          [[unroll]] for (uint e = 0u; e < 2u; ++e) {
            weights_of w = weights_matrix(e == 0u ? q.xy : q.zw, uvec2(0u));
            [[unroll]] for (uint n = 0u; n < 2u; ++n) {
              uvec4 k = key_words[most_key_quads * n + j];
              scores[n] = coopMatMulAdd(w, tokens_matrix(e == 0u ? k.xy : k.zw), scores[n]);
            }
          }
        }
    }
#ifdef INNER_NORMS
    // Loaded after the keys are used: registers do not suffice for both.
    if (has_positions) [[unroll]]
      for (uint n = 0u; n < 2u; ++n) {
        uint octet_offset = octet_offsets[offsets_from + 2u * sub + n];
        BRING_VALUES(0u)
      }
#endif
    // Scores of head r: positions 2 * c and 2 * c + 1 of both octets.
    vec4 its = vec4(scores[0][0], scores[0][1], scores[1][0], scores[1][1]);
    uvec4 its_positions = own_first + 2u * c + uvec4(0u, 1u, 8u, 9u);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      its[i] = is_seen(its_positions[i]) ? scaled_score(its[i]) : minus_infinity;
      most = max(most, its[i]);
    }
    most = max(most, subgroupShuffleXor(most, 1u));
    most = max(most, subgroupShuffleXor(most, 2u));
    if (c == 0u && r < heads_each && (members == attention_members || sub < attention_members))
      attention_float(greatest_at + r * attention_members + sub) = most;
    barrier();
    float greatest = greatest_of_span(r % heads_each), total = 0.0;
    uvec2 chances;
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      vec2 below = vec2(its[2u * i], its[2u * i + 1u]) - greatest;
      chances[i] = rounded(is_seen(its_positions[2u * i]) ? canonical_exp(below.x) : 0.0,
                           is_seen(its_positions[2u * i + 1u]) ? canonical_exp(below.y) : 0.0);
      vec2 both = vec2(as_pair(chances[i]));
      total += both.x + both.y;
    }
    total += subgroupShuffleXor(total, 1u);
    total += subgroupShuffleXor(total, 2u);
    if (c == 0u && r < heads_each && (members == attention_members || sub < attention_members))
      attention_float(totals_at + r * attention_members + sub) = total;
    vec2 merged = vec2(0.0);
    [[unroll]] for (uint turn = 0u; turn < most_turns; ++turn)
      if (turn < value_turns) {
        if (turn != 0u) barrier();
        if (has_positions) {
          [[unroll]] for (uint n = 0u; n < 2u; ++n) [[unroll]]
            for (uint i = 0u; i < 2u; ++i)
              if (own_first + 8u * n + 2u * c + i == newest) {
                [[unroll]] for (uint o = 0u; o < most_value_octets; ++o)
                  if (o < value_octets)
                    value_words[most_value_octets * (2u * n + i) + o] =
                        fresh_words[chunks + (part * value_turns + turn) * turn_chunks + r + 8u * o];
              }
          tokens_of b = tokens_matrix(chances);
          vec4 out_[8];  // [head & 1, octet, half of the octet]
          [[unroll]] for (uint m = 0u; m < 8u; ++m) {
            weights_of w;
            [[unroll]] for (uint o = 0u; o < 2u; ++o) {
              f16vec2 first_pair = f16vec2(0.0),
                      second_pair = f16vec2(0.0);  // stays 0 if a task has no channels for these rows
              if (o < most_value_octets) {
                first_pair = same_channel(value_words[o], value_words[most_value_octets + o], m);
                second_pair =
                    same_channel(value_words[2u * most_value_octets + o], value_words[3u * most_value_octets + o], m);
              }
              w[4u * o] = first_pair.x;
              w[4u * o + 1u] = first_pair.y;
              w[4u * o + 2u] = second_pair.x;
              w[4u * o + 3u] = second_pair.y;
            }
            sums_of of_channels = coopMatMulAdd(w, b, sums_of(0.0));
            [[unroll]] for (uint o = 0u; o < most_value_octets; ++o) [[unroll]]
              for (uint h = 0u; h < 2u; ++h) out_[h * 4u + o * 2u + m / 4u][m & 3u] = of_channels[2u * o + h];
          }
          [[unroll]] for (uint h = 0u; h < 2u; ++h)
            if (2u * c + h < heads_each) {
              uint to = ((sub * heads_each + 2u * c + h) * turn_channels + 8u * r) / 4u;
              [[unroll]] for (uint o = 0u; o < most_value_octets; ++o)
                if (o < value_octets) {
                  pool[to + 16u * o] = out_[h * 4u + o * 2u];
                  pool[to + 16u * o + 1u] = out_[h * 4u + o * 2u + 1u];
                }
            }
          if (turn + 1u < value_turns) [[unroll]]
            for (uint n = 0u; n < 2u; ++n) {
              uint octet_offset = octet_offsets[offsets_from + 2u * sub + n];
              BRING_VALUES(turn + 1u)
            }
        }
        barrier();
        if (t < heads_each * turn_channels) {
          uint h = t / turn_channels;
          float of_span = 0.0;
          [[unroll]] for (uint i = 0u; i < attention_members; ++i)
            if (sees_some(first + 16u * i)) of_span += pooled(i * heads_each * turn_channels + t);
          vec4 four = attention_quad((totals_at + h * attention_members) / 4u);
          [[unroll]] for (uint i = 1u; i < 4u; ++i)
            four += attention_quad((totals_at + h * attention_members) / 4u + i);
          vec2 later = vec2(greatest_of_span(h), (four.x + four.y) + (four.z + four.w));
          if (first == first_span) {
            weight = later;
            sum[turn] = of_span;
          } else {
            if (turn == 0u) merged = merge_factors(weight, later);
            sum[turn] = sum[turn] * merged.x + of_span * merged.y;
          }
        }
      }
  }
  [[unroll]] for (uint turn = 0u; turn < most_turns; ++turn)
    sum[turn] = end != 0u ? sum[turn] / weight.y : 0.0;
  publish_attended(exchange, row, first_head, part, sum);
  barrier();
}

void keep_first_octets() {
  [[dont_unroll]] for (uint i = 0u; i < kept_tasks; ++i) {
    uint task = gl_WorkGroupID.x + i * parts;
    if (task < tasks) keep_octets(32u * i, task / value_parts / tasks_of_row, 0u);
  }
}
void attention(uint layer) {
  [[dependency_infinite]] for (uint i = 0u; i < kept_tasks; ++i) {
    uint task = gl_WorkGroupID.x + i * parts;
    if (task < tasks)
      attend(layer, task / value_parts / tasks_of_row, task / value_parts % tasks_of_row * heads_each,
             task % value_parts, i);
  }
}

#endif
