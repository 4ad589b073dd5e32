// SPDX-License-Identifier: MIT
// Picks the next token (docs/kernels.md, "Sample") with one workgroup. Selections go down the digits of a sortable key with
// histograms of integers, so that neither the number of invocations nor their order shows in the token. With several draws each workgroup
// picks what follows its own token of the pass.
// variant: sample -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"
#include "sampling.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint vocab_size = 4096;
layout(constant_id = 2) const uint ring_size = 256;
layout(constant_id = 3) const uint context = 256;
layout(constant_id = 4) const uint max_tokens = 1;
layout(constant_id = 5) const uint subgroup_width = 0;
layout(constant_id = 6) const uint draws = 1;
layout(constant_id = 7) const uint first_count = 0;
layout(constant_id = 8) const uint slot_words = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "first_token.glsl"

layout(push_constant, scalar) uniform Push { Words logits, state, ring, scratch, drawn, firsts; };
#include "slots.glsl"

// One invocation's marks are read by others.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Marks { uint at[]; };

const uint quads = (vocab_size + 3u) / 4u, mark_words = (vocab_size + 31u) / 32u;
// Rows of logits begin at whole quads.
const bool whole_quads = vocab_size % 4u == 0u;
const uint key_of_infinity = 0xff800000u, key_of_minus_infinity = 0x007fffffu;
shared uint bins[256], low_bins[256];
shared uvec2 from_subgroup[workgroup_size / 4u];

// Quads whose loads stand together where nothing is penalised: a GPU would wait for each otherwise.
const uint batch = subgroup_width >= 32u ? 8u : 1u;
#define each_quad(quad) for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size)

bool penalised;
float penalty;
uint token_of_pass;  // whose successor is drawn
uint own;            // first word of its slot, 0 where there are none
const bool several = draws > 1u || batched;

// Logits 4 * quad .. 4 * quad + 3; minus infinity past the vocabulary.
vec4 stored_logits4(uint quad) {
  vec4 l = vec4(uintBitsToFloat(0xff800000u));
  if (whole_quads || (!several && 4u * quad + 4u <= vocab_size)) {
    l = FloatQuads(logits).at[token_of_pass * quads + quad];
  } else {
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)
      if (4u * quad + i < vocab_size) l[i] = Floats(logits).at[token_of_pass * vocab_size + 4u * quad + i];
  }
  return l;
}
vec4 penalised4(uint quad, vec4 l) {
  uint seen = Marks(scratch).at[token_of_pass * mark_words + quad / 8u] >> (4u * (quad & 7u));
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)
    if ((seen >> i & 1u) != 0u) {
      precise float p = l[i] > 0.0 ? l[i] / penalty : l[i] * penalty;
      l[i] = p;
    }
  return l;
}
// After the penalty.
vec4 logits4(uint quad) {
  vec4 l = stored_logits4(quad);
  return penalised ? penalised4(quad, l) : l;
}

// 64-bit numbers as (high, low).
uvec2 plus(uvec2 a, uint b) {
  uint carry, low = uaddCarry(a.y, b, carry);
  return uvec2(a.x + carry, low);
}
uvec2 minus(uvec2 a, uvec2 b) { return uvec2(a.x - b.x - uint(a.y < b.y), a.y - b.y); }
bool reaches(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y >= b.y); }
// Weights are added as their upper and lower 12 bits, so that 2^18 of them do not wrap.
uvec2 joined(uint upper, uint lower) { return plus(uvec2(upper >> 20, upper << 12), lower); }

// What a selection counts: tokens, weights at temperature 1, or weights at the temperature asked for of what min-p leaves.
const uint counts_tokens = 0u, counts_weights = 1u, counts_chances = 2u;
float maximum, scale;
uint least_weight;

uint amount_of(uint what, float l) {
  if (what == counts_tokens) return 1u;
  uint w = weight_of(l, maximum, log2_e);
  if (what == counts_weights) return w;
  return w >= least_weight ? weight_of(l, maximum, scale) : 0u;
}

