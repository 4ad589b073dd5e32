// SPDX-License-Identifier: MIT
// Draws the next token (docs/kernels.md, "Sample"). Each workgroup (x) sorts the keys of slices of the vocabulary and
// writes sums of their weights; the last workgroup of a draw (y) to finish draws from these lists: points of all lists
// give the approximate index of a cut, exact sums down to keys around it shorten the search. Weights are integers:
// neither the number of invocations nor their order affects the token.
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
layout(constant_id = 10) const uint form = 0;
layout(constant_id = 11) const uint narrow = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "first_token.glsl"

// A barrier for shared memory only: a fence of buffers is one of the device, and takes longer than the rest of a step.
#define shared_barrier()                         \
  if (workgroup_size > subgroup_size) barrier(); \
  else subgroupMemoryBarrierShared();

// Forms (kernels::sample_interface): any pass; a pass that draws nothing; any pass, with the least code.
const uint greedy = 1u, interim = 2u;

const uint greedy_workers = 16u;  // kernels::sample_greedy_workers: for a batch's row that draws nothing

// Memory that one workgroup writes and another reads.
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Lists { coherent uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer ListQuads { coherent uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Sums { coherent uvec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Counters { coherent uint at[]; };

layout(push_constant, scalar) uniform Push {
  Words logits, state, ring;
  Lists scratch;
  Words drawn, firsts;
  Counters counters;
};
#include "slots.glsl"

const uint lists = (vocab_size + slice - 1u) / slice;
const uint key_of_infinity = 0xff800000u, key_of_minus_infinity = 0x007fffffu;

// A row of scratch (kernels::sample_scratch_bytes): sorted keys of all lists; sums of all lists up to each eighth
// weight, then up to each eighth chance; for each list its first (key, ~id), and the number of keys within each number
// of octaves below its first, for both.
const uint blocks = slice / 8u, head_words = 2u + 2u * (most_octaves + 1u);
const uint sums_row = lists * slice, heads_row = sums_row + 4u * lists * blocks,
           row_words = heads_row + head_words * lists;

// A cut is searched for among items: `points` of each list with the weight around them, or all remaining keys
// if they fit. Items are summed in `bins` parts of their range; the lists' sums down to `pivots` keys are exact, and
// blocks are searched in `parts` parts at once. Loads for `batch` points are issued together.
const uint points = narrow != 0u ? 5u : 20u, pivots = 4u, parts = 8u, bins = 256u, batch = 5u;
// Room for a usual top-k of each list if it fits in 32 KiB in all, or in 16 KiB if shared memory is narrow.
const uint least_room = narrow != 0u ? 1536u : 4096u, room_of_points = 2u * points * lists,
           most_room = room_of_points > least_room ? room_of_points : least_room,
           room = lists * slice < most_room ? lists * slice : most_room;
// Words that invocations share: a list, then its marks; or counts at pivots and their sums; or items and bins.
const uint amounts_at = pivots * lists, masses_at = points * lists, bins_at = room;
const uint of_list = slice + slice / 32u, of_room = room + 2u * bins,
           of_interim = form == interim ? of_list + 2u * bins : 0u;
const uint of_either = of_list > of_room ? of_list : of_room;
shared uint words[of_either > of_interim ? of_either : of_interim];
shared uint low[lists], high[lists], first_index[lists], limit_of[lists], shift_of[lists], key_of_list[lists];
shared float octave_of_list[lists];
shared uvec2 from_subgroup[workgroup_size / (subgroup_width != 0u ? subgroup_width : 4u)];
shared uint pivot_key[pivots], pivot_high[pivots], pivot_low[pivots];
shared uint found, came_last, least_key, greatest_key;
shared uvec2 found_rest, found_next;

bool penalised, needs_weights;
uint subgroups_known;  // for loops that drivers may unroll
uint nought;  // 0, unknown to drivers, which therefore keep loops with it in their bounds: unrolled, they take long to
              // compile
float penalty;
uint position, window;
uint token_of_pass;  // the token whose successor is drawn
uint own;            // first word of its slot; 0 if there are no slots
uint me;             // the invocation's number in the order of subgroups and lanes
const bool several = draws > 1u || batched;

// 64-bit numbers as (high, low).
uvec2 plus(uvec2 a, uvec2 b) {
  uint carry, low_word = uaddCarry(a.y, b.y, carry);
  return uvec2(a.x + b.x + carry, low_word);
}
uvec2 minus(uvec2 a, uvec2 b) { return uvec2(a.x - b.x - uint(a.y < b.y), a.y - b.y); }
bool reaches(uvec2 a, uvec2 b) { return any(bvec2(a.x > b.x, all(bvec2(a.x == b.x, a.y >= b.y)))); }  // no branch
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

// Sum over the invocations before this one, and over all. Only the first `holders` invocations have a number.
uvec2 sum_before(uvec2 mine, uint holders, out uvec2 total) {
  uvec2 sum = mine;
  for (uint d = 1u; d < subgroup_size + nought; d <<= 1) {
    uvec2 other = subgroupShuffle(sum, lane >= d ? lane - d : lane);
    if (lane >= d) sum = plus(sum, other);
  }
  uvec2 before_mine = minus(sum, mine);
  total = subgroupShuffle(sum, subgroup_size - 1u);
  if (workgroup_size > subgroup_size) {
    if (lane == 0u) from_subgroup[subgroup_index] = total;
    barrier();
    total = uvec2(0u);
    uint last = min((holders + subgroup_size - 1u) / subgroup_size, subgroups_known);
    LATER_UNROLLED for (uint g = 0u; g < last; ++g) {
      uvec2 of_subgroup = from_subgroup[g];
      if (g == subgroup_index) before_mine = plus(before_mine, total);
      total = plus(total, of_subgroup);
    }
    barrier();
  }
  return before_mine;
}

// Weights at temperature 1, or chances at the requested temperature; `octave` is that of the largest logit.
const uint weights = 0u, chances = 1u;
uint sums_of;
float temperature_scale, scale, octave;
float logit_of(uint key) { return uintBitsToFloat(key ^ ((key & 0x80000000u) != 0u ? 0x80000000u : 0xffffffffu)); }
float octave_of_key(uint key, float s) { return ceil(exponent_of(logit_of(key), s)); }
uvec2 weight_of_key(uint key, float s, float o) {
  return key <= key_of_minus_infinity ? uvec2(0u) : weight_of(logit_of(key), o, s);
}

// Loads a slice's keys in the order of ids. @return the first of the invocation's own
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
  for (uint start = me; start < slice; start += 4u * workgroup_size) {
    float logit[4];
    LATER_UNROLLED for (uint b = 0u; b < 4u; ++b) logit[b] =
        Floats(logits).at[token_of_pass * vocab_size + min(list * slice + start + b * workgroup_size, vocab_size - 1u)];
    for (uint i = start; i < min(start + 4u * workgroup_size, slice); i += workgroup_size) {
      uint id = list * slice + i;
      precise float l = logit[0];
      if (penalised && (words[slice + i / 32u] >> (i & 31u) & 1u) != 0u) l = l > 0.0 ? l / penalty : l * penalty;
      words[i] = id < vocab_size ? key_of(l) : 0u;
      first = earlier(first, uvec2(words[i], ~id));
      LATER_UNROLLED for (uint k = 0u; k < 3u; ++k) logit[k] = logit[k + 1u];
    }
  }
  return first;
}

// The first token among one workgroup's share of a row's quads; past the end the last quad is read again. Uses no
// shared memory.
uvec2 first_of_share(uint workers) {
  const uint quads = vocab_size / 4u;
  uint stride = workers * workgroup_size;
  uvec2 first = uvec2(0u);
  for (uint start = gl_WorkGroupID.x * workgroup_size + me; start < quads; start += 4u * stride) {
    vec4 logit[4];
    [[unroll]] for (uint b = 0u; b < 4u; ++b)
      logit[b] = FloatQuads(logits).at[token_of_pass * quads + min(start + b * stride, quads - 1u)];
    [[unroll]] for (uint b = 0u; b < 4u; ++b) [[unroll]]
      for (uint k = 0u; k < 4u; ++k)
        first = earlier(first, uvec2(key_of(logit[b][k]), ~(4u * min(start + b * stride, quads - 1u) + k)));
  }
  return first;
}

// Puts the greater first if `falls`, else the smaller.
void put_in_order(bool falls, inout uint x, inout uint y) {
  uint least = min(x, y), greatest = max(x, y);
  x = falls ? greatest : least;
  y = falls ? least : greatest;
}
// Bitonic sort, the largest first. An invocation has four neighbours; comparisons further apart but within a subgroup
// use shuffles, the rest use words, two steps at a time.
void sort_list() {
  const uint own_run = min(4u * subgroup_size, slice);
  for (uint run = own_run; run <= slice + nought; run <<= 1) {
    uint stride = run >> 1;
    for (; stride >= own_run; stride >>= 2) {
      shared_barrier();
      uint step = stride >> 1;
      for (uint i = me; i < slice / 4u + nought; i += workgroup_size) {
        uint a = 4u * i - 3u * (i & (step - 1u)), x[4];
        bool falls = (a & run) == 0u;
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) x[k] = words[a + k * step];
        put_in_order(falls, x[0], x[2]);
        put_in_order(falls, x[1], x[3]);
        put_in_order(falls, x[0], x[1]);
        put_in_order(falls, x[2], x[3]);
        LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) words[a + k * step] = x[k];
      }
    }
    shared_barrier();
    for (uint i = me; i < slice / 4u + nought; i += workgroup_size) {
      uint x[4];
      LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) x[k] = words[4u * i + k];
      for (uint part = run > own_run ? run : 2u; part <= run; part <<= 1) {
        bool falls = (4u * i & part) == 0u;
        for (uint d = min(part >> 1, stride); d >= 4u; d >>= 1) {
          bool greater = falls == ((4u * i & d) == 0u);
          LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) {
            uint other = subgroupShuffleXor(x[k], d / 4u);
            x[k] = greater ? max(x[k], other) : min(x[k], other);
          }
        }
        if (part > 2u) {
          put_in_order(falls, x[0], x[2]);
          put_in_order(falls, x[1], x[3]);
        }
        put_in_order(falls, x[0], x[1]);
        put_in_order(falls == (part > 2u), x[2], x[3]);
      }
      LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) words[4u * i + k] = x[k];
    }
  }
  shared_barrier();
}

