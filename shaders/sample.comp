// SPDX-License-Identifier: MIT
// Picks the next token (docs/kernels.md, "Sample") with one workgroup. Selections go down the digits of a sortable key with
// histograms of integers, so that neither the number of invocations nor their order shows in the token; where few tokens can be chosen at all, they are
// listed first and the digits are counted over the list. With several draws each workgroup picks what follows its own token of the pass.
// variant: sample -DWIDE_LOADS=0 -DSURVIVORS=1
// variant: sample_cpu -DWIDE_LOADS=0 -DSURVIVORS=0
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
layout(constant_id = 9) const uint most_survivors = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "first_token.glsl"

layout(push_constant, scalar) uniform Push { Words logits, state, ring, scratch, drawn, firsts; };
#include "slots.glsl"

// One invocation's marks are read by others.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Marks { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) coherent buffer Survivors { uvec2 at[]; };

const uint quads = (vocab_size + 3u) / 4u, mark_words = (vocab_size + 31u) / 32u;
// Rows of scratch: marks, then survivors.
const uint mark_row = mark_words + (mark_words & 1u), scratch_row = mark_row + 2u * most_survivors;
// Rows of logits begin at whole quads.
const bool whole_quads = vocab_size % 4u == 0u;
const uint key_of_infinity = 0xff800000u, key_of_minus_infinity = 0x007fffffu;
shared uint bins[256], low_bins[256];
shared uvec2 bin_groups[16];  // of 16 bins each
shared uvec2 from_subgroup[workgroup_size / 4u];
#if SURVIVORS
shared uint survivor_count;
#endif

// Quads whose loads stand together: a GPU would wait for each otherwise.
const uint batch = subgroup_width >= 32u ? 8u : 1u;

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
  uint seen = Marks(scratch).at[token_of_pass * scratch_row + quad / 8u] >> (4u * (quad & 7u));
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

// Quads start, start + workgroup_size, ...; past the end the last one.
void load_quads(uint start, out vec4 l[8]) {
  LATER_UNROLLED for (uint b = 0u; b < batch; ++b) l[b] = stored_logits4(min(start + b * workgroup_size, quads - 1u));
  if (penalised) LATER_UNROLLED for (uint b = 0u; b < batch; ++b) l[b] = penalised4(min(start + b * workgroup_size, quads - 1u), l[b]);
}

// 64-bit numbers as (high, low).
uvec2 plus(uvec2 a, uint b) {
  uint carry, low = uaddCarry(a.y, b, carry);
  return uvec2(a.x + carry, low);
}
uvec2 minus(uvec2 a, uvec2 b) { return uvec2(a.x - b.x - uint(a.y < b.y), a.y - b.y); }
bool reaches(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y >= b.y); }
// Weights are added as their upper and lower 12 bits, so that 2^19 of them do not wrap, nor their sums as ints.
uvec2 joined(uint upper, uint lower) { return plus(uvec2(upper >> 20, upper << 12), lower); }

// What a selection counts: tokens, or weights at temperature 1.
const uint counts_tokens = 0u, counts_weights = 1u;
float maximum, scale;
uint least_weight;

uint likelihood_of(float l) { return weight_of(l, maximum, log2_e); }
uint amount_of(uint what, float l) { return what == counts_tokens ? 1u : likelihood_of(l); }
// At the temperature asked for, of what min-p leaves.
uint chance_of(float l) { return likelihood_of(l) >= least_weight ? weight_of(l, maximum, scale) : 0u; }

// What selections go through: the survivors, one by one, or all logits in quads.
#if SURVIVORS
bool listed;
uint items;
#else
const bool listed = false;
const uint items = quads;
#endif
#define each_item(item) for (uint item = gl_LocalInvocationIndex; item < items; item += workgroup_size)

struct item_of_four {
  uvec2 survivor;
  vec4 logits;
};
item_of_four load_item(uint item) {
  item_of_four o;
  if (listed) o.survivor = Survivors(scratch).at[(token_of_pass * scratch_row + mark_row) / 2u + item];
  else o.logits = logits4(item);
  return o;
}
uvec2 place_of(item_of_four o, uint item, uint i) { return listed ? o.survivor : uvec2(key_of(o.logits[i]), ~(4u * item + i)); }
float logit_of(uint key) { return uintBitsToFloat(key ^ ((key & 0x80000000u) != 0u ? 0x80000000u : 0xffffffffu)); }
bool is_token(uint item, uint i) { return listed ? i == 0u : 4u * item + i < vocab_size; }

