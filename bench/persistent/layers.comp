// SPDX-License-Identifier: MIT
// All layers of one token in one dispatch: every workgroup stays on its multiprocessor and walks the period's steps. There is no barrier
// between steps: a vector that crosses workgroups is filled with a pattern that no number has, its readers wait until each element is
// something else, and its writers put the pattern back one layer later, when all have read it. What a step needs from the last
// tokens (weights, norms, the cache) is loaded before the wait.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_integer_dot_product : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#pragma use_vulkan_memory_model
#define WIDE_LOADS 0
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

const uint workgroup_size = 1024u;
layout(constant_id = 1) const uint layers = 30;
layout(constant_id = 2) const uint widest = 6912;    // columns of the widest product
layout(constant_id = 3) const uint heads = 20;
layout(constant_id = 4) const uint kv_heads = 5;
layout(constant_id = 5) const uint head_dim = 128;
layout(constant_id = 6) const uint context = 4096;
layout(constant_id = 7) const float rope_theta = 500000.0;
layout(constant_id = 8) const float eps = 1e-5;
layout(constant_id = 9) const uint gate = 0;
layout(constant_id = 10) const uint measure = 0;     // workgroup + 1 whose clock is written, 0: none
layout(constant_id = 11) const uint hidden = 2560;
layout(constant_id = 12) const uint workgroups = 132;
layout(local_size_x = 1024) in;
#if CLOCK
#extension GL_ARB_shader_clock : require
#endif

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer SharedQuads { volatile devicecoherent vec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SharedPairs { volatile devicecoherent vec2 at[]; };

// A step of the period: 16 64-bit words, see field_*.
layout(push_constant, scalar) uniform Push { Longs table; Words state; Words counter; Longs clocks; };

// Numbers, then addresses; norm, weight, scales, keys and values have a stride a layer behind them, output a stride between its two generations.
const uint field_kind = 0u, field_columns = 1u, field_rows = 2u, field_slices = 3u;
const uint field_input = 4u, field_output = 5u, field_norm = 6u, field_weight = 8u, field_scales = 10u, field_keys = 12u, field_values = 14u;
const uint kind_qkv = 0u, kind_attention = 1u, kind_add = 2u, kind_gated = 3u;
const uint steps = 5u;
const uint subgroups = workgroup_size / 32u;
const uint loads = 5u, first_part = 3u;  // quads of weight words of a lane; those of gate and up that are loaded before the attention
const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim, quads = head_dim / 4u, chunks = head_dim / 8u;
const uint octets_of_context = (context + 7u) / 8u;
const uint most_spans = (context + 255u) / 256u;
const uint partial_quads = quads + 1u;
const uint nothing = 0xffffffffu;   // no number that arithmetic gives
const uint patience = 1u << 20;
#define minus_infinity uintBitsToFloat(0xff800000u)

const uint generation_bytes = 524288u;  // between the two generations of an exchanged vector
// Each vector that all read stands several times: readers of one copy come in each other's way.
const uint copies = 1u, copy_bytes = 32768u, partials_at = 262144u;
uint64_t own_copy() { return uint64_t(gl_WorkGroupID.x % copies * copy_bytes); }

struct step_share {  // what a step is for this workgroup
  uint columns, first_group, groups, slices, inverse_slices, part;
};
shared step_share shares[steps];
shared uint64_t places[steps * 16u];
shared uvec4 sx[widest / 16u];            // int8 input
shared int partial[2u * 128u];            // sums of the workgroup's rows
shared vec2 rotation[head_dim / 2u];      // sine, cosine
shared float block_sums[64], octet_sums[32], octet_maxima[32];
shared vec4 sums_of[32u * quads];         // attention: sums of values of an octet, or of a span
shared vec4 fresh[3u * quads];            // query, key and value of this position
shared int shared_sum[2];
shared uint shared_max[2], shared_position, shared_tasks;
shared float scales_of[layers * steps * 3u];
shared vec4 kept_stream[64];              // the residual of this workgroup's rows
shared vec3 scaling;                      // 1 / root mean square, 127 / largest, largest / 127

uint lane, sub, phase;
uint turn;         // which half of what two products in a row may not share
bool gave_up;
uvec4 w[loads];  // of the next product: weights, norm
uvec4 w_after;    // of the product behind the attention
const uint octets = 32u / subgroups;
uvec4 key_words[octets * 4u];
uvec2 value_words[octets * 8u];

uint64_t place(uint step, uint field) { return places[step * 16u + field]; }
uint64_t place(uint step, uint field, uint layer) { return places[step * 16u + field] + places[step * 16u + field + 1u] * uint64_t(layer); }
uint generation(uint layer) { return ((layer + phase) & 1u) * generation_bytes; }

#if CLOCK
uint stamp_count;
void stamp() {
  if (measure == gl_WorkGroupID.x + 1u && gl_LocalInvocationIndex == 0u) clocks.at[stamp_count++] = clockARB();
}
#else
void stamp() {}
#endif


// Computed once: integer divisions take longer than anything else a step does for itself.
step_share share_of(uint step) {
  step_share s;
  uint groups = (step == 0u ? q_size + 2u * kv_size : step == 3u ? 2u * widest : hidden) / 4u;
  s.columns = step == 2u ? q_size : step == 4u ? widest : hidden;
  s.slices = step == 0u ? 4u : step == 2u ? 5u : step == 3u ? 1u : 6u;
  // Workgroups that attend at any context have no part in the output projection.
  uint skipped = step == 2u ? heads : 0u, worker = gl_WorkGroupID.x - skipped;
  s.first_group = worker * groups / (workgroups - skipped);
  s.groups = gl_WorkGroupID.x < skipped ? 0u : (worker + 1u) * groups / (workgroups - skipped) - s.first_group;
  s.inverse_slices = 65536u / s.slices + 1u;
  s.part = s.columns / 16u / s.slices;
  if (step == 1u) s.groups = 0u;
  return s;
}

uint64_t input_of(uint step, uint layer) {
  if (step == 0u) return layer == 0u ? place(0u, field_input) : place(steps - 1u, field_output) + generation(layer + 1u) + own_copy();
  return place(step - 1u, field_output) + generation(layer) + own_copy();
}

// A subgroup's task: first quad of weight words, their number, the first tile of the input, the group.
uvec4 task_of(step_share s, uint round) {
  uint task = sub + round * subgroups, g = (task * s.inverse_slices) >> 16, slice = task - g * s.slices;
  return uvec4(((s.first_group + g) * s.slices + slice) * s.part, g < s.groups ? s.part : 0u, slice * s.part, g);
}
// Weights of a product. All is set: a register that may keep its content through the attention would be spilled.
void fetch(uint step, uint layer, uint from, uint to) {
  WordQuads weight = WordQuads(place(step, field_weight, layer));
  uvec4 task = task_of(shares[step], 0u);
  [[unroll]] for (uint i = from; i < to; ++i) {
    uint k = lane + i * 32u;
    w[i] = k < task.y ? weight.at[task.x + k] : uvec4(0u);
  }
}
void fetch_after(uint step, uint layer) {
  WordQuads weight = WordQuads(place(step, field_weight, layer));
  uvec4 task = task_of(shares[step], 0u);
  w_after = lane < task.y ? weight.at[task.x + lane] : uvec4(0u);
}

bool absent(vec4 v) { return any(equal(floatBitsToUint(v), uvec4(nothing))); }

vec4 await1(SharedQuads x, uint quad, bool wanted) {
  vec4 a;
  uint tries = 0u;
  do {
    a = wanted ? x.at[quad] : vec4(0.0);
  } while (subgroupAny(absent(a)) && ++tries < patience);
  gave_up = gave_up || absent(a);
  return a;
}

float greatest(vec4 v) { v = abs(v); return max(max(v.x, v.y), max(v.z, v.w)); }
float butterfly(float sum) {
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) { precise float both = sum + subgroupShuffleXor(sum, d); sum = both; }
  return sum;
}