// Writes sums of a sorted list's weights, if they are needed, and of its chances, up to each block of eight, and the
// number of keys within each number of octaves below its first.
void leave_sums(uint list) {
  uint kinds = needs_weights ? 2u : 1u;  // the first kind are weights, or the only kind chances
  for (uint i = workgroup_size - 1u - me; i < kinds * (most_octaves + 1u); i += workgroup_size) {
    uint which = needs_weights ? i / (most_octaves + 1u) : chances, below = i % (most_octaves + 1u), begin = 0u,
         end = slice;
    float s = which == weights ? log2_e : temperature_scale, o = octave_of_key(words[0], s);
    while (begin < end) {
      uint middle = (begin + end) / 2u, key = words[middle];
      if (key > key_of_minus_infinity && o - octave_of_key(key, s) <= float(below)) begin = middle + 1u;
      else end = middle;
    }
    scratch.at[token_of_pass * row_words + heads_row + head_words * list + 2u + which * (most_octaves + 1u) + below] =
        begin;
  }
  if (me == 0u) found_rest = uvec2(0u);
  uvec2 before_all = uvec2(0u), total;
  for (uint first = 0u; first < kinds * blocks; first += workgroup_size) {
    uint i = first + me, block = i % blocks, which = needs_weights ? i / blocks : chances;
    float s = which == weights ? log2_e : temperature_scale, o = octave_of_key(words[0], s);
    uvec2 sum = uvec2(0u);
    for (uint k = 0u; k < (i < kinds * blocks ? 8u : 0u); ++k)
      sum = plus(sum, weight_of_key(words[8u * block + (k + block / 4u & 7u)], s, o));  // without bank conflicts
    sum = plus(sum, plus(before_all, sum_before(sum, 2u * blocks, total)));
    before_all = plus(before_all, total);
    if (needs_weights && i + 1u == blocks) found_rest = sum;  // chances begin here
    shared_barrier();
    if (i < kinds * blocks)
      Sums(scratch).at[(token_of_pass * row_words + sums_row) / 2u + (which * lists + list) * blocks + block] =
          which == chances ? minus(sum, found_rest) : sum;
  }
}