void clear_bins() {
  for (uint b = gl_LocalInvocationIndex; b < 256u; b += workgroup_size) bins[b] = low_bins[b] = 0u;
  workgroup_barrier();
}
void add_to_bin(uint bin, uint amount) {
  if (amount >> 12 != 0u) atomicAdd(bins[bin], amount >> 12);
  if ((amount & 4095u) != 0u) atomicAdd(low_bins[bin], amount & 4095u);
}

uvec2 plus(uvec2 a, uvec2 b) { return plus(uvec2(a.x + b.x, a.y), b.y); }
uvec2 bin_amount(uint bin) { return joined(bins[bin], low_bins[bin]); }
// Behind the last addition.
void sum_bins() {
  workgroup_barrier();
  for (uint g = gl_LocalInvocationIndex; g < 16u; g += workgroup_size) {
    uvec2 sum = uvec2(0u);
    for (uint i = 0u; i < 16u; ++i) sum = plus(sum, bin_amount(16u * g + i));
    bin_groups[g] = sum;
  }
  workgroup_barrier();
}
uvec2 sum_of_bins() {
  uvec2 sum = uvec2(0u);
  for (uint g = 0u; g < 16u; ++g) sum = plus(sum, bin_groups[g]);
  return sum;
}
// The bin, from the last or from the first on, in which the sum reaches target; target is then what is wanted of it. Where it never does: the end.
uint bin_reached(inout uvec2 target, bool from_last) {
  uint flip = from_last ? 15u : 0u, g = 0u, i = 0u;
  for (; g < 15u && !reaches(bin_groups[g ^ flip], target); ++g) target = minus(target, bin_groups[g ^ flip]);
  uint first = 16u * (g ^ flip);
  for (; i < 15u && !reaches(bin_amount(first + (i ^ flip)), target); ++i) target = minus(target, bin_amount(first + (i ^ flip)));
  workgroup_barrier();
  return first + (i ^ flip);
}

// The last (key, ~id) of the shortest start of the order whose amounts reach `target` (over 0). Only what is not after `end` takes part.
// Seven digits of 8 bits: four of the key, three of ~id.
uvec2 select(uint what, uvec2 target, uvec2 end) {
  uvec2 prefix = uvec2(0u, 0xff000000u);
  for (uint digit = 0u; digit < 7u; ++digit) {
    uint shift = digit < 4u ? 24u - 8u * digit : 16u - 8u * (digit - 4u);
    clear_bins();
    each_item(item) {
      item_of_four o = load_item(item);
      for (uint i = 0u; i < 4u; ++i) {
        uvec2 place = place_of(o, item, i);
        bool part = !before(end, place) && is_token(item, i);
        // The digits above this one must be those found so far.
        if (digit >= 1u) part = part && (place.x ^ prefix.x) >> (digit < 4u ? shift + 8u : 0u) == 0u;
        if (digit >= 5u) part = part && (place.y ^ prefix.y) >> (shift + 8u) == 0u;
        if (part) add_to_bin((digit < 4u ? place.x : place.y) >> shift & 255u, amount_of(what, logit_of(place.x)));
      }
    }
    sum_bins();
    uint bin = bin_reached(target, true);
    bool all = bin_amount(bin) == target;
    workgroup_barrier();
    if (digit < 4u) prefix.x |= bin << shift;
    else prefix.y |= bin << shift;
    if (all) {  // of this bin are needed
      if (digit < 4u) prefix.y = 0u;
      break;
    }
  }
  return prefix;
}

