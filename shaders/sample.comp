// SPDX-License-Identifier: MIT
// Picks the next token (docs/kernels.md, "Sample"). Each workgroup (x) sorts the keys of slices of the vocabulary and leaves the sums of their weights;
// the last of a draw (y) to come picks by these lists alone: cuts come from pivots that regular samples of all lists give, so that the number of steps does
// not depend on the logits. Weights are integers: neither the number of invocations nor their order shows in the token.
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
layout(constant_id = 9) const uint slice = 256;
layout(constant_id = 10) const uint greedy = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "first_token.glsl"

// Of shared memory alone: a fence of buffers is one of the device, and takes longer than the rest of a step.
#define shared_barrier() \
  if (workgroup_size > subgroup_size) barrier(); \
  else subgroupMemoryBarrierShared();

// What one workgroup writes and another reads.
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Lists { coherent uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Sums { coherent uvec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Counters { coherent uint at[]; };

layout(push_constant, scalar) uniform Push { Words logits, state, ring; Lists scratch; Words drawn, firsts; Counters counters; };
#include "slots.glsl"

const uint lists = (vocab_size + slice - 1u) / slice, quads = (vocab_size + 3u) / 4u;
// Rows of logits begin at whole quads.
const bool whole_quads = vocab_size % 4u == 0u;
const uint key_of_infinity = 0xff800000u, key_of_minus_infinity = 0x007fffffu;

// A row of scratch (kernels::sample_scratch_bytes): sorted keys of all lists; sums up to each eighth weight, then chance, of all lists; for each list its
// first (key, ~id), and how many keys are in so many octaves from its own first on, for both.
const uint blocks = slice / 8u, head_words = 2u + 2u * (most_octaves + 1u);
const uint sums_row = lists * slice, heads_row = sums_row + 4u * lists * blocks, row_words = heads_row + head_words * lists;

// Samples of all lists, and how many pivots they give.
const uint samples = 1024u, pivots = 8u;
// Words that invocations share: a list, marks or sums behind it; or samples (keys, places), then for each list and pivot how many samples, how many tokens
// are not behind it, or for each list how many samples, for each sample its amount.
const uint positions_at = 2u * samples, amounts_at = positions_at + lists * pivots, last_amounts_at = positions_at + lists;
const uint of_list = slice + slice / 4u, of_pivots = amounts_at + lists * pivots, of_last = last_amounts_at + 2u * samples, of_samples = of_pivots > of_last ? of_pivots : of_last;
shared uint words[of_list > of_samples ? of_list : of_samples];
shared uint low[lists], high[lists], first_sample[lists], limit_of[lists], shift_of[lists];
shared float octave_of_list[lists];
shared uvec2 from_subgroup[workgroup_size / 4u];
shared uint found, came_last, left[2], pivot_high[pivots], pivot_low[pivots];
shared uvec2 found_rest;

bool penalised;
uint nought;  // 0, unknown to drivers, which leave loops with it in their bounds as they are: unrolled, they take long to compile
float penalty;
uint position, window;
uint token_of_pass;  // whose successor is drawn
uint own;            // first word of its slot, 0 where there are none
uint me;             // in the order of subgroups and lanes
const bool several = draws > 1u || batched;

// 64-bit numbers as (high, low).
uvec2 plus(uvec2 a, uvec2 b) {
  uint carry, low_word = uaddCarry(a.y, b.y, carry);
  return uvec2(a.x + b.x + carry, low_word);
}
uvec2 minus(uvec2 a, uvec2 b) { return uvec2(a.x - b.x - uint(a.y < b.y), a.y - b.y); }
bool reaches(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y >= b.y); }
uvec2 shifted_right(uvec2 a, uint by) { return by == 0u ? a : uvec2(a.x >> by, a.y >> by | a.x << (32u - by)); }

// floor((total * share + more) / 2^bits), bits 16 or 32.
uvec2 share_of(uvec2 total, uint share, uint more, uint bits) {
  uint upper, lower, upper2, lower2, carry;
  umulExtended(total.y, share, upper, lower);
  umulExtended(total.x, share, upper2, lower2);
  lower = uaddCarry(lower, more, carry);
  lower2 = uaddCarry(lower2, carry, carry);
  upper2 += carry;
  upper = uaddCarry(upper, lower2, carry);
  upper2 += carry;
  if (bits == 32u) return uvec2(upper2, upper);
  return uvec2(upper2 << 16 | upper >> 16, upper << 16 | lower >> 16);
}

// Sum of what the invocations before this one have, and of all.
uvec2 sum_before(uvec2 mine, out uvec2 total) {
  uvec2 sum = mine;
  for (uint d = 1u; d < subgroup_size; d <<= 1) {
    uvec2 other = subgroupShuffle(sum, lane >= d ? lane - d : lane);
    if (lane >= d) sum = plus(sum, other);
  }
  uvec2 before_mine = minus(sum, mine);
  total = subgroupShuffle(sum, subgroup_size - 1u);
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) from_subgroup[subgroup_index] = total;
    barrier();
    total = uvec2(0u);
    for (uint g = 0u; g < subgroups + nought; ++g) {
      if (g == subgroup_index) before_mine = plus(before_mine, total);
      total = plus(total, from_subgroup[g]);
    }
    barrier();
  }
  return before_mine;
}