// Whether this is the last of the draw's `workers` to reach this, which can then read the results of the others. One
// invocation fences for all.
bool comes_last(uint workers) {
  groupMemoryBarrier();
  shared_barrier();
  if (workers == 1u) return true;
  if (gl_LocalInvocationIndex == 0u) {
    memoryBarrierBuffer();
    came_last = uint(atomicAdd(counters.at[token_of_pass], 1u) + 1u == workers);
    if (came_last != 0u) atomicExchange(counters.at[token_of_pass], 0u);
    memoryBarrierBuffer();
  }
  shared_barrier();
  groupMemoryBarrier();
  return came_last != 0u;
}

uvec4 keys_at(uint list, uint quad) {
  return ListQuads(scratch).at[(token_of_pass * row_words + list * slice) / 4u + quad];
}
uint key_at(uint list, uint index) { return scratch.at[token_of_pass * row_words + list * slice + index]; }

// Prepares sums of weights or chances: for each list the end of its keys that count, and its unit.
void begin_sums(uint which, uint first_key) {
  sums_of = which;
  scale = which == weights ? log2_e : temperature_scale;
  octave = octave_of_key(first_key, scale);
  shared_barrier();
  for (uint s = me; s < lists; s += workgroup_size) {
    uint head = token_of_pass * row_words + heads_row + head_words * s, key = key_of_list[s];
    float o = octave_of_key(key, scale);
    uint shift = key <= key_of_minus_infinity ? most_octaves + 1u : uint(min(octave - o, float(most_octaves + 1u)));
    octave_of_list[s] = o;
    shift_of[s] = shift;
    limit_of[s] =
        shift > most_octaves ? 0u : scratch.at[head + 2u + which * (most_octaves + 1u) + most_octaves - shift];
    high[s] = min(high[s], limit_of[s]);  // no weights are after it
  }
  shared_barrier();
}
// A quarter of a logit: neither it nor a difference is infinite.
float value_of_key(uint key) { return 0.25 * logit_of(clamp(key, 0x00800000u, 0xff7fffffu)); }
uint key_of_value(float value) { return key_of(4.0 * value); }
float as_float(uvec2 a) { return float(a.x) * 4294967296.0 + float(a.y); }

// Counts, for each of the first `count` pivots, the tokens or weights of each list down to it, in words, and of all
// lists. Indices are between low and high.
void count_at_pivots(uint count, bool tokens) {
  for (uint i = me; i < pivots; i += workgroup_size) pivot_high[i] = pivot_low[i] = 0u;
  shared_barrier();
  for (uint i = me; i < count * lists; i += workgroup_size) {
    uint s = i % lists, key = pivot_key[i / lists], end_index = high[s], from = (key == 0u ? end_index : low[s]) / 8u,
         to = max((end_index + 7u) / 8u, from);
    while (to > from + 1u) {
      uint step_size = (to - from + parts - 1u) / parts, whole = 0u, ends[parts - 1u];
      LATER_UNROLLED for (uint k = 0u; k < parts - 1u; ++k) ends[k] =
          key_at(s, min(8u * (from + (k + 1u) * step_size), slice) - 1u);
      LATER_UNROLLED for (uint k = 0u; k < parts - 1u; ++k) whole +=
          uint(from + (k + 1u) * step_size < to && ends[k] >= key);
      from += whole * step_size;
      to = min(to, from + step_size);
    }
    uvec2 amount = uvec2(0u);
    if (from != 0u && !tokens)
      amount =
          Sums(scratch).at[(token_of_pass * row_words + sums_row) / 2u + (sums_of * lists + s) * blocks + from - 1u];
    uvec4 keys[2];
    LATER_UNROLLED for (uint k = 0u; k < 2u; ++k) keys[k] = keys_at(s, min(2u * from + k, slice / 4u - 1u));
    uint of_block = 0u;
    LATER_UNROLLED for (uint k = 0u; k < 8u; ++k) of_block +=
        uint(keys[k / 4u][k & 3u] >= key && 8u * from + k < end_index);
    words[i] = 8u * from + of_block;
    for (uint k = tokens ? of_block : 0u; k < of_block; ++k) {
      amount = plus(amount, weight_of_key(keys[0].x, scale, octave_of_list[s]));
      keys[0] = uvec4(keys[0].yzw, keys[1].x);
      keys[1] = keys[1].yzww;
    }
    amount = tokens ? uvec2(0u, words[i]) : shifted_right(amount, shift_of[s] & 31u);
    words[amounts_at + i] = amount.x;
    words[amounts_at + pivots * lists + i] = amount.y;
    uint low_word = atomicAdd(pivot_low[i / lists], amount.y);
    atomicAdd(pivot_high[i / lists], amount.x + uint(low_word + amount.y < low_word));
  }
  shared_barrier();
}