// One quad an invocation of the input, times the norm's weight; its square into the block's sum.
precise vec4 take_in(SharedQuads x, FloatQuads norm, uint quad, uint count, uint keeper) {
  bool wanted = quad < count;
  vec4 weight = wanted ? norm.at[quad] : vec4(0.0);
  vec4 mine = await1(x, quad, wanted);
  uint row = quad - shares[keeper].first_group;
  if (wanted && row < shares[keeper].groups) kept_stream[(keeper == 4u ? 32u : 0u) + row] = mine;
  precise vec4 square = mine * mine;
  precise float sum = (square.x + square.y) + (square.z + square.w);
  sum = butterfly(sum);
  if (lane == 0u) block_sums[quad / 32u] = sum;
  precise vec4 weighted = mine * weight;
  return weighted;
}

// int8 of the normalised input into sx.
void quantise(uint step, uint layer, uint keeper) {
  uint t = gl_LocalInvocationIndex, columns = shares[step].columns, count = columns / 4u, blocks = (count + 31u) / 32u;
  SharedQuads x = SharedQuads(input_of(step, layer));
  FloatQuads norm = FloatQuads(place(step, field_norm, layer));
  precise vec4 weighted[2];
  weighted[0] = take_in(x, norm, t, count, keeper);
  uint largest = floatBitsToUint(greatest(weighted[0]));
  weighted[1] = vec4(0.0);
  if (step == 4u) {
    weighted[1] = take_in(x, norm, t + 1024u, count, 1u);
    largest = max(largest, floatBitsToUint(greatest(weighted[1])));
  }
  largest = subgroupMax(largest);
  if (lane == 0u) atomicMax(shared_max[turn], largest);
  barrier();
  stamp();
  if (subgroupAll(sub == 0u)) {  // one subgroup: thirty-two would wait for each other's instructions
    float low = lane < blocks ? block_sums[lane] : 0.0, high = lane + 32u < blocks ? block_sums[lane + 32u] : 0.0;
    precise float sum = low + high;
    sum = butterfly(sum);
    precise float mean = sum / float(columns) + eps;
    precise float r = 1.0 / sqrt(mean);
    precise float m = max(uintBitsToFloat(shared_max[turn]) * r, 1e-5);
    precise float s = 127.0 / m;
    precise float factor = m / 127.0;
    if (lane == 0u) scaling = vec3(r, s, factor);
  } else if (t < 160u) {
    // The last product's sums have been read.
    partial[(turn ^ 1u) * 128u + t - 32u] = 0;
    if (t == 32u) {
      shared_sum[turn ^ 1u] = 0;
      shared_max[turn ^ 1u] = 0u;
    }
  }
  barrier();
  int total = 0;
  float r = scaling.x, s = scaling.y;
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    if (i == 0u || step == 4u) {
      uint quad = t + i * workgroup_size;
      precise vec4 scaled = (weighted[i] * r) * s;
      ivec4 q = ivec4(roundEven(scaled));  // at most 127 and a rounding error
      int word = bitfieldInsert(bitfieldInsert(bitfieldInsert(q.x, q.y, 8, 8), q.z, 16, 8), q.w, 24, 8);
      total += dotPacked4x8EXT(word, 0x01010101);
      if (quad < count) sx[quad / 4u][quad % 4u] = uint(word);
    }
  }
  total = subgroupAdd(total);
  if (lane == 0u) atomicAdd(shared_sum[turn], total);
  barrier();
}