// Weights at temperature 1, or chances at the one asked for; `octave` that of the largest logit.
const uint weights = 0u, chances = 1u;
float temperature_scale, scale, octave;
float logit_of(uint key) { return uintBitsToFloat(key ^ ((key & 0x80000000u) != 0u ? 0x80000000u : 0xffffffffu)); }
float octave_of_key(uint key, float s) { return ceil(exponent_of(logit_of(key), s)); }
uvec2 weight_of_key(uint key, float s, float o) { return key <= key_of_minus_infinity ? uvec2(0u) : weight_of(logit_of(key), o, s); }

// Logits 4 * quad .. 4 * quad + 3 as keys, after the penalty; 0 past the vocabulary.
uvec4 stored_keys4(uint quad) {
  vec4 l = vec4(0.0);
  bool whole = whole_quads || (!several && 4u * quad + 4u <= vocab_size);
  if (whole && quad < quads) {
    l = FloatQuads(logits).at[token_of_pass * quads + quad];
  } else {
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)
      if (4u * quad + i < vocab_size) l[i] = Floats(logits).at[token_of_pass * vocab_size + 4u * quad + i];
  }
  if (penalised) {
    uint seen = words[slice + (4u * quad % slice) / 32u] >> (4u * quad & 31u);
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i)
      if ((seen >> i & 1u) != 0u) {
        precise float p = l[i] > 0.0 ? l[i] / penalty : l[i] * penalty;
        l[i] = p;
      }
  }
  uvec4 keys;
  LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) keys[i] = 4u * quad + i < vocab_size ? key_of(l[i]) : 0u;
  return keys;
}

// A slice's keys in the order of ids. Returns the first of the invocation's own.
uvec2 load_list(uint list) {
  if (penalised) {
    for (uint i = me; i < slice / 32u; i += workgroup_size) words[slice + i] = 0u;
    shared_barrier();
    for (uint i = position - window + me; i < min(position, context); i += workgroup_size) {
      uint id = state.at[own + state_tokens + max_tokens + i];
      if (id < vocab_size && id / slice == list) atomicOr(words[slice + id % slice / 32u], 1u << (id & 31u));
    }
    shared_barrier();
  }
  uvec2 first = uvec2(0u);
  for (uint quad = me; quad < slice / 4u; quad += workgroup_size) {
    uvec4 keys = stored_keys4(list * (slice / 4u) + quad);
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
      words[4u * quad + i] = keys[i];
      first = earlier(first, uvec2(keys[i], ~(list * slice + 4u * quad + i)));
    }
  }
  return first;
}