// Finds the least and greatest key of all invocations.
void leave_bounds(uint least, uint greatest) {
  for (uint d = 1u; d < subgroup_size + nought; d <<= 1) {
    least = min(least, subgroupShuffleXor(least, d));
    greatest = max(greatest, subgroupShuffleXor(greatest, d));
  }
  if (lane == 0u) {
    atomicMin(least_key, least);
    atomicMax(greatest_key, greatest);
  }
  shared_barrier();
}

// The number of a list's blocks, after the first, that precede a part of them: parts are smaller towards both ends,
// where logits are further apart.
uint blocks_before(uint part, uint rest) {
  const uint last = points - 1u;
  uint back = last - part;
  return (part * last + (part < back ? 2u * part * part : last * last - 2u * back * back)) * rest / (2u * last * last);
}
// Reads items: all remaining keys, in the order of lists.
void load_left() {
  uint least = ~0u, greatest = 0u;
  for (uint first = subgroup_index; first < lists; first += 2u * subgroups) {  // two lists at a time
    uint other = min(first + subgroups, lists - 1u);
    uvec2 begin = uvec2(low[first], low[other]),
          size = uvec2(high[first], first + subgroups < lists ? high[other] : 0u) -
                 uvec2(begin.x, first + subgroups < lists ? begin.y : 0u);
    for (uint start = 0u; start < max(size.x, size.y) + nought; start += 4u * subgroup_size) {
      uint key[8];
      LATER_UNROLLED for (uint b = 0u; b < 8u; ++b) {
        uint index = (b < 4u ? begin.x : begin.y) + start + (b & 3u) * subgroup_size + lane;
        key[b] = key_at(b < 4u ? first : other, min(index, slice - 1u));
      }
      LATER_UNROLLED for (uint b = 0u; b < 8u; ++b) {
        uint i = start + (b & 3u) * subgroup_size + lane;
        if (i < (b < 4u ? size.x : size.y)) {
          words[first_index[b < 4u ? first : other] + i] = key[b];
          least = min(least, key[b]), greatest = max(greatest, key[b]);
        }
      }
    }
  }
  leave_bounds(least, greatest);
}
// Reads points of each list, its first key and one in each part of the rest, further on in each list than in the list
// before, and the number of tokens, or the weights in units of 2^shift, around them.
void load_points(bool tokens, uint shift) {
  const uint count = points * lists;
  uint least = ~0u, greatest = 0u;
  for (uint start = me; start < count; start += batch * workgroup_size) {
    uint key[batch], at[batch], from[batch], to[batch];
    for (uint b = 0u; b < batch + nought; ++b) {
      uint i = min(start + b * workgroup_size, count - 1u), s = i / points, part = i % points;
      uint first = low[s] / 8u, rest = max((high[s] + 7u) / 8u, first + 1u) - first - 1u;
      uint begin = first + (part == 0u ? 0u : 1u + blocks_before(part - 1u, rest)),
           end = first + 1u + blocks_before(part, rest);
      uint index = part == 0u ? low[s] : 8u * begin + ((s * 40503u + part * 49471u & 0xffffu) * (end - begin) >> 13);
      index = max(min(index, high[s] - min(high[s], 1u)), low[s]);
      if (low[s] == high[s]) begin = end = 0u;
      LATER_UNROLLED for (uint k = 0u; k + 1u < batch; ++k) at[k] = at[k + 1u], from[k] = from[k + 1u],
                                                            to[k] = to[k + 1u];
      at[batch - 1u] = s * slice + min(index, slice - 1u), from[batch - 1u] = begin, to[batch - 1u] = end;
    }
    LATER_UNROLLED for (uint b = 0u; b < batch; ++b) key[b] = key_at(0u, at[b]);
    uvec2 sum[batch], before[batch];
    if (!tokens) {
      LATER_UNROLLED for (uint b = 0u; b < batch; ++b) {
        uint row = (token_of_pass * row_words + sums_row) / 2u + at[b] / slice * blocks;
        sum[b] = Sums(scratch).at[row + max(min(to[b], blocks), 1u) - 1u];
        before[b] = from[b] == 0u ? uvec2(0u) : Sums(scratch).at[row + from[b] - 1u];
      }
    }
    for (uint i = start; i < min(start + batch * workgroup_size, count); i += workgroup_size) {
      uint mass = 0u;
      if (from[0] != to[0]) {
        least = min(least, key[0]), greatest = max(greatest, key[0]);
        mass = tokens ? 8u * (to[0] - from[0]) + (i % points == 0u   ? ~6u
                                                  : i % points == 1u ? 7u
                                                                     : 0u)
                      : uint(as_float(minus(sum[0], before[0])) * exp2(-float(shift_of[at[0] / slice] + shift)));
      }
      words[i] = key[0];
      words[masses_at + i] = mass;
      LATER_UNROLLED for (uint k = 0u; k + 1u < batch; ++k) key[k] = key[k + 1u], at[k] = at[k + 1u],
                                                            from[k] = from[k + 1u], to[k] = to[k + 1u],
                                                            sum[k] = sum[k + 1u], before[k] = before[k + 1u];
    }
  }
  leave_bounds(least, greatest);
}