void accumulate(inout ivec4 r, inout ivec4 r4, inout ivec4 r16, inout ivec4 r64, uvec4 words, uvec4 x) {
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    uint v = words[j];
    r[j] += dotPacked4x8EXT(v & 0x03030303u, int(x.x));
    r4[j] += dotPacked4x8EXT(v & 0x0c0c0c0cu, int(x.y));
    r16[j] += dotPacked4x8EXT(v & 0x30303030u, int(x.z));
    r64[j] += dotPacked4x8EXT(v & 0xc0c0c0c0u, int(x.w));
  }
}

// Sums of a task's four rows into partial.
void add_up(ivec4 r, uint g, bool wanted) {
  ivec2 u = ((lane & 16u) != 0u ? r.zw : r.xy) + subgroupShuffleXor((lane & 16u) != 0u ? r.xy : r.zw, 16u);
  int q = ((lane & 8u) != 0u ? u.y : u.x) + subgroupShuffleXor((lane & 8u) != 0u ? u.x : u.y, 8u);
  q += subgroupShuffleXor(q, 4u);
  q += subgroupShuffleXor(q, 2u);
  q += subgroupShuffleXor(q, 1u);
  uint row = g * 4u + (lane >> 4) * 2u + ((lane >> 3) & 1u);
  if ((lane & 7u) == 0u && wanted) atomicAdd(partial[turn * 128u + row], q);
}
void multiply(uint step) {
  step_share share = shares[step];
  uvec4 task = task_of(share, 0u);
  ivec4 r = ivec4(0), r4 = ivec4(0), r16 = ivec4(0), r64 = ivec4(0);
  if (step == 2u) {  // the product behind the attention: its weights are not in w
    accumulate(r, r4, r16, r64, w_after, sx[min(task.z + lane, widest / 16u - 1u)]);
  } else {
    [[unroll]] for (uint i = 0u; i < loads; ++i)
      if (i * 32u < share.part) accumulate(r, r4, r16, r64, w[i], sx[min(task.z + lane + i * 32u, widest / 16u - 1u)]);
  }
  add_up(r + (r4 >> 2) + (r16 >> 4) + (r64 >> 6), task.w, task.y != 0u);
  barrier();
}