// The greater first, where it falls.
void put_in_order(bool falls, inout uint x, inout uint y) {
  uint least = min(x, y), greatest = max(x, y);
  x = falls ? greatest : least;
  y = falls ? least : greatest;
}
// Bitonic, two steps at a time: the largest first.
void sort_list() {
  for (uint run = 2u; run <= slice + nought; run <<= 1)
    for (uint stride = run >> 1; stride != 0u; stride >>= 2) {
      shared_barrier();
      uint step = max(stride >> 1, 1u);
      for (uint i = me; i < slice / 4u; i += workgroup_size) {
        uint a = 4u * i - 3u * (i & (step - 1u)), x[4];
        bool falls = (a & run) == 0u;
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) x[k] = words[a + k * step];
        if (stride > 1u) {
          put_in_order(falls, x[0], x[2]);
          put_in_order(falls, x[1], x[3]);
        }
        put_in_order(falls, x[0], x[1]);
        put_in_order(run > 2u ? falls : !falls, x[2], x[3]);
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) words[a + k * step] = x[k];
      }
    }
  shared_barrier();
}

// Sums of a sorted list's weights up to each block of eight, in units of its own first.
void leave_sums(uint which, uint list, float s) {
  float o = octave_of_key(words[0], s);
  for (uint block = me; block < blocks; block += workgroup_size) {
    uvec2 sum = uvec2(0u);
    for (uint i = 0u; i < 8u + nought; ++i) sum = plus(sum, weight_of_key(words[8u * block + (i + block / 4u & 7u)], s, o));  // without bank conflicts
    words[slice + block] = sum.x;
    words[slice + blocks + block] = sum.y;
  }
  shared_barrier();
  const uint per = (blocks + workgroup_size - 1u) / workgroup_size;
  uvec2 sum = uvec2(0u), total;
  for (uint block = me * per; block < min(me * per + per, blocks); ++block) sum = plus(sum, uvec2(words[slice + block], words[slice + blocks + block]));
  sum = sum_before(sum, total);
  for (uint block = me * per; block < min(me * per + per, blocks); ++block) {
    sum = plus(sum, uvec2(words[slice + block], words[slice + blocks + block]));
    Sums(scratch).at[(token_of_pass * row_words + sums_row) / 2u + (which * lists + list) * blocks + block] = sum;
  }
  for (uint below = me; below <= most_octaves; below += workgroup_size) {
    uint begin = 0u, end = slice;
    while (begin < end) {
      uint middle = (begin + end) / 2u, key = words[middle];
      if (key > key_of_minus_infinity && o - octave_of_key(key, s) <= float(below)) begin = middle + 1u;
      else end = middle;
    }
    scratch.at[token_of_pass * row_words + heads_row + head_words * list + 2u + which * (most_octaves + 1u) + below] = begin;
  }
  shared_barrier();
}

// Whether this is the last workgroup of its draw to come here, which can then read what the others wrote. One invocation fences for all.
bool comes_last() {
  groupMemoryBarrier();
  shared_barrier();
  if (gl_NumWorkGroups.x == 1u) return true;
  if (gl_LocalInvocationIndex == 0u) {
    memoryBarrierBuffer();
    came_last = uint(atomicAdd(counters.at[token_of_pass], 1u) + 1u == gl_NumWorkGroups.x);
    if (came_last != 0u) atomicExchange(counters.at[token_of_pass], 0u);
    memoryBarrierBuffer();
  }
  shared_barrier();
  groupMemoryBarrier();
  return came_last != 0u;
}

uint key_at(uint list, uint place) { return scratch.at[token_of_pass * row_words + list * slice + place]; }

// What sums of weights, or chances, take: of each list how far it counts, and its unit.
void begin_sums(uint which, uint first_key) {
  scale = which == weights ? log2_e : temperature_scale;
  octave = octave_of_key(first_key, scale);
  shared_barrier();
  for (uint s = me; s < lists; s += workgroup_size) {
    uint head = token_of_pass * row_words + heads_row + head_words * s, key = scratch.at[head];
    float o = octave_of_key(key, scale);
    uint shift = key <= key_of_minus_infinity ? most_octaves + 1u : uint(min(octave - o, float(most_octaves + 1u)));
    octave_of_list[s] = o;
    shift_of[s] = shift;
    limit_of[s] = shift > most_octaves ? 0u : scratch.at[head + 2u + which * (most_octaves + 1u) + most_octaves - shift];
  }
  shared_barrier();
}
// Of the first `count` of a list.
uvec2 sum_to(uint which, uint s, uint count) {
  count = min(count, limit_of[s]);
  uint block = count / 8u, keys[7];
  uvec2 sum = uvec2(0u);
  if (block != 0u) sum = Sums(scratch).at[(token_of_pass * row_words + sums_row) / 2u + (which * lists + s) * blocks + block - 1u];
  if ((count & 7u) != 0u) {
    LATER_UNROLLED for (uint i = 0u; i < 7u; ++i) keys[i] = key_at(s, 8u * block + i);
    for (uint rest = count & 7u; rest != 0u; --rest) {
      sum = plus(sum, weight_of_key(keys[0], scale, octave_of_list[s]));
      LATER_UNROLLED for (uint i = 0u; i < 6u; ++i) keys[i] = keys[i + 1u];
    }
  }
  return shifted_right(sum, shift_of[s] & 31u);
}