// Shortens the lists from their ends `high`: to the shortest start of the order whose tokens, or weights, reach the
// requested number; or to the keys that are not below `least`; or, for the draw, finds the list of the target, for
// chances in the order of ids, and the rest of the target in it. The target is reached at a key in [key_low, key_high):
// lists hold `high` and `low` tokens down to these (docs/kernels.md).
const uint top_k = 0u, top_p = 1u, min_p = 2u, the_draw = 3u;
uvec2 amount_of(uint by_what, uint s) {
  return by_what == the_draw ? uvec2(words[amounts_at + s], words[amounts_at + pivots * lists + s])
                             : uvec2(0u, high[s] - low[s]);
}
void cut(uint by_what, uint least, uvec2 target) {
  const uint per = (lists + workgroup_size - 1u) / workgroup_size;
  uint begin_list = min(me * per, lists), end_list = min(me * per + per, lists);
  bool tokens = by_what == top_k;
  for (uint s = begin_list; s < end_list; ++s) low[s] = 0u;
  if (me == 0u) pivot_key[0] = least;
  uint key_low = 0u, key_high = ~0u, before_here = 0u, equal = 0u, shift = 0u;
  uvec2 base = uvec2(0u);  // sum before low
  for (uint round = 0u; round < 64u + nought; ++round) {
    if (!tokens || round != 0u) {
      uint count = round == 0u ? 1u : pivots;
      count_at_pivots(count, tokens);
      uvec2 sum = uvec2(pivot_high[0], pivot_low[0]);
      if (round == 0u) {
        bool draws_it = by_what == the_draw;
        target = share_of(sum, target.y, draws_it ? 0u : 65535u, draws_it ? 32u : 16u);
        if (draws_it || target == uvec2(0u)) target = plus(target, uvec2(0u, 1u));
        shift = sum.x == 0u ? 1u : uint(findMSB(sum.x)) + 2u;
      }
      uint pivot = 0u;
      if (by_what == the_draw) count = 0u;
      while (pivot < count && !reaches(sum, target)) {
        base = sum;
        pivot += 1u;
        if (pivot < count) sum = uvec2(pivot_high[pivot], pivot_low[pivot]);
      }
      if (pivot != 0u) key_high = pivot_key[pivot - 1u];
      if (pivot != count) key_low = pivot_key[pivot];
      for (uint s = begin_list; s < end_list; ++s) {
        if (pivot != 0u) low[s] = words[(pivot - 1u) * lists + s];
        if (pivot != count) high[s] = words[pivot * lists + s];
      }
      if (by_what == min_p) break;
    }
    uvec2 mine = uvec2(0u), total;
    for (uint s = begin_list; s < end_list; ++s) mine = plus(mine, amount_of(by_what, s));
    mine = sum_before(mine, lists, total);
    if (by_what == the_draw) {
      for (uint s = begin_list; s < end_list; ++s) {
        uvec2 next = plus(mine, amount_of(by_what, s));
        if (reaches(next, target) && !reaches(mine, target)) {
          found = s;
          found_rest = minus(target, mine);
        }
        mine = next;
      }
      break;
    }
    before_here = mine.y;
    equal = total.y;
    uint index = before_here;
    for (uint s = begin_list; s < end_list; ++s) {
      first_index[s] = index;
      index += high[s] - low[s];
    }
    if (me == 0u) least_key = ~0u, greatest_key = 0u;
    shared_barrier();
    if (key_high - key_low == 1u) break;

    // Estimates the target's index: exactly, if all remaining keys are items; else from points. Every third round
    // divides keys evenly, whatever the weights are.
    bool all_left = equal <= room, evenly = !all_left && round % 3u == 2u;
    uint begin = key_low, end = key_high;
    float spread = 0.0;
    if (!evenly) {
      uint items = all_left ? equal : points * lists;
      for (uint i = me; i < 2u * bins + nought; i += workgroup_size) words[bins_at + i] = 0u;
      if (all_left) load_left();
      else load_points(tokens, shift);
      begin = least_key, end = greatest_key + 1u;
      float enough = 0.2 * float(room), between = 1e30, unit = 1.0;
      uvec2 sum = all_left ? base : uvec2(0u),
            goal = all_left ? target
                   : tokens ? minus(target, base)
                            : uvec2(0u, uint(as_float(minus(target, base)) * exp2(-float(shift))));
      uint finer = 8u;  // 2^8 bins
      float from_value = value_of_key(begin), per_value = float(bins) / max(value_of_key(end - 1u) - from_value, 1e-30);
      for (uint level = 0u; level < 16u + nought && end - begin > 1u && between > 2.0 * enough * unit; ++level) {
        bool by_value = !all_left &&
                        level == 0u;  // points spread out more evenly then, but logits are too far apart for more of it
        uint by = uint(max(findMSB(end - begin - 1u) + 1 - int(finer), 0));
        if (me == 0u) found = 0u, found_rest = found_next = sum;
        for (uint i = me; i < items; i += workgroup_size) {
          uint key = words[i], bin = by_value ? min(uint((value_of_key(key) - from_value) * per_value), bins - 1u)
                                              : (key - begin) >> by;
          if (key < begin || key >= end) continue;
          uvec2 amount = uvec2(0u, 1u);
          if (!all_left) amount.y = words[masses_at + i];
          else if (!tokens) amount = weight_of_key(key, scale, octave);
          uint low_word = atomicAdd(words[bins_at + bins + bin], amount.y);
          amount.x += uint(low_word + amount.y < low_word);
          if (amount.x != 0u) atomicAdd(words[bins_at + bin], amount.x);
        }
        shared_barrier();
        const uint share = (bins + workgroup_size - 1u) / workgroup_size;
        uint last = bins - 1u - min(me * share, bins - 1u), some = me * share < bins ? min(share, last + 1u) : 0u;
        uvec2 own_sum = uvec2(0u);
        for (uint i = 0u; i < some; ++i)
          own_sum = plus(own_sum, uvec2(words[bins_at + last - i], words[bins_at + bins + last - i]));
        sum = plus(sum, sum_before(own_sum, bins, total));
        for (uint i = 0u; i < some; ++i) {
          uvec2 next = plus(sum, uvec2(words[bins_at + last - i], words[bins_at + bins + last - i]));
          words[bins_at + last - i] = words[bins_at + bins + last - i] = 0u;  // for the next level
          if (reaches(next, goal) && !reaches(sum, goal)) {
            found = last - i;
            found_rest = sum;
            found_next = next;
          }
          sum = next;
        }
        shared_barrier();
        if (by_value) {
          uint next = found + 1u < bins ? key_of_value(from_value + float(found + 1u) / per_value) : end;
          begin = clamp(key_of_value(from_value + float(found) / per_value), begin, end - 1u);
          end = clamp(next, begin + 1u, end);
        } else {
          begin += found << by;
          end = begin + min(end - begin, 1u << by);
        }
        sum = found_rest;
        finer = 8u;
        if (!all_left) {  // a part with many items, which give the distance of pivots around it
          between = as_float(minus(found_next, sum));
          if (!tokens)
            unit = exp2(exponent_of(logit_of(begin + (end - begin) / 2u), scale) - octave + float(44u - shift));
          if (level < 4u) finer = uint(findMSB(uint(clamp(between / (enough * unit), 2.0, 256.0))));
        }
        shared_barrier();
      }
      if (!all_left)
        spread = max(value_of_key(end) - value_of_key(begin), 0.125 / per_value) *
                 clamp(1.5 * enough * unit / between, 0.0, 256.0);
    }
    if (me < pivots) {
      uint width = key_high - key_low, key = me == 0u   ? key_of_value(value_of_key(end) + spread)
                                             : me == 1u ? end
                                             : me == 2u ? begin
                                                        : key_of_value(value_of_key(begin) - spread);
      if (me == 0u) key = max(key, end);
      if (me == 3u) key = min(key, begin);
      if (evenly) key = key_high - min(max(width / (pivots + 1u), 1u) * (me + 1u), width);
      pivot_key[me] = clamp(key, key_low, key_high);
    }
    shared_barrier();
  }

  if (tokens || by_what == top_p) {  // all of greater keys, and the first ones of this key, list by list
    uvec2 rest = minus(target, base);
    uint wanted = tokens ? rest.y : 1u;
    if (!tokens) {
      uvec2 one = weight_of_key(key_low, scale, octave);
      for (uint by = equal < 2u ? 0u : uint(findMSB(equal - 1u)) + 1u; by-- > 0u;) {
        uvec2 step_size = uvec2(by == 0u ? one.x : one.x << by | one.y >> (32u - by), one.y << by);
        if (reaches(step_size, rest)) continue;
        rest = minus(rest, step_size);
        wanted += 1u << by;
      }
    }
    for (uint s = begin_list; s < end_list; ++s) {
      uint size = high[s] - low[s];
      high[s] = low[s] + min(size, wanted - min(wanted, before_here));
      before_here += size;
    }
  }
  shared_barrier();
}