// Sum over the workgroup of weights' upper and lower bits.
uvec2 workgroup_total(uint upper, uint lower) {
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

uvec2 total_weight(uvec2 end) {
  uint upper = 0u, lower = 0u;
  each_item(item) {
    item_of_four o = load_item(item);
    for (uint i = 0u; i < 4u; ++i) {
      uvec2 place = place_of(o, item, i);
      if (!before(end, place) && is_token(item, i)) {
        uint weight = likelihood_of(logit_of(place.x));
        upper += weight >> 12;
        lower += weight & 4095u;
      }
    }
  }
  return workgroup_total(upper, lower);
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

uvec2 weight_wanted(uvec2 total, float top_p) {
  precise float share = max(top_p, 0.0) * 65536.0 + 0.5;
  uvec2 target = share_of(total, uint(share), 65535u, 16u);
  if (target == uvec2(0u)) target.y = 1u;
  return target;
}

#if SURVIVORS
// How far behind the largest logit, in steps; rises with the distance.
const uint far_away = 255u;
float steps;  // of a unit
uint distance_of(float l) { return uint(min(max(maximum - l, 0.0) * steps, float(far_away))); }

// A distance that reaches all that top-k, else top-p, else min-p can leave; far_away where there is none or they are surely too many for a list.
// `total`: all weights, where the cut is by top-p.
uint first_cut(uint k, float top_p, out uvec2 total) {
  total = uvec2(0u);
  bool by_weight = k == 0u && top_p < 1.0;
  uint cut = far_away;
  if (k == 0u && !by_weight) {
    if (least_weight != 0u)
      for (cut = 0u; cut < far_away && weight_of(-float(cut) / steps, 0.0, log2_e) >= least_weight;) cut += 1u;
    return cut;
  }
  uint upper = 0u, lower = 0u;  // of those far away
  clear_bins();
  for (uint start = gl_LocalInvocationIndex; start < quads; start += batch * workgroup_size) {
    vec4 l[8];
    load_quads(start, l);
    for (uint b = 0u; b < batch; ++b) {
      uint quad = start + b * workgroup_size;
      LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)
        if (4u * quad + i < vocab_size) {
          uint bin = distance_of(l[b][i]), amount = by_weight ? likelihood_of(l[b][i]) : 1u;
          if (bin < far_away) add_to_bin(bin, amount);
          upper += bin < far_away ? 0u : amount >> 12;
          lower += bin < far_away ? 0u : amount & 4095u;
        }
    }
  }
  sum_bins();
  uvec2 target = uvec2(0u, k);
  if (by_weight) {
    total = plus(workgroup_total(upper, lower), sum_of_bins());
    target = weight_wanted(total, top_p);
  }
  cut = bin_reached(target, false);
  uvec2 amount = bin_amount(cut);
  workgroup_barrier();
  if (!reaches(amount, target)) cut = far_away;
  return !by_weight && k - target.y + amount.y > most_survivors ? far_away : cut;
}

void list_survivors(uint k, float top_p, out uvec2 total) {
  uint cut;
  // Counting what is far away costs nothing, so the nearest first.
  for (steps = 16.0;; steps = 4.0) {
    cut = first_cut(k, top_p, total);
    if (cut < far_away || steps == 4.0) break;
  }
  if (cut == far_away) return;
  if (gl_LocalInvocationIndex == 0u) survivor_count = 0u;
  workgroup_barrier();
  for (uint start = gl_LocalInvocationIndex; start < quads; start += batch * workgroup_size) {
    vec4 l[8];
    load_quads(start, l);
    for (uint b = 0u; b < batch; ++b) {
      uint quad = start + b * workgroup_size, taken = 0u;
      LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)
        if (4u * quad + i < vocab_size && distance_of(l[b][i]) <= cut) taken |= 1u << i;
      if (taken == 0u) continue;
      uint slot = atomicAdd(survivor_count, uint(bitCount(taken)));
      for (uint i = 0u; i < 4u; ++i)
        if ((taken >> i & 1u) != 0u) {
          if (slot < most_survivors) Survivors(scratch).at[(token_of_pass * scratch_row + mark_row) / 2u + slot] = uvec2(key_of(l[b][i]), ~(4u * quad + i));
          slot += 1u;
        }
    }
  }
  workgroup_barrier();
  listed = survivor_count <= most_survivors;
  if (listed) items = survivor_count;
}
#endif

