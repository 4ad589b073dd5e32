// SPDX-License-Identifier: MIT
// The computation of sample.comp with one workgroup per draw: one subgroup reads the logits once for each digit of a
// sortable key, which is less work in total than sorting, and needs no barriers, which are slow on CPU drivers.
// Histograms are of integers, so that neither the number of invocations nor their order affects the token.
// variant: sample_cpu -DWIDE_LOADS=0
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
layout(constant_id = 9) const uint slice = 4096;
layout(constant_id = 10) const uint form = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "first_token.glsl"

layout(push_constant, scalar) uniform Push { Words logits, state, ring, scratch, drawn, firsts, counters; };
#include "slots.glsl"

// Marks that one invocation writes and others read.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Marks { uint at[]; };

const uint quads = (vocab_size + 3u) / 4u, mark_words = (vocab_size + 31u) / 32u;
// Distance between the rows of scratch of two draws (kernels::sample_scratch_bytes).
const uint scratch_row = (vocab_size + slice - 1u) / slice * (slice + slice / 2u + 2u + 2u * (most_octaves + 1u));
// Rows of logits begin at a multiple of four.
const bool whole_quads = vocab_size % 4u == 0u;
const uint key_of_infinity = 0xff800000u, key_of_minus_infinity = 0x007fffffu;
shared uint bins[256], low_bins[256];
shared uvec2 bin_groups[16];  // of 16 bins each
shared uvec2 from_subgroup[workgroup_size / 4u];

// Quads that are loaded together: a GPU would wait for each otherwise.
const uint batch = subgroup_width >= 32u ? 8u : 1u;

bool penalised;
float penalty;
uint token_of_pass;  // the token whose successor is drawn
uint own;            // first word of its slot; 0 if there are no slots
const bool several = draws > 1u || batched;

// Logits 4 * quad .. 4 * quad + 3; minus infinity past the vocabulary.
vec4 stored_logits4(uint quad) {
  vec4 l = vec4(uintBitsToFloat(0xff800000u));
  if (whole_quads || (!several && 4u * quad + 4u <= vocab_size)) {
    l = FloatQuads(logits).at[token_of_pass * quads + quad];
  } else {
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) if (4u * quad + i < vocab_size) l[i] =
        Floats(logits).at[token_of_pass * vocab_size + 4u * quad + i];
  }
  return l;
}
vec4 penalised4(uint quad, vec4 l) {
  uint seen = Marks(scratch).at[token_of_pass * scratch_row + quad / 8u] >> (4u * (quad & 7u));
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) if ((seen >> i & 1u) != 0u) {
    precise float p = l[i] > 0.0 ? l[i] / penalty : l[i] * penalty;
    l[i] = p;
  }
  return l;
}
// Logits with the penalty.
vec4 logits4(uint quad) {
  vec4 l = stored_logits4(quad);
  return penalised ? penalised4(quad, l) : l;
}

// Loads quads start, start + workgroup_size, ...; past the end the last one.
void load_quads(uint start, out vec4 l[8]) {
  LATER_UNROLLED for (uint b = 0u; b < batch; ++b) l[b] = stored_logits4(min(start + b * workgroup_size, quads - 1u));
  if (penalised)
    LATER_UNROLLED for (uint b = 0u; b < batch; ++b) l[b] =
        penalised4(min(start + b * workgroup_size, quads - 1u), l[b]);
}

// 64-bit numbers as (high, low).
uvec2 plus(uvec2 a, uvec2 b) {
  uint carry, low = uaddCarry(a.y, b.y, carry);
  return uvec2(a.x + b.x + carry, low);
}
uvec2 minus(uvec2 a, uvec2 b) { return uvec2(a.x - b.x - uint(a.y < b.y), a.y - b.y); }
bool reaches(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y >= b.y); }

// A selection counts tokens, or weights at temperature 1.
const uint counts_tokens = 0u, counts_weights = 1u;
float scale, octave, chance_octave;  // octaves of the largest logit, at temperature 1 and at the requested one
uvec2 least_weight;
#define minus_infinity uintBitsToFloat(0xff800000u)

uvec2 likelihood_of(float l) { return l == minus_infinity ? uvec2(0u) : weight_of(l, octave, log2_e); }
uvec2 amount_of(uint what, float l) { return what == counts_tokens ? uvec2(0u, 1u) : likelihood_of(l); }
// At the requested temperature; 0 for tokens that min-p removes.
uvec2 chance_of(float l) {
  return l == minus_infinity || !reaches(likelihood_of(l), least_weight) ? uvec2(0u)
                                                                         : weight_of(l, chance_octave, scale);
}

#define each_quad(quad) for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size)
float logit_of(uint key) { return uintBitsToFloat(key ^ ((key & 0x80000000u) != 0u ? 0x80000000u : 0xffffffffu)); }