// The token of a list that load_list has read.
uint token_by_chance(uint list, uvec2 target) {
  const uint share = (slice + workgroup_size - 1u) / workgroup_size;
  uint count = min(high[list], limit_of[list]), least = key_at(list, max(count, 1u) - 1u), equal_kept = 0u,
       equal_before = 0u;
  uint begin = min(me * share, slice), end = min(begin + share, slice);
  // Of several tokens equal to the last kept one, the first ones are kept.
  uvec2 mine = uvec2(0u), total;  // greater, equal; later chances
  for (uint i = begin; i < end; ++i) mine += uvec2(words[i] > least, words[i] == least);
  for (uint step = 0u; step < 2u + nought; ++step) {
    uvec2 sum = sum_before(mine, slice, total);
    if (step == 0u) equal_before = sum.y, equal_kept = count - total.x, sum = uvec2(0u);
    uint rank = equal_before;
    for (uint i = begin; i < end; ++i) {
      uint key = words[i];
      bool kept = key > least || (key == least && rank < equal_kept);
      rank += uint(key == least);
      if (!kept) continue;
      uvec2 next = plus(sum, weight_of_key(key, scale, octave));
      if (step == 1u && reaches(next, target) && !reaches(sum, target)) found = list * slice + i;
      sum = next;
    }
    mine = sum;
  }
  shared_barrier();
  return found;
}