// The last (key, ~id) of the shortest start of the order whose amounts reach `target` (over 0). Only what is not after `end` takes part.
// Seven digits of 8 bits: four of the key, three of ~id. Chances go by the id alone, the lowest first.
uvec2 select(uint what, uvec2 target, uvec2 end) {
  uvec2 prefix = uvec2(0u, 0xff000000u);
  bool by_key = what != counts_chances;
  for (uint digit = by_key ? 0u : 4u; digit < 7u; ++digit) {
    uint shift = digit < 4u ? 24u - 8u * digit : 16u - 8u * (digit - 4u);
    for (uint b = gl_LocalInvocationIndex; b < 256u; b += workgroup_size) bins[b] = low_bins[b] = 0u;
    workgroup_barrier();
    each_quad(quad) {
      vec4 l = logits4(quad);
      for (uint i = 0u; i < 4u; ++i) {
        uvec2 place = uvec2(key_of(l[i]), ~(4u * quad + i));
        bool part = !before(end, place) && 4u * quad + i < vocab_size;
        // The digits above this one must be those found so far.
        if (by_key && digit >= 1u) part = part && (place.x ^ prefix.x) >> (digit < 4u ? shift + 8u : 0u) == 0u;
        if (digit >= 5u) part = part && (place.y ^ prefix.y) >> (shift + 8u) == 0u;
        if (part) {
          uint bin = (digit < 4u ? place.x : place.y) >> shift & 255u, amount = amount_of(what, l[i]);
          if (amount >> 12 != 0u) atomicAdd(bins[bin], amount >> 12);
          if ((amount & 4095u) != 0u) atomicAdd(low_bins[bin], amount & 4095u);
        }
      }
    }
    workgroup_barrier();
    uint bin = 255u;
    uvec2 amount;
    for (;; --bin) {
      amount = joined(bins[bin], low_bins[bin]);
      if (reaches(amount, target) || bin == 0u) break;
      target = minus(target, amount);
    }
    workgroup_barrier();
    if (digit < 4u) prefix.x |= bin << shift;
    else prefix.y |= bin << shift;
    if (by_key && amount == target) {  // all of this bin are needed
      if (digit < 4u) prefix.y = 0u;
      break;
    }
  }
  return prefix;
}

uvec2 total_of(uint what, uvec2 end) {
  uint upper = 0u, lower = 0u;
  each_quad(quad) {
    vec4 l = logits4(quad);
    for (uint i = 0u; i < 4u; ++i)
      if (!before(end, uvec2(key_of(l[i]), ~(4u * quad + i))) && 4u * quad + i < vocab_size) {
        uint amount = amount_of(what, l[i]);
        upper += amount >> 12;
        lower += amount & 4095u;
      }
  }
  upper = uint(subgroup_sum(int(upper)));
  lower = uint(subgroup_sum(int(lower)));
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) from_subgroup[gl_SubgroupID] = uvec2(upper, lower);
    barrier();
    upper = lower = 0u;
    for (uint g = 0u; g < gl_NumSubgroups; ++g) {
      upper += from_subgroup[g].x;
      lower += from_subgroup[g].y;
    }
    barrier();
  }
  return joined(upper, lower);
}

// floor((total * share + more) / 2^bits), bits 16 or 32.
uvec2 share_of(uvec2 total, uint share, uint more, uint bits) {
  uint high, low, high2, low2, carry;
  umulExtended(total.y, share, high, low);
  umulExtended(total.x, share, high2, low2);
  low = uaddCarry(low, more, carry);
  low2 = uaddCarry(low2, carry, carry);
  high2 += carry;
  high = uaddCarry(high, low2, carry);
  high2 += carry;
  if (bits == 32u) return uvec2(high2, high);
  return uvec2(high2 << 16 | high >> 16, high << 16 | low >> 16);
}