void clear_bins() {
  for (uint b = gl_LocalInvocationIndex; b < 256u; b += workgroup_size) bins[b] = low_bins[b] = 0u;
  workgroup_barrier();
}
void add_to_bin(uint bin, uvec2 amount) {
  if (amount == uvec2(0u)) return;
  uint low = atomicAdd(low_bins[bin], amount.y), high = amount.x + uint(low + amount.y < low);
  if (high != 0u) atomicAdd(bins[bin], high);
}
uvec2 bin_amount(uint bin) { return uvec2(bins[bin], low_bins[bin]); }
// Called after the last addition.
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
// The bin, counted from the last or the first, in which the sum reaches target; target becomes the rest within it. If
// the sum never reaches it: the end.
uint bin_reached(inout uvec2 target, bool from_last) {
  uint flip = from_last ? 15u : 0u, g = 0u, i = 0u;
  for (; g < 15u && !reaches(bin_groups[g ^ flip], target); ++g) target = minus(target, bin_groups[g ^ flip]);
  uint first = 16u * (g ^ flip);
  for (; i < 15u && !reaches(bin_amount(first + (i ^ flip)), target); ++i)
    target = minus(target, bin_amount(first + (i ^ flip)));
  workgroup_barrier();
  return first + (i ^ flip);
}

// The last (key, ~id) of the shortest start of the order whose amounts reach `target` (over 0). Only tokens up to `end`
// take part. Seven digits of 8 bits: four of the key, three of ~id.
uvec2 select(uint what, uvec2 target, uvec2 end) {
  uvec2 prefix = uvec2(0u, 0xff000000u);
  for (uint digit = 0u; digit < 7u; ++digit) {
    uint shift = digit < 4u ? 24u - 8u * digit : 16u - 8u * (digit - 4u);
    clear_bins();
    each_quad(quad) {
      vec4 l = logits4(quad);
      for (uint i = 0u; i < 4u; ++i) {
        uvec2 rank = uvec2(key_of(l[i]), ~(4u * quad + i));
        bool part = !before(end, rank) && 4u * quad + i < vocab_size;
        // The digits above this one must be those found so far.
        if (digit >= 1u) part = part && (rank.x ^ prefix.x) >> (digit < 4u ? shift + 8u : 0u) == 0u;
        if (digit >= 5u) part = part && (rank.y ^ prefix.y) >> (shift + 8u) == 0u;
        if (part) add_to_bin((digit < 4u ? rank.x : rank.y) >> shift & 255u, amount_of(what, logit_of(rank.x)));
      }
    }
    sum_bins();
    uint bin = bin_reached(target, true);
    bool all = bin_amount(bin) == target;
    workgroup_barrier();
    if (digit < 4u) prefix.x |= bin << shift;
    else prefix.y |= bin << shift;
    if (all) {  // all of this bin are needed
      if (digit < 4u) prefix.y = 0u;
      break;
    }
  }
  return prefix;
}

uvec2 subgroup_total(uvec2 sum) {
  LATER_UNROLLED for (uint i = 0u; i < 6u; ++i) if ((32u >> i) < subgroup_size) sum =
      plus(sum, subgroupShuffleXor(sum, 32u >> i));
  return sum;
}
uvec2 total_weight(uvec2 end) {
  uvec2 sum = uvec2(0u);
  each_quad(quad) {
    vec4 l = logits4(quad);
    for (uint i = 0u; i < 4u; ++i)
      if (!before(end, uvec2(key_of(l[i]), ~(4u * quad + i))) && 4u * quad + i < vocab_size)
        sum = plus(sum, likelihood_of(l[i]));
  }
  sum = subgroup_total(sum);
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) from_subgroup[gl_SubgroupID] = sum;
    barrier();
    sum = uvec2(0u);
    for (uint g = 0u; g < gl_NumSubgroups; ++g) sum = plus(sum, from_subgroup[g]);
    barrier();
  }
  return sum;
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

// Chances depend on the id only, the lowest first: 256 bins of 4,096 ids, 256 of 16, 16 of 1.
uint draw_by_chance(uvec2 end, uint random) {
  uint first_id = 0u, ids = vocab_size;
  uvec2 target;
  for (uint digit = 0u; digit < 3u; ++digit) {
    uint shift = digit == 0u ? 12u : digit == 1u ? 4u : 0u;
    clear_bins();
    // Subgroups read consecutive quads, which share a bin of the first digit.
    uint first_quad = first_id / 4u, end_quad = min(quads, (first_id + ids + 3u) / 4u);
    for (uint start = first_quad; start < end_quad; start += batch * workgroup_size) {
      uint first_of_own = start + subgroup_index * subgroup_size + lane;
      vec4 l[8];
      load_quads(first_of_own, l);
      for (uint b = 0u; b < batch; ++b) {
        uint quad = first_of_own + b * workgroup_size;
        uvec2 sum = uvec2(0u);
        LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
          uint id = 4u * quad + i;
          bool part = quad < end_quad && id < vocab_size && !before(end, uvec2(key_of(l[b][i]), ~id));
          uvec2 amount = part ? chance_of(l[b][i]) : uvec2(0u);
          sum = plus(sum, amount);
          if (digit == 2u) add_to_bin(id - first_id, amount);
        }
        if (digit == 0u) sum = subgroup_total(sum);
        if (digit == 1u || (digit == 0u && lane == 0u)) add_to_bin((4u * quad - first_id) >> shift, sum);
      }
    }
    sum_bins();
    if (digit == 0u) target = plus(share_of(sum_of_bins(), random, 0u, 32u), uvec2(0u, 1u));
    uint bin = bin_reached(target, false);
    first_id += bin << shift;
    ids = 1u << shift;
  }
  return first_id;
}