// A number may not look like nothing.
vec4 something(vec4 v) { return mix(v, vec4(uintBitsToFloat(0x7fc00000u)), isnan(v)); }

void store_key(Words cache, uint kv_head, uint position, uint channel, vec2 pair) {
  uint element = (((kv_head * octets_of_context + position / 8u) * chunks + channel / 8u) * 8u + position % 8u) * 8u + channel % 8u;
  cache.at[element / 2u] = pack_halves(pair.x, pair.y);
}

void rope_cache(uint step, uint layer, uint group, vec4 y) {
  uint position = shared_position;
  uint first = 4u * group, head = first / head_dim, p = (first % head_dim) / 2u;
  vec2 low = y.xz, high = y.yw;
  if (first < q_size + kv_size) {
    vec2 a = rotation[p], b = rotation[p + 1u];
    vec2 sine = vec2(a.x, b.x), cosine = vec2(a.y, b.y);
    precise vec2 turned_low = low * cosine - high * sine, turned_high = high * cosine + low * sine;
    low = turned_low;
    high = turned_high;
  }
  if (first >= q_size) {
    uint low_word = pack_halves(low.x, low.y), high_word = pack_halves(high.x, high.y);
    low = unpackHalf2x16(low_word);
    high = unpackHalf2x16(high_word);
    if (position < context) {
      if (first < q_size + kv_size) {
        Words keys = Words(place(step, field_keys, layer));
        store_key(keys, head - heads, position, p, low);
        store_key(keys, head - heads, position, p + head_dim / 2u, high);
      } else {
        Words values = Words(place(step, field_values, layer));
        uint at = ((head - heads - kv_heads) * context + position) * head_dim + p;
        values.at[at / 2u] = low_word;
        values.at[(at + head_dim / 2u) / 2u] = high_word;
      }
    }
  }
  uint at = (head * head_dim + p) / 2u;
  SharedPairs out_ = SharedPairs(place(step, field_output) + generation(layer)), old = SharedPairs(place(step, field_output) + generation(layer + 1u));
  vec4 both = something(vec4(low, high));
  out_.at[at] = both.xy;
  out_.at[at + head_dim / 4u] = both.zw;
  old.at[at] = uintBitsToFloat(uvec2(nothing));
  old.at[at + head_dim / 4u] = uintBitsToFloat(uvec2(nothing));
}

// Keys and values of this subgroup's octets of a span.
void fetch_octets(uint step, uint layer, uint head, uint span, uint count) {
  uint kv_head = head / (heads / kv_heads);
  WordQuads keys = WordQuads(place(step, field_keys, layer));
  WordPairs values = WordPairs(place(step, field_values, layer));
  [[unroll]] for (uint o = 0u; o < octets; ++o) {
    uint octet = span * 32u + sub + o * subgroups;
    bool here = octet * 8u < count;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uint chunk = (lane >> 3) + 4u * i;
      key_words[o * 4u + i] = uvec4(0u);
      if (here && 4u * i < chunks) key_words[o * 4u + i] = keys.at[((kv_head * octets_of_context + octet) * chunks + min(chunk, chunks - 1u)) * 8u + (lane & 7u)];
    }
    [[unroll]] for (uint j = 0u; j < 8u; ++j) {
      value_words[o * 8u + j] = uvec2(0u);
      if (here) value_words[o * 8u + j] = values.at[(kv_head * context + min(octet * 8u + j, context - 1u)) * quads + min(lane, quads - 1u)];
    }
  }
}