uint draw(uvec2 first, float temperature, uint position) {
  maximum = uintBitsToFloat(first.x ^ ((first.x & 0x80000000u) != 0u ? 0x80000000u : 0xffffffffu));
  precise float by_temperature = log2_e / temperature;
  scale = by_temperature;
  uint k = state.at[own + state_top_k];
  float top_p = uintBitsToFloat(state.at[own + state_top_p]), min_p = uintBitsToFloat(state.at[own + state_min_p]);
  least_weight = min_p > 0.0 ? uint(ceil(min(min_p, 1.0) * 16777216.0)) : 0u;
  uint random = philox(uvec4(position, 0u, 0u, 0u), uvec2(state.at[own + state_seed_low], state.at[own + state_seed_high])).x;
  uvec2 end = uvec2(0u);
  for (uint step = counts_tokens; step <= counts_chances; ++step) {  // one call, because compilers copy it to where it is called
    uvec2 target = uvec2(0u, k);
    if (step == counts_tokens && (k == 0u || k >= vocab_size)) continue;
    if (step == counts_weights && !(top_p < 1.0)) continue;
    if (step != counts_tokens) {
      uvec2 total = total_of(step, end);
      if (step == counts_weights) {
        precise float share = max(top_p, 0.0) * 65536.0 + 0.5;
        target = share_of(total, uint(share), 65535u, 16u);
        if (target == uvec2(0u)) target.y = 1u;
      } else {
        target = plus(share_of(total, random, 0u, 32u), 1u);
      }
    }
    end = select(step, target, end);
  }
  return ~end.y;
}

// The first of the order so far, where quads come in rising order.
void take_first(inout uvec2 first, uint quad, vec4 l) {
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
    uint key = key_of(l[i]);
    bool greater = key > first.x && (whole_quads || 4u * quad + i < vocab_size);
    first = mix(first, uvec2(key, ~(4u * quad + i)), bvec2(greater));
  }
}

void main() {
  find_place();
  token_of_pass = several ? gl_WorkGroupID.x : 0u;
  if (batched && token_of_pass >= state.at[state_count]) return;
  own = batched ? slot_at(token_of_pass) : 0u;
  uint count = state.at[own + state_count];
  if (batched ? count == 0u : token_of_pass >= count) return;
  uint position = state.at[own + state_position] + (draws > 1u ? token_of_pass + 1u : count), generated = state.at[own + state_generated];
  float temperature = uintBitsToFloat(state.at[own + state_temperature]);
  penalty = uintBitsToFloat(state.at[own + state_repeat_penalty]);
  uint window = min(state.at[own + state_repeat_last_n], position);
  penalised = penalty != 1.0 && window != 0u;
  if (penalised) {
    for (uint i = gl_LocalInvocationIndex; i < mark_words; i += workgroup_size) Marks(scratch).at[token_of_pass * mark_words + i] = 0u;
    workgroup_barrier();
    for (uint i = position - window + gl_LocalInvocationIndex; i < min(position, context); i += workgroup_size) {
      uint id = state.at[own + state_tokens + max_tokens + i];
      if (id < vocab_size) atomicOr(Marks(scratch).at[token_of_pass * mark_words + id / 32u], 1u << (id & 31u));
    }
    workgroup_barrier();
  }

  uvec2 first = uvec2(0u);
  if (first_count != 0u && !penalised) {
    for (uint i = gl_LocalInvocationIndex; i < first_count; i += workgroup_size) first = earlier(first, WordPairs(firsts).at[i]);
  } else if (batch > 1u && !penalised) {
    for (uint start = gl_LocalInvocationIndex; start < quads; start += batch * workgroup_size) {
      vec4 l[8];
      LATER_UNROLLED for (uint b = 0u; b < batch; ++b) l[b] = stored_logits4(min(start + b * workgroup_size, quads - 1u));
      LATER_UNROLLED for (uint b = 0u; b < batch; ++b) take_first(first, min(start + b * workgroup_size, quads - 1u), l[b]);
    }
  } else {
    each_quad(quad) take_first(first, quad, logits4(quad));
  }
  first = first_of(first);
  uint token = ~first.y;
  if (first.x >= key_of_infinity || first.x <= key_of_minus_infinity) token = vocab_size;
  else if (temperature >= 1e-6) token = draw(first, temperature, position - 1u);

  if (draws > 1u) {
    if (gl_LocalInvocationIndex == 0u) drawn.at[token_of_pass] = token;
  } else if (gl_LocalInvocationIndex == 0u) {
    state.at[own + state_position] = position;
    state.at[own + state_count] = batched && position >= state.at[own + state_limit] ? 0u : 1u;
    state.at[own + state_generated] = generated + 1u;
    state.at[own + state_tokens] = token;
    if (position < context) state.at[own + state_tokens + max_tokens + position] = token;
    ring.at[(batched ? token_of_pass * ring_size : 0u) + generated % ring_size] = token;
  }
}