// Finds the list of the drawn token, and the rest of the target within its chances.
uint draw(uvec2 first, out uvec2 target) {
  uint k = state.at[own + state_top_k];
  if (k >= vocab_size) k = 0u;
  precise float share_p = uintBitsToFloat(state.at[own + state_top_p]),
                share_min = uintBitsToFloat(state.at[own + state_min_p]), share = max(share_p, 0.0) * 65536.0 + 0.5;
  uint random =
      philox(uvec4(position - 1u, 0u, 0u, 0u), uvec2(state.at[own + state_seed_low], state.at[own + state_seed_high]))
          .x;
  for (uint s = me; s < lists; s += workgroup_size)
    high[s] = min(min(slice, vocab_size - s * slice), k == 0u ? slice : k);
  shared_barrier();
  for (uint step = 0u; step < 4u + nought;
       ++step) {  // in one loop, because compilers copy functions to where they are called
    if (step == top_k ? k == 0u : step == top_p ? !needs_weights : step == min_p && !(share_min > 0.0)) continue;
    if (step == top_p || step == the_draw) begin_sums(step == top_p ? weights : chances, first.x);
    if (step == top_p && !(share_p < 1.0)) continue;
    uint least = 0u;
    if (step == min_p) {  // the least key at least share_min (in 24 bits) as likely as the first
      uvec2 lowest = uvec2(0u);
      uint end = first.x, part = 0u;
      least = end;
      for (uint i = 0u; i < 34u + nought; ++i) {  // one key per invocation at once
        uint key = least + min(part * me, end - least);
        uvec2 weight = weight_of_key(key, scale, octave);
        if (i == 0u) {
          umulExtended(weight.x << 8 | weight.y >> 24, uint(ceil(min(share_min, 1.0) * 16777216.0)), lowest.x,
                       lowest.y);
          least = key_of_minus_infinity + 1u;
        } else {
          if (reaches(weight, lowest)) atomicMin(least_key, key);
          shared_barrier();
          end = least_key;
          least = end - min(part - 1u, end - least);
          if (least == end) break;
        }
        part = (end - least) / workgroup_size + 1u;
        shared_barrier();
        if (me == 0u) least_key = end;
        shared_barrier();
      }
    }
    cut(step, least, uvec2(0u, step == top_k ? k : step == top_p ? uint(share) : step == min_p ? 0u : random));
  }
  target = found_rest;
  return min(found, lists - 1u);
}

// Draws the token of any pass with one workgroup, which reads all logits for each digit of 8 bits: four of the key,
// three of ~id. It finds the greatest, then the end of top-k, the end of top-p, and the draw, whose chances depend on
// the id only. One loop for all of these, since drivers compile each copy of its body.
uint token_by_digits(bool samples_it) {
  const uint at_first = 0u, at_tokens = 1u, at_weights = 2u, at_chances = 3u;
  const uint high_bins = of_list, low_bins = of_list + bins, share = (bins + workgroup_size - 1u) / workgroup_size;
  uint k = state.at[own + state_top_k], stage = at_first, digit = 0u;
  if (k >= vocab_size) k = 0u;
  precise float share_p = uintBitsToFloat(state.at[own + state_top_p]),
                share_min = uintBitsToFloat(state.at[own + state_min_p]), wanted_p = max(share_p, 0.0) * 65536.0 + 0.5;
  uvec2 first = uvec2(0u), end = uvec2(0u), prefix = uvec2(0u), target = uvec2(0u), least = uvec2(0u), total;
  vec2 octaves;
  while (true) {
    for (uint i = me; i < 2u * bins + nought; i += workgroup_size) words[high_bins + i] = 0u;
    shared_barrier();
    uint shift = digit < 4u ? 24u - 8u * digit : 8u * (6u - digit);
    for (uint list = 0u; list < lists + nought; ++list) {
      uvec2 of_list_first = load_list(list);
      if (stage == at_first) first = earlier(first, of_list_first);
      for (uint i = stage == at_first ? slice : me; i < slice;
           i += workgroup_size) {  // loaded by the invocation itself
        uvec2 index = uvec2(words[i], ~(list * slice + i)), amount = uvec2(0u, 1u), apart = index ^ prefix;
        bool part = list * slice + i < vocab_size && !before(end, index);
        // The digits above this one must be those found so far.
        if (digit != 0u && stage != at_chances) part = part && (digit < 4u ? apart.x >> (shift + 8u) : apart.x) == 0u;
        if (digit > 4u) part = part && apart.y >> (shift + 8u) == 0u;
        for (uint turn = at_tokens; turn < stage && part;
             ++turn) {  // the weight, and then the chance of tokens that min-p leaves
          part = turn == at_tokens || reaches(amount, least);
          amount = weight_of_key(index.x, turn == at_tokens ? log2_e : temperature_scale,
                                 turn == at_tokens ? octaves.x : octaves.y);
        }
        if (!part) continue;
        uint bin = (digit < 4u ? index.x : index.y) >> shift & 255u,
             low_word = atomicAdd(words[low_bins + bin], amount.y);
        amount.x += uint(low_word + amount.y < low_word);
        if (amount.x != 0u) atomicAdd(words[high_bins + bin], amount.x);
      }
      if (penalised) shared_barrier();  // the next list has marks of its own
    }
    shared_barrier();
    bool ends = true;
    if (stage == at_first) {
      first = first_of(first);
      if (first.x >= key_of_infinity || first.x <= key_of_minus_infinity) return vocab_size;
      if (!samples_it) return ~first.y;
      octaves = vec2(octave_of_key(first.x, log2_e), octave_of_key(first.x, temperature_scale));
      if (share_min > 0.0) {
        uvec2 largest = weight_of_key(first.x, log2_e, octaves.x);
        umulExtended(largest.x << 8 | largest.y >> 24, uint(ceil(min(share_min, 1.0) * 16777216.0)), least.x, least.y);
      }
    } else {
      uint last = bins - 1u - min(me * share, bins - 1u), some = me * share < bins ? min(share, last + 1u) : 0u;
      uvec2 sum = uvec2(0u);
      for (uint i = 0u; i < some; ++i) sum = plus(sum, uvec2(words[high_bins + last - i], words[low_bins + last - i]));
      sum = sum_before(sum, bins, total);
      if (stage != at_tokens && digit == (stage == at_chances ? 4u : 0u)) {
        bool draws_it = stage == at_chances;
        target = share_of(total, target.y, draws_it ? 0u : 65535u, draws_it ? 32u : 16u);
        if (draws_it || target == uvec2(0u)) target = plus(target, uvec2(0u, 1u));
      }
      for (uint i = 0u; i < some; ++i) {
        uvec2 next = plus(sum, uvec2(words[high_bins + last - i], words[low_bins + last - i]));
        if (reaches(next, target) && !reaches(sum, target)) {
          found = last - i;
          found_rest = sum;
          found_next = next;
        }
        sum = next;
      }
      shared_barrier();
      if (digit < 4u) prefix.x |= found << shift;
      else prefix.y |= found << shift;
      ends = digit == 6u;
      if (found_next == target && digit < 4u) {  // all of this bin
        prefix.y = 0u;
        ends = true;
      }
      target = minus(target, found_rest);
      digit += 1u;
      if (ends) end = prefix;
    }
    shared_barrier();
    if (!ends) continue;
    if (stage == at_chances) return ~prefix.y;
    stage += 1u;
    if (stage == at_tokens && k == 0u) stage = at_weights;
    if (stage == at_weights && !(share_p < 1.0)) stage = at_chances;
    digit = stage == at_chances ? 4u : 0u;
    prefix = uvec2(0u, 0xff000000u);
    target =
        uvec2(0u, stage == at_tokens    ? k
                  : stage == at_weights ? uint(wanted_p)
                                        : philox(uvec4(position - 1u, 0u, 0u, 0u),
                                                 uvec2(state.at[own + state_seed_low], state.at[own + state_seed_high]))
                                              .x);
  }
}