void put_in_order(bool falls, inout uvec2 x, inout uvec2 y) {
  bool swaps = falls == (x.x < y.x || (x.x == y.x && x.y > y.y));
  uvec2 z = x;
  x = swaps ? y : x;
  y = swaps ? z : y;
}
// Sorts (key, place) in words, a power of two of at least 4: the order of tokens.
void sort_samples(uint size) {
  for (uint run = 2u; run <= size; run <<= 1)
    for (uint stride = run >> 1; stride != 0u; stride >>= 2) {
      shared_barrier();
      uint step = max(stride >> 1, 1u);
      for (uint i = me; i < size / 4u; i += workgroup_size) {
        uint a = 4u * i - 3u * (i & (step - 1u));
        bool falls = (a & run) == 0u;
        uvec2 x[4];
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) x[k] = uvec2(words[a + k * step], words[samples + a + k * step]);
        if (stride > 1u) {
          put_in_order(falls, x[0], x[2]);
          put_in_order(falls, x[1], x[3]);
        }
        put_in_order(falls, x[0], x[1]);
        put_in_order(run > 2u ? falls : !falls, x[2], x[3]);
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) words[a + k * step] = x[k].x, words[samples + a + k * step] = x[k].y;
      }
    }
  shared_barrier();
}

// Shortens the lists from their ends `high` to the shortest start of the order whose tokens, or weights, reach target, which is over 0. In each round what
// is left between low and high shrinks to a quarter or less (docs/kernels.md).
void select(bool tokens, uvec2 target) {
  const uint per = (lists + workgroup_size - 1u) / workgroup_size;
  uint begin_list = min(me * per, lists), end_list = min(me * per + per, lists);
  if (me == 0u) left[0] = 0u;
  shared_barrier();
  for (uint s = begin_list; s < end_list; ++s) {
    low[s] = 0u;
    atomicAdd(left[0], high[s]);
  }
  shared_barrier();
  uvec2 base = uvec2(0u);  // of what is before low
  for (uint round = 0u; round < 16u; ++round) {
    uint taken = 0u, gap = (left[round & 1u] + samples - 1u) / samples;
    uvec2 total;
    if (gap == 0u) break;
    for (uint s = begin_list; s < end_list; ++s) taken += (high[s] - low[s]) / gap;
    uint slot = sum_before(uvec2(0u, taken), total).y, count = total.y;
    for (uint s = begin_list; s < end_list; ++s) {
      first_sample[s] = slot;
      slot += (high[s] - low[s]) / gap;
    }
    uint size = 2u << findMSB(max(count, 4u) - 1u);
    shared_barrier();
    for (uint i = me; i < size; i += workgroup_size) {
      uint s = 0u, end = lists;  // the last list whose samples begin here or before
      while (end - s > 1u) {
        uint middle = (s + end) / 2u;
        if (first_sample[middle] <= i) s = middle;
        else end = middle;
      }
      uint place = low[s] + (i - first_sample[s] + 1u) * gap - 1u;
      words[i] = i < count ? key_at(s, place) : 0u;
      words[samples + i] = i < count ? s * slice + place : 0xffffffffu;
    }
    sort_samples(size);

    if (gap == 1u) {  // these are all that is left
      if (me == 0u) found = count - 1u;
      for (uint s = begin_list; s < end_list; ++s) words[positions_at + s] = 0u;
      for (uint i = me; i < count; i += workgroup_size) {
        uvec2 amount = tokens ? uvec2(0u, 1u) : weight_of_key(words[i], scale, octave);
        words[last_amounts_at + i] = amount.x;
        words[last_amounts_at + samples + i] = amount.y;
      }
      shared_barrier();
      uvec2 mine = uvec2(0u);
      uint share = (count + workgroup_size - 1u) / workgroup_size, begin = min(me * share, count), end = min(begin + share, count);
      for (uint i = begin; i < end; ++i) mine = plus(mine, uvec2(words[last_amounts_at + i], words[last_amounts_at + samples + i]));
      uvec2 sum = plus(base, sum_before(mine, total));
      for (uint i = begin; i < end && !reaches(sum, target); ++i) {
        sum = plus(sum, uvec2(words[last_amounts_at + i], words[last_amounts_at + samples + i]));
        if (reaches(sum, target)) found = i;
      }
      shared_barrier();
      for (uint i = me; i <= found; i += workgroup_size) atomicAdd(words[positions_at + words[samples + i] / slice], 1u);
      shared_barrier();
      for (uint s = begin_list; s < end_list; ++s) high[s] = low[s] + words[positions_at + s];
      break;
    }

    // How many samples of each list are not behind each pivot.
    for (uint i = me; i < lists * pivots; i += workgroup_size) words[positions_at + i] = 0u;
    for (uint i = me; i < pivots; i += workgroup_size) pivot_high[i] = pivot_low[i] = 0u;
    if (me == 0u) left[~round & 1u] = 0u;
    shared_barrier();
    for (uint i = me; i < count; i += workgroup_size) {
      uint pivot = 0u;
      while (pivot < pivots && (pivot + 1u) * count / (pivots + 1u) < i) pivot += 1u;
      if (pivot < pivots) atomicAdd(words[positions_at + words[samples + i] / slice * pivots + pivot], 1u);
    }
    shared_barrier();
    for (uint s = begin_list; s < end_list; ++s)
      for (uint i = 1u; i < pivots; ++i) words[positions_at + s * pivots + i] += words[positions_at + s * pivots + i - 1u];
    shared_barrier();
    for (uint start = me; start < lists * pivots; start += 2u * workgroup_size) {  // two at a time, whose loads do not wait for each other
      uint list[2], key[2], place[2], begin[2], end[2];
      LATER_UNROLLED for (uint b = 0u; b < 2u; ++b) {
        uint i = min(start + b * workgroup_size, lists * pivots - 1u), at = (i % pivots + 1u) * count / (pivots + 1u);
        list[b] = i / pivots, key[b] = words[at], place[b] = words[samples + at];
        begin[b] = low[list[b]] + words[positions_at + i] * gap, end[b] = min(high[list[b]], begin[b] + gap - 1u);
      }
      while (begin[0] < end[0] || begin[1] < end[1]) {
        uint other[2];
        LATER_UNROLLED for (uint b = 0u; b < 2u; ++b) other[b] = key_at(list[b], min((begin[b] + end[b]) / 2u, slice - 1u));
        LATER_UNROLLED for (uint b = 0u; b < 2u; ++b) {
          uint middle = (begin[b] + end[b]) / 2u;
          bool not_behind = other[b] > key[b] || (other[b] == key[b] && list[b] * slice + middle <= place[b]), open = begin[b] < end[b];
          begin[b] = open && not_behind ? middle + 1u : begin[b];
          end[b] = open && !not_behind ? middle : end[b];
        }
      }
      LATER_UNROLLED for (uint b = 0u; b < 2u; ++b)
        if (start + b * workgroup_size < lists * pivots) words[amounts_at + start + b * workgroup_size] = begin[b];
    }
    for (uint i = me; i < lists * pivots; i += workgroup_size) {
      uint count_here = words[amounts_at + i], at = i % pivots;
      uvec2 amount = tokens ? uvec2(0u, count_here) : sum_to(weights, i / pivots, count_here);
      uint low_word = atomicAdd(pivot_low[at], amount.y);
      atomicAdd(pivot_high[at], amount.x + uint(low_word + amount.y < low_word));
    }
    shared_barrier();
    uint pivot = 0u;
    for (; pivot < pivots; ++pivot) {
      uvec2 sum = uvec2(pivot_high[pivot], pivot_low[pivot]);
      if (reaches(sum, target)) break;
      base = sum;
    }
    for (uint s = begin_list; s < end_list; ++s) {
      if (pivot != 0u) low[s] = words[amounts_at + s * pivots + pivot - 1u];
      if (pivot < pivots) high[s] = words[amounts_at + s * pivots + pivot];
      atomicAdd(left[~round & 1u], high[s] - low[s]);
    }
    shared_barrier();
  }
  shared_barrier();
}