uint draw(uvec2 first, float temperature, uint position) {
  float maximum = logit_of(first.x);
  precise float by_temperature = log2_e / temperature;
  scale = by_temperature;
  octave = ceil(exponent_of(maximum, log2_e));
  chance_octave = ceil(exponent_of(maximum, scale));
  uint k = state.at[own + state_top_k];
  if (k >= vocab_size) k = 0u;
  float top_p = uintBitsToFloat(state.at[own + state_top_p]), min_p = uintBitsToFloat(state.at[own + state_min_p]);
  least_weight = uvec2(0u);
  if (min_p > 0.0) {
    uvec2 largest = likelihood_of(maximum);
    umulExtended(largest.x << 8 | largest.y >> 24, uint(ceil(min(min_p, 1.0) * 16777216.0)), least_weight.x,
                 least_weight.y);
  }
  uint random =
      philox(uvec4(position, 0u, 0u, 0u), uvec2(state.at[own + state_seed_low], state.at[own + state_seed_high])).x;
  uvec2 end = uvec2(0u);
  for (uint step = counts_tokens; step <= counts_weights;
       ++step) {  // one call, because compilers copy the function to each call
    if (step == counts_tokens ? k == 0u : !(top_p < 1.0)) continue;
    uvec2 target = uvec2(0u, k);
    if (step == counts_weights) target = weight_wanted(total_weight(end), top_p);
    end = select(step, target, end);
  }
  return draw_by_chance(end, random);
}

// The first token in the order so far, if quads come in rising order.
void take_first(inout uvec2 first, uint quad, vec4 l) {
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
    uint key = key_of(l[i]);
    bool greater = key > first.x && (whole_quads || 4u * quad + i < vocab_size);
    first = mix(first, uvec2(key, ~(4u * quad + i)), bvec2(greater));
  }
}

void main() {
  find_lane();
  if (gl_WorkGroupID.x != 0u) return;  // in plans for GPUs there are more workgroups
  token_of_pass = several ? gl_WorkGroupID.y : 0u;
  if (batched && token_of_pass >= state.at[state_count]) return;
  own = batched ? slot_at(token_of_pass) : 0u;
  uint count = state.at[own + state_count];
  if (batched ? count == 0u : token_of_pass >= count) return;
  uint position = state.at[own + state_position] + (draws > 1u ? token_of_pass + 1u : count),
       generated = state.at[own + state_generated];
  float temperature = uintBitsToFloat(state.at[own + state_temperature]);
  penalty = uintBitsToFloat(state.at[own + state_repeat_penalty]);
  uint window = min(state.at[own + state_repeat_last_n], position);
  penalised = penalty != 1.0 && window != 0u;
  if (penalised) {
    for (uint i = gl_LocalInvocationIndex; i < mark_words; i += workgroup_size)
      Marks(scratch).at[token_of_pass * scratch_row + i] = 0u;
    workgroup_barrier();
    for (uint i = position - window + gl_LocalInvocationIndex; i < min(position, context); i += workgroup_size) {
      uint id = state.at[own + state_tokens + max_tokens + i];
      if (id < vocab_size) atomicOr(Marks(scratch).at[token_of_pass * scratch_row + id / 32u], 1u << (id & 31u));
    }
    workgroup_barrier();
  }

  uvec2 first = uvec2(0u);
  if (first_count != 0u && !penalised) {
    for (uint i = gl_LocalInvocationIndex; i < first_count; i += workgroup_size)
      first = earlier(first, WordPairs(firsts).at[i]);
  } else {
    for (uint start = gl_LocalInvocationIndex; start < quads; start += batch * workgroup_size) {
      vec4 l[8];
      load_quads(start, l);
      LATER_UNROLLED for (uint b = 0u; b < batch; ++b)
          take_first(first, min(start + b * workgroup_size, quads - 1u), l[b]);
    }
  }
  first = first_of(first);
  uint token = ~first.y;
  if (first.x >= key_of_infinity || first.x <= key_of_minus_infinity) token = vocab_size;
  else if (form != 1u && temperature >= 1e-6) token = draw(first, temperature, position - 1u);

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