void main() {
  find_lane();
  me = subgroup_index * subgroup_size + lane;
  token_of_pass = several ? gl_WorkGroupID.y : 0u;
  if (batched && token_of_pass >= state.at[state_count]) return;
  own = batched ? slot_at(token_of_pass) : 0u;
  uint count = state.at[own + state_count];
  if (batched ? count == 0u : token_of_pass >= count) return;
  position = state.at[own + state_position] + (draws > 1u ? token_of_pass + 1u : count);
  uint generated = state.at[own + state_generated];
  nought = gl_NumWorkGroups.z - 1u;
  subgroups_known = subgroups;
  subgroups += nought;
  float temperature = uintBitsToFloat(state.at[own + state_temperature]);
  penalty = uintBitsToFloat(state.at[own + state_repeat_penalty]);
  window = min(state.at[own + state_repeat_last_n], position);
  penalised = penalty != 1.0 && window != 0u;
  bool samples_it = form != greedy && temperature >= 1e-6;
  precise float by_temperature = log2_e / temperature;
  temperature_scale = by_temperature;

  needs_weights =
      uintBitsToFloat(state.at[own + state_top_p]) < 1.0 || uintBitsToFloat(state.at[own + state_min_p]) > 0.0;
  bool by_firsts = first_count != 0u && !penalised && !samples_it;
  if ((by_firsts || form == interim) && gl_WorkGroupID.x != 0u) return;
  // A row of a batch that draws nothing gets up to greedy_workers workgroups, one first each; others need the rest.
  bool draws_none = batched && !samples_it, in_shares = draws_none && !penalised && vocab_size % 4u == 0u;
  uint workers = draws_none ? min(gl_NumWorkGroups.x, greedy_workers) : gl_NumWorkGroups.x;
  if (draws_none && gl_WorkGroupID.x >= workers) return;
  uvec2 first_of_own = uvec2(0u);
  uint list = gl_WorkGroupID.x, token = vocab_size;
  uvec2 target = uvec2(0u);
  uint head = token_of_pass * row_words + heads_row;
  bool gathers = false, drawn_list = false;
  if (form == interim) token = token_by_digits(samples_it);
  else
    while (true) {  // its own lists; in the last workgroup then the results of all; then the list of the drawn token
      uvec2 first = uvec2(0u);
      if (by_firsts) {
        for (uint i = me; i < first_count; i += workgroup_size) first = earlier(first, WordPairs(firsts).at[i]);
      } else if (gathers) {
        for (uint s = me; s < (draws_none ? workers : lists); s += workgroup_size) {
          uvec2 of_list = uvec2(scratch.at[head + head_words * s], scratch.at[head + head_words * s + 1u]);
          key_of_list[s] = of_list.x;
          first = earlier(first, of_list);
        }
      } else if (in_shares) {
        first = first_of_share(workers);
        list = lists;
      } else {
        first = load_list(list);
        if (form != greedy && drawn_list) {
          shared_barrier();
          token = token_by_chance(list, target);
          break;
        }
      }
      if (draws_none && !by_firsts && !gathers && list + workers < lists) {
        first_of_own = earlier(first_of_own, first);
        list += workers;
        shared_barrier();
        continue;
      }
      first = first_of(draws_none ? earlier(first_of_own, first) : first);
      if (!by_firsts && !gathers) {
        if (me == 0u) {
          uint index = draws_none ? gl_WorkGroupID.x : list;
          scratch.at[head + head_words * index] = first.x;
          scratch.at[head + head_words * index + 1u] = first.y;
        }
        if (samples_it) {
          sort_list();
          for (uint i = me; i < slice; i += workgroup_size)
            scratch.at[token_of_pass * row_words + list * slice + i] = words[i];
          leave_sums(list);
        }
        list += workers;
        shared_barrier();
        if (list < lists) continue;
        if (!comes_last(workers)) return;
        first_of_own = uvec2(0u);
        gathers = true;
        continue;
      }
      if (first.x >= key_of_infinity || first.x <= key_of_minus_infinity) break;
      token = ~first.y;
      if (!samples_it) break;
      list = draw(first, target);
      drawn_list = true;
      gathers = false;
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