// Maximum, total and sums of a span; the sums of channel quad sub * 8 + lane % 8 in every invocation of the first subgroups.
vec4 compute_span(uint span, uint count, out vec2 weight) {
  float score[octets];
  [[unroll]] for (uint o = 0u; o < octets; ++o) {
    uint octet = span * 32u + sub + o * subgroups, own = octet * 8u + (lane & 7u);
    score[o] = minus_infinity;
    {
      bool newest = own + 1u == count;
      precise vec4 a = vec4(0.0);
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        uint chunk = (lane >> 3) + 4u * i;
        if (chunk < chunks) {
          uvec4 words = key_words[o * 4u + i];
          vec4 low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y)), high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
          if (newest) {
            low = fresh[quads + 2u * chunk];
            high = fresh[quads + 2u * chunk + 1u];
          }
          precise vec4 low_products = fresh[2u * chunk] * low;
          a = a + low_products;
          precise vec4 high_products = fresh[2u * chunk + 1u] * high;
          a = a + high_products;
        }
      }
      precise float sum = (a.x + a.y) + (a.z + a.w);
      sum = sum + subgroupShuffleXor(sum, 8u);
      sum = sum + subgroupShuffleXor(sum, 16u);
      precise float scaled = sum * (1.0 / sqrt(float(head_dim)));
      score[o] = own < count ? scaled : minus_infinity;
    }
    float m = subgroupMax(score[o]);
    if (lane == 0u) octet_maxima[sub + o * subgroups] = m;
  }
  barrier();
  float m = subgroupMax(octet_maxima[lane]);
  [[unroll]] for (uint o = 0u; o < octets; ++o) {
    uint octet = span * 32u + sub + o * subgroups, first = octet * 8u, own = first + (lane & 7u);
    precise vec4 acc = vec4(0.0);
    precise float total = 0.0;
    {
      precise float below = score[o] - m;
      float p = own < count ? canonical_exp(own < count ? below : 0.0) : 0.0;
      total = p + subgroupShuffleXor(p, 4u);
      total = total + subgroupShuffleXor(total, 2u);
      total = total + subgroupShuffleXor(total, 1u);
      [[unroll]] for (uint j = 0u; j < 8u; ++j) {
        float pj = subgroupShuffle(p, j);
        uvec2 words = value_words[o * 8u + j];
        vec4 v = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
        if (first + j + 1u == count) v = fresh[2u * quads + min(lane, quads - 1u)];
        if (first + j >= count) v = vec4(0.0);
        precise vec4 products = pj * v;
        acc = acc + products;
      }
    }
    if (lane < quads) sums_of[(sub + o * subgroups) * quads + lane] = acc;
    if (lane == 0u) octet_sums[sub + o * subgroups] = total;
  }
  barrier();
  precise vec4 s = vec4(0.0);
  precise float l = 0.0;
  if (sub * 8u < quads) {
    uint g = lane >> 3, c = sub * 8u + (lane & 7u);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      s = s + sums_of[(8u * g + i) * quads + c];
      l = l + octet_sums[8u * g + i];
    }
    s = s + subgroupShuffleXor(s, 8u);
    s = s + subgroupShuffleXor(s, 16u);
    l = l + subgroupShuffleXor(l, 8u);
    l = l + subgroupShuffleXor(l, 16u);
  }
  weight = vec2(m, l);
  return s;
}

void await_fresh(uint step, uint layer, uint head) {
  uint t = gl_LocalInvocationIndex, which = t / quads, kv_head = head / (heads / kv_heads);
  uint from = which == 0u ? head : which == 1u ? heads + kv_head : heads + kv_heads + kv_head;
  vec4 v = await1(SharedQuads(place(step, field_input) + generation(layer)), from * quads + t % quads, t < 3u * quads);
  stamp();
  if (t < 3u * quads) fresh[t] = v;
  barrier();
}

void store_copies(uint step, uint layer, uint quad, vec4 v) {
  for (uint copy = lane >> 3; copy < copies; copy += 4u) {
    SharedQuads(place(step, field_output) + generation(layer) + uint64_t(copy * copy_bytes)).at[quad] = something(v);
    SharedQuads(place(step, field_output) + generation(layer + 1u) + uint64_t(copy * copy_bytes)).at[quad] = uintBitsToFloat(uvec4(nothing));
  }
}