// Keeps what is at least as likely as so many 2^24ths of the first.
void cut_unlikely(uint share, uint first_key) {
  uvec2 least = weight_of_key(first_key, scale, octave);
  umulExtended(least.x << 8 | least.y >> 24, share, least.x, least.y);
  for (uint s = me; s < lists; s += workgroup_size) {
    uint begin = 0u, end = min(high[s], limit_of[s]);
    while (begin < end) {
      uint middle = (begin + end) / 2u;
      if (reaches(weight_of_key(key_at(s, middle), scale, octave), least)) begin = middle + 1u;
      else end = middle;
    }
    high[s] = begin;
  }
  shared_barrier();
}

// Of chances in the order of ids the list in which they reach the target, which becomes what is wanted of it.
uint list_by_chance(uvec2 sum, inout uvec2 target) {
  const uint per = (lists + workgroup_size - 1u) / workgroup_size;
  for (uint s = me * per; s < min(me * per + per, lists) && !reaches(sum, target); ++s) {
    uvec2 next = plus(sum, uvec2(words[s], words[lists + s]));
    if (reaches(next, target)) {
      found = s;
      found_rest = minus(target, sum);
    }
    sum = next;
  }
  shared_barrier();
  target = found_rest;
  return min(found, lists - 1u);
}

