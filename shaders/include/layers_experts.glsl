// SPDX-License-Identifier: MIT
// A mixture of experts in shaders/layers_coded.comp: every workgroup computes some rows of the router, waits for all
// logits and chooses the experts itself. The result is that of the kernels matmul, route and expert_sum in sequence.
#ifndef INTAGLIO_LAYERS_EXPERTS
#define INTAGLIO_LAYERS_EXPERTS

#include "route.glsl"

// Index of a quad of the normalised stream among the floats.
const uint plane_floats = between_planes ? plane_rest : 1u;
uint float_at(uint quad) {
  return between_planes ? quad / plane_floats * x_units + hidden_size / 32u + quad % plane_floats : x_quads + quad;
}
// Writes v to shared memory as floats. Its previous content has been read; stage() has the barrier after this.
void stage_floats() {
  const uint count = hidden_size / 4u;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uint quad = 2u * pair_of(i >> 1) + (i & 1u);
    if ((i >> 1) * 2u * threads < count && quad < count) pool[float_at(quad)] = floatBitsToUint(v[i]);
  }
}

// The workgroup's rows of the router, f32 [experts, hidden_size]: one per subgroup, beginning with the last subgroup.
uint first_router_row() { return gl_WorkGroupID.x + (members - 1u - sub) * parts; }
// Reads a word of every 128 bytes of the subgroup's first row into L1 while the stream is waited for.
void touch_router(uint64_t router) {
  uint row = first_router_row();
  if (row >= experts) return;
  Words w = Words(router + uint64_t(row * hidden_size * 4u));
  [[unroll]] for (uint k = 0u; k < 8u; ++k)
    if (k * 1024u < hidden_size) touched ^= w.at[min(k * 1024u + lane * 32u, hidden_size - 1u)];
}
// bias: f32 [experts], if experts are biased.
void write_logits(uint64_t router, uint64_t to, uint64_t bias) {
  const uint n = hidden_size / 8u, rounds = (n + 31u) / 32u, rounds_ahead = 4u;
  for (uint row = first_router_row(); row < experts; row += members * parts) {
    FloatQuads w = FloatQuads(router + uint64_t(row * hidden_size * 4u));
    vec4 low = vec4(0.0), high = vec4(0.0);
    float its_bias = 0.0;
    if (biased_experts) its_bias = Floats(bias).at[row];
    for (uint base = 0u; base < rounds; base += rounds_ahead) {
      vec4 w_low[rounds_ahead], w_high[rounds_ahead];
      [[unroll]] for (uint k = 0u; k < rounds_ahead; ++k) {
        uint at = min(32u * (base + k) + lane, n - 1u);
        w_low[k] = w.at[2u * at];
        w_high[k] = w.at[2u * at + 1u];
      }
      [[unroll]] for (uint k = 0u; k < rounds_ahead; ++k) {
        uint index = 32u * (base + k) + lane, at = min(index, n - 1u);
        precise vec4 product_low = w_low[k] * uintBitsToFloat(pool[float_at(2u * at)]),
                     product_high = w_high[k] * uintBitsToFloat(pool[float_at(2u * at + 1u)]);
        precise vec4 low_sum = low + product_low, high_sum = high + product_high;
        low = index < n ? low_sum : low;
        high = index < n ? high_sum : high;
      }
    }
    precise float sum = butterfly(sum8(low, high));
    if (biased_experts) sum = sum + its_bias;
    if (lane == 0u) SharedWords(to).at[row] = floatBitsToUint(written(vec2(sum, 0.0)).x);
  }
}

uint await_word(uint64_t from, uint at) {
  uint tries = 0u, word = SharedWords(from).at[at];
  while (word == unwritten) {
    word = SharedWords(from).at[at];
    if (out_of_spins(++tries)) break;
  }
  if (word == unwritten && !timed_out) time_out();
  return word;
}

// Neighbouring lanes that count, for one expert, the experts ahead of it: four, two or one, as there are invocations.
const uint counting_or_one = 2u * experts <= threads ? 2u : 1u,
           counting = 4u * experts <= threads ? 4u : counting_or_one;
// Chooses the token's experts and their shares, from the logits of all workgroups. experts: at most `threads`.
void choose_experts(uint64_t logits) {
  uint t = gl_LocalInvocationIndex;
  first_choice = 0u;
  if (t < 4u * expert_quads) {
    float logit = uintBitsToFloat(await_word(logits, min(t, experts - 1u)));
    expert_logits[t / 4u][t & 3u] = logit;
    expert_keys[t / 4u][t & 3u] = t < experts ? key_of(logit) : 0u;
  }
  barrier();
  uint e = min(t / counting, experts - 1u), key = expert_keys[e / 4u][e & 3u], ahead = 0u;
  for (uint first = 0u; first < expert_quads; first += counting) {
    uint q = first + t % counting;
    uint its = ahead_of(expert_keys[min(q, expert_quads - 1u)], 4u * q + uvec4(0u, 1u, 2u, 3u), key, e);
    ahead += q < expert_quads ? its : 0u;
  }
  [[unroll]] for (uint d = 1u; d < 4u; d <<= 1)
    if (d < counting) ahead += subgroupShuffleXor(ahead, d);
  if (t % counting == 0u && t / counting < experts && ahead < experts_used) {
    chosen_experts[ahead] = e;
    chosen_logits[ahead] = expert_logits[e / 4u][e & 3u];
  }
  barrier();
  const uint count = (counted_experts + 3u) / 4u;
  if (t < 4u * count) {
    uint of = min(t, counted_experts - 1u);
    precise float below =
        (over_all ? expert_logits[of / 4u][of & 3u] : chosen_logits[min(of, experts_used - 1u)]) - chosen_logits[0];
    expert_parts[t / 4u][t & 3u] = t < counted_experts ? canonical_exp(below) : 0.0;
  }
  barrier();
  if (t < experts_used) {
    precise float sum = 0.0;
    for (uint q = 0u; q < count; ++q) {
      vec4 part = expert_parts[q];
      sum = (((sum + part.x) + part.y) + part.z) + part.w;
    }
    precise float below = chosen_logits[t] - chosen_logits[0];
    precise float share = canonical_exp(below) / sum;
    expert_shares[t] = share;
  }
}

// Computes the down projections of the token's experts and adds their sum to the stream, in this workgroup's rows.
void lower_experts(uint layer, uint64_t to) {
  for (first_choice = 0u; first_choice < experts_used; first_choice += experts_together) {
    if (biased_experts) load_row_biases(down, address_of(layer, argument_down_bias), 0ul);
    take_in(x + uint64_t(first_choice * intermediate_size * 4u), ffn_columns / 4u, 0u);
    WITH_CODEC(of_down, fetch(weight, down, sub));
    barrier();  // the previous x has been read
    stage(ffn_columns / 4u, 0u, 0u, 0u, false);
    WITH_CODEC(of_down, multiply(down, weight, to, sub, members, false));
  }
  barrier();
  uint own = gl_LocalInvocationIndex;
  if (own < own_pairs(down)) {
    precise vec2 sum = vec2(0.0);
    for (uint j = 0u; j < experts_used; ++j) {
      precise vec2 part = uintBitsToFloat(lowered[own * experts_used + j]) * expert_shares[j];
      sum = sum + part;
    }
    precise vec2 all = kept[hidden_size / 2u / parts + 2u + own] + sum;
    SharedPairs(to).at[first_pair(down) + own] = written(all);
  }
}

#endif