// The attention's steps: task i is span i / heads of head i % heads; the workgroup of span 0 merges a head's spans.
void attention(uint step, uint layer) {
  uint count = min(shared_position + 1u, context);
  uint t = gl_LocalInvocationIndex, spans = (count + 255u) / 256u;
  bool first_subgroups = sub * 8u < quads && lane < 8u;
  uint channel = sub * 8u + (lane & 7u);
  SharedQuads out_ = SharedQuads(place(step, field_output) + generation(layer)), old = SharedQuads(place(step, field_output) + generation(layer + 1u));
  vec4 nothings = uintBitsToFloat(uvec4(nothing));
  vec4 merged = vec4(0.0);
  float maximum = 0.0, total = 0.0;
  for (uint task = gl_WorkGroupID.x; subgroupAll(task < heads * spans); task += workgroups) {
    uint head = task % heads, span = task / heads;
    if (task != gl_WorkGroupID.x) barrier();
    fetch_octets(step, layer, head, span, count);
    await_fresh(step, layer, head);
    vec2 weight;
    vec4 s = compute_span(span, count, weight);
    if (spans == 1u) {
      if (sub * 8u < quads) {
        precise vec4 result = s / weight.y;
        store_copies(step, layer, head * quads + channel, result);
      }
    } else if (span != 0u) {
      uint place_ = partials_at / 16u + (head * most_spans + span) * partial_quads;
      if (first_subgroups) out_.at[place_ + channel] = something(s);
      if (t == 0u) out_.at[place_ + quads] = something(vec4(weight, 0.0, 0.0));
      if (first_subgroups) old.at[place_ + channel] = nothings;
      if (t == 0u) old.at[place_ + quads] = nothings;
    } else {
      merged = s;
      maximum = weight.x;
      total = weight.y;
    }
  }
  if (spans > 1u && gl_WorkGroupID.x < heads) {
    uint head = gl_WorkGroupID.x;
    barrier();
    for (uint round = 1u; round < spans; round += subgroups) {
      uint own = round + sub, place_ = partials_at / 16u + (head * most_spans + own) * partial_quads;
      vec4 s = await1(out_, place_ + min(lane, quads - 1u), own < spans);
      vec4 weight = await1(out_, place_ + quads, own < spans);
      if (lane < quads) sums_of[sub * quads + lane] = s;
      if (lane == 0u) { octet_maxima[sub] = weight.x; octet_sums[sub] = weight.y; }
      barrier();
      if (sub * 8u < quads)
        [[dont_unroll]] for (uint b = 0u; b < min(subgroups, spans - round); ++b) {
          float now = max(maximum, octet_maxima[b]);
          precise float old_distance = maximum - now, new_distance = octet_maxima[b] - now;
          float f = canonical_exp(old_distance), g = canonical_exp(new_distance);
          precise float sum = total * f + octet_sums[b] * g;
          precise vec4 sums = merged * f + sums_of[b * quads + channel] * g;
          total = sum;
          merged = sums;
          maximum = now;
        }
      barrier();
    }
    if (sub * 8u < quads) {
      precise vec4 result = merged / total;
      store_copies(step, layer, head * quads + channel, result);
    }
  }
  if (sub * 8u < quads) memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
}

float activated(float g, float up) {
  precise float y;
  if (gate == 1u) { y = (g / (1.0 + canonical_exp(-g))) * up; }
  else { float p = max(g, 0.0); y = (p * p) * up; }
  return y;
}