// The token of a list that load_list has read.
uint token_by_chance(uint list, uvec2 target) {
  const uint share = (slice + workgroup_size - 1u) / workgroup_size;
  uint count = min(high[list], limit_of[list]), least_key = key_at(list, max(count, 1u) - 1u);
  shared_barrier();
  // Of those equal to the last that is kept, the first ones.
  uvec2 ranks = uvec2(0u), total, sum = uvec2(0u);  // greater, equal
  uint begin = min(me * share, slice), end = min(begin + share, slice);
  for (uint i = begin; i < end; ++i) ranks += uvec2(words[i] > least_key, words[i] == least_key);
  uvec2 before_here = sum_before(ranks, total);
  uint equal_kept = count - total.x;
  for (uint step = 0u; step < 2u + nought; ++step) {
    uvec2 here = uvec2(0u);
    if (step == 1u) here = sum_before(sum, total);
    uint rank = before_here.y;
    for (uint i = begin; i < end; ++i) {
      bool kept = words[i] > least_key || (words[i] == least_key && rank < equal_kept);
      rank += uint(words[i] == least_key);
      if (!kept) continue;
      uvec2 next = plus(here, weight_of_key(words[i], scale, octave));
      if (step == 1u && reaches(next, target) && !reaches(here, target)) found = list * slice + i;
      here = next;
    }
    sum = here;
  }
  shared_barrier();
  return found;
}

// The list of the token that is drawn, and what is wanted of its chances.
uint draw(uvec2 first, out uvec2 target) {
  uint k = state.at[own + state_top_k];
  if (k >= vocab_size) k = 0u;
  precise float top_p = uintBitsToFloat(state.at[own + state_top_p]), min_p = uintBitsToFloat(state.at[own + state_min_p]), share = max(top_p, 0.0) * 65536.0 + 0.5;
  uint random = philox(uvec4(position - 1u, 0u, 0u, 0u), uvec2(state.at[own + state_seed_low], state.at[own + state_seed_high])).x;
  for (uint s = me; s < lists; s += workgroup_size) high[s] = min(min(slice, vocab_size - s * slice), k == 0u ? slice : k);
  target = uvec2(0u, k);
  uvec2 before_mine = uvec2(0u);
  const uint per = (lists + workgroup_size - 1u) / workgroup_size;
  for (uint step = 0u; step < 3u + nought; ++step) {  // top-k, top-p, draw: in one loop, because compilers copy functions to where they are called
    bool tokens = step == 0u, draws_it = step == 2u;
    if (tokens ? k == 0u : !draws_it && !(top_p < 1.0)) continue;
    if (draws_it && min_p > 0.0) {
      if (!(top_p < 1.0)) begin_sums(weights, first.x);
      cut_unlikely(uint(ceil(min(min_p, 1.0) * 16777216.0)), first.x);
    }
    if (!tokens) {
      begin_sums(draws_it ? chances : weights, first.x);
      uvec2 sum = uvec2(0u), total;
      for (uint s = me * per; s < min(me * per + per, lists); ++s) {
        uvec2 of_list = sum_to(draws_it ? chances : weights, s, high[s]);
        words[s] = of_list.x;
        words[lists + s] = of_list.y;
        sum = plus(sum, of_list);
        high[s] = min(high[s], limit_of[s]);  // behind it are no weights
      }
      before_mine = sum_before(sum, total);
      target = draws_it ? plus(share_of(total, random, 0u, 32u), uvec2(0u, 1u)) : share_of(total, uint(share), 65535u, 16u);
      if (target == uvec2(0u)) target.y = 1u;
    }
    shared_barrier();
    if (!draws_it) select(tokens, target);
  }
  return list_by_chance(before_mine, target);
}