// Chances go by the id alone, the lowest first: 256 bins of 4,096 ids, 256 of 16, 16 of 1.
uint draw_by_chance(uvec2 end, uint random) {
  uint first_id = 0u, ids = vocab_size;
  uvec2 target;
  for (uint digit = 0u; digit < 3u; ++digit) {
    uint shift = digit == 0u ? 12u : digit == 1u ? 4u : 0u;
    clear_bins();
    if (listed) {
      each_item(item) {
        uvec2 place = load_item(item).survivor;
        if (!before(end, place) && ~place.y - first_id < ids) add_to_bin((~place.y - first_id) >> shift, chance_of(logit_of(place.x)));
      }
    } else {
      // Subgroups go through consecutive quads, which share a bin of the first digit.
      uint first_quad = first_id / 4u, end_quad = min(quads, (first_id + ids + 3u) / 4u);
      for (uint start = first_quad; start < end_quad; start += batch * workgroup_size) {
        uint first_of_own = start + subgroup_index * subgroup_size + lane;
        vec4 l[8];
        load_quads(first_of_own, l);
        for (uint b = 0u; b < batch; ++b) {
          uint quad = first_of_own + b * workgroup_size, upper = 0u, lower = 0u;
          LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
            uint id = 4u * quad + i;
            bool part = quad < end_quad && id < vocab_size && !before(end, uvec2(key_of(l[b][i]), ~id));
            uint amount = part ? chance_of(l[b][i]) : 0u;
            upper += amount >> 12;
            lower += amount & 4095u;
            if (digit == 2u && amount != 0u) add_to_bin(id - first_id, amount);
          }
          if (digit == 0u) {
            upper = uint(subgroup_sum(int(upper)));
            lower = uint(subgroup_sum(int(lower)));
          }
          if (digit == 1u || (digit == 0u && lane == 0u)) {
            uint bin = (4u * quad - first_id) >> shift;
            if (upper != 0u) atomicAdd(bins[bin], upper);
            if (lower != 0u) atomicAdd(low_bins[bin], lower);
          }
        }
      }
    }
    sum_bins();
    if (digit == 0u) target = plus(share_of(sum_of_bins(), random, 0u, 32u), 1u);
    uint bin = bin_reached(target, false);
    first_id += bin << shift;
    ids = 1u << shift;
  }
  return first_id;
}

uint draw(uvec2 first, float temperature, uint position) {
  maximum = logit_of(first.x);
  precise float by_temperature = log2_e / temperature;
  scale = by_temperature;
  uint k = state.at[own + state_top_k];
  if (k >= vocab_size) k = 0u;
  float top_p = uintBitsToFloat(state.at[own + state_top_p]), min_p = uintBitsToFloat(state.at[own + state_min_p]);
  least_weight = min_p > 0.0 ? uint(ceil(min(min_p, 1.0) * 16777216.0)) : 0u;
  uint random = philox(uvec4(position, 0u, 0u, 0u), uvec2(state.at[own + state_seed_low], state.at[own + state_seed_high])).x;
  uvec2 end = uvec2(0u), total = uvec2(0u);
#if SURVIVORS
  listed = false;
  items = quads;
  if (most_survivors != 0u) list_survivors(k, top_p, total);
#endif
  for (uint step = counts_tokens; step <= counts_weights; ++step) {  // one call, because compilers copy it to where it is called
    if (step == counts_tokens ? k == 0u : !(top_p < 1.0)) continue;
    uvec2 target = uvec2(0u, k);
    if (step == counts_weights) target = weight_wanted(listed && k == 0u ? total : total_weight(end), top_p);
    end = select(step, target, end);
  }
  return draw_by_chance(end, random);
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
    for (uint i = gl_LocalInvocationIndex; i < mark_words; i += workgroup_size) Marks(scratch).at[token_of_pass * scratch_row + i] = 0u;
    workgroup_barrier();
    for (uint i = position - window + gl_LocalInvocationIndex; i < min(position, context); i += workgroup_size) {
      uint id = state.at[own + state_tokens + max_tokens + i];
      if (id < vocab_size) atomicOr(Marks(scratch).at[token_of_pass * scratch_row + id / 32u], 1u << (id & 31u));
    }
    workgroup_barrier();
  }

  uvec2 first = uvec2(0u);
  if (first_count != 0u && !penalised) {
    for (uint i = gl_LocalInvocationIndex; i < first_count; i += workgroup_size) first = earlier(first, WordPairs(firsts).at[i]);
  } else {
    for (uint start = gl_LocalInvocationIndex; start < quads; start += batch * workgroup_size) {
      vec4 l[8];
      load_quads(start, l);
      LATER_UNROLLED for (uint b = 0u; b < batch; ++b) take_first(first, min(start + b * workgroup_size, quads - 1u), l[b]);
    }
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