// Rows of this workgroup: scale, then what the step does with them.
void finish(uint step, uint layer) {
  step_share s = shares[step];
  uint t = lane;
  if (sub < copies && t < s.groups) {
    uint64_t copy = uint64_t(sub * copy_bytes);
    uint row = turn * 128u + 4u * t;
    ivec4 sums = ivec4(partial[row], partial[row + 1u], partial[row + 2u], partial[row + 3u]) - shared_sum[turn];
    uint group = s.first_group + t, first = (layer * steps + step) * 3u;
    vec4 scale = vec4(scales_of[first]);
    if (step == 3u) scale.yw = vec2(scales_of[first + 1u]);
    if (step == 0u && 4u * group >= q_size) scale = vec4(scales_of[first + (4u * group < q_size + kv_size ? 1u : 2u)]);
    precise vec4 y = vec4(sums) * (scaling.z * scale);
    if (step == 0u) {
      if (sub == 0u) rope_cache(step, layer, group, y);
    } else {
      uint64_t at = place(step, field_output) + generation(layer), before = place(step, field_output) + generation(layer + 1u) + copy;
      at += copy;
      if (step == 3u) {
        SharedPairs(at).at[group] = something(vec4(activated(y.x, y.y), activated(y.z, y.w), 0.0, 0.0)).xy;
        SharedPairs(before).at[group] = uintBitsToFloat(uvec2(nothing));
      } else {
        precise vec4 sum = kept_stream[(step == 4u ? 32u : 0u) + lane] + y;
        bool last = step + 1u == steps && layer + 1u == layers;  // the head reads it where the embedding was
        if (last) at = place(0u, field_input);  // every copy the same
        SharedQuads(at).at[group] = last ? sum : something(sum);
        SharedQuads(before).at[group] = uintBitsToFloat(uvec4(nothing));
      }
    }
  }
  if (sub < copies) memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
}

void main() {
  lane = gl_SubgroupInvocationID;
  sub = gl_SubgroupID;
  gave_up = false;
#if CLOCK
  stamp_count = 0u;
#endif
  uint t = gl_LocalInvocationIndex;
  if (t < steps * 16u) places[t] = table.at[t];
  uint position = state.at[state_position];
  phase = (counter.at[0] * layers) & 1u;
  if (t < 256u) partial[t] = 0;
  if (t < 2u) {
    shared_max[t] = 0u;
    shared_sum[t] = 0;
  }
  turn = 0u;
  if (t < head_dim / 2u) rotation[t] = rope_turn(position, t, head_dim, rope_theta);
  barrier();
  uint count = min(position + 1u, context), tasks = heads * ((count + 255u) / 256u);
  if (t < steps) shares[t] = share_of(t);
  if (t == 0u) {
    shared_tasks = tasks;
    shared_position = position;
  }
  for (uint i = t; i < layers * steps * 3u; i += workgroup_size) {
    uint which = i % 3u, step = i / 3u % steps, layer = i / 3u / steps, kind = uint(place(step, field_kind));
    if (kind != kind_attention && (which == 0u || kind == kind_qkv || (kind == kind_gated && which == 1u)))
      scales_of[i] = Floats(place(step, field_scales, layer)).at[which];
  }
  barrier();
  fetch(0u, 0u, 0u, loads);
  [[dont_unroll]] for (uint layer = 0u; layer < layers; ++layer) {
    [[dont_unroll]] for (uint step = 0u; step < steps; ++step) {
      bool attends = subgroupAll(gl_WorkGroupID.x < shared_tasks);
      if (step == 1u) {
        if (!attends) continue;
        stamp();
        attention(step, layer);
        stamp();
        // What the others loaded before.
        if (gl_WorkGroupID.x < heads) ++step;
        fetch_after(2u, layer);
        fetch(3u, layer, 0u, loads);
        stamp();
      } else {
        stamp();
        quantise(step, layer, step == 0u ? 2u : step == 3u ? 4u : 1u);
        stamp();
        multiply(step);
        stamp();
        finish(step, layer);
        stamp();
        turn ^= 1u;
        if (subgroupAll(sub == subgroups - 1u)) {  // this workgroup's share of a norm of the next layer comes into the L2 cache
          uint quad = gl_WorkGroupID.x * 16u + lane;
          if (quad < shares[step].columns / 4u && lane < 16u && layer + 1u < layers && isnan(FloatQuads(place(step, field_norm, layer + 1u)).at[quad].x)) gave_up = true;
        }
        if (step == 0u && attends) continue;
        uint next = step == 0u ? 2u : step == 4u ? 0u : step + 1u, next_layer = step == 4u ? min(layer + 1u, layers - 1u) : layer;
        if (step == 0u) {
          fetch_after(2u, layer);
          fetch(3u, layer, 0u, first_part);
        } else if (step == 2u) {
          fetch(3u, layer, first_part, loads);
        } else {
          fetch(next, next_layer, 0u, loads);
        }
      }
    }
  }
  stamp();
  if (t == 0u) {
    if (gave_up) counter.at[2] = 1u;
    uint before = atomicAdd(counter.at[1], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    if (before + 1u == workgroups) { counter.at[1] = 0u; counter.at[0] += 1u; }
  }
}