void main() {
  find_place();
  me = subgroup_index * subgroup_size + lane;
  token_of_pass = several ? gl_WorkGroupID.y : 0u;
  if (batched && token_of_pass >= state.at[state_count]) return;
  own = batched ? slot_at(token_of_pass) : 0u;
  uint count = state.at[own + state_count];
  if (batched ? count == 0u : token_of_pass >= count) return;
  position = state.at[own + state_position] + (draws > 1u ? token_of_pass + 1u : count);
  uint generated = state.at[own + state_generated];
  nought = gl_NumWorkGroups.z - 1u;
  float temperature = uintBitsToFloat(state.at[own + state_temperature]);
  penalty = uintBitsToFloat(state.at[own + state_repeat_penalty]);
  window = min(state.at[own + state_repeat_last_n], position);
  penalised = penalty != 1.0 && window != 0u;
  bool samples_it = greedy == 0u && temperature >= 1e-6;
  precise float by_temperature = log2_e / temperature;
  temperature_scale = by_temperature;

  bool needs_weights = uintBitsToFloat(state.at[own + state_top_p]) < 1.0 || uintBitsToFloat(state.at[own + state_min_p]) > 0.0;
  bool by_firsts = first_count != 0u && !penalised && !samples_it;
  if (by_firsts && gl_WorkGroupID.x != 0u) return;
  uint list = gl_WorkGroupID.x, token = vocab_size;
  uvec2 target = uvec2(0u);
  uint head = token_of_pass * row_words + heads_row;
  bool drawn_list = false;
  while (true) {  // its own lists; then, in the last workgroup, the one from which the token is drawn
    uvec2 first = uvec2(0u);
    if (by_firsts) {
      for (uint i = me; i < first_count; i += workgroup_size) first = earlier(first, WordPairs(firsts).at[i]);
    } else {
      first = load_list(list);
      if (greedy == 0u && drawn_list) {
        shared_barrier();
        token = token_by_chance(list, target);
        break;
      }
      first = first_of(first);
      if (me == 0u) {
        scratch.at[head + head_words * list] = first.x;
        scratch.at[head + head_words * list + 1u] = first.y;
      }
      if (samples_it) {
        sort_list();
        for (uint i = me; i < slice; i += workgroup_size) scratch.at[token_of_pass * row_words + list * slice + i] = words[i];
        for (uint which = needs_weights ? weights : chances; which <= chances + nought; ++which) leave_sums(which, list, which == weights ? log2_e : temperature_scale);
      }
      list += gl_NumWorkGroups.x;
      shared_barrier();
      if (list < lists) continue;
      if (!comes_last()) return;
      first = uvec2(0u);
      for (uint s = me; s < lists; s += workgroup_size) first = earlier(first, uvec2(scratch.at[head + head_words * s], scratch.at[head + head_words * s + 1u]));
    }
    first = first_of(first);
    if (first.x >= key_of_infinity || first.x <= key_of_minus_infinity) break;
    token = ~first.y;
    if (!samples_it) break;
    list = draw(first, target);
    drawn_list = true;
  }

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
