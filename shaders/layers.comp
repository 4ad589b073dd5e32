// SPDX-License-Identifier: MIT
// All layers of a decode pass as one dispatch, for GPUs on which all its workgroups run at once: each stays on its multiprocessor and walks the
// layers' steps. There is no barrier between steps. A vector that crosses workgroups is full of a pattern that no number has when the pass
// begins (plan::sequence::blank_bytes), and its readers wait until each element is something else. What a step needs from memory that others do not
// write (weights, norms, the cache of earlier tokens) is loaded before the wait. No wait is for good: who has waited in vain says so in `progress`,
// all others leave as well, and the last to leave makes the pass's result NaN, from which no token is drawn.
// variant: layers -DWIDE_LOADS=0
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
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 1024;
layout(constant_id = 1) const uint hidden_size = 256;
layout(constant_id = 2) const uint intermediate_size = 1024;
layout(constant_id = 3) const uint layers = 8;
layout(constant_id = 4) const uint parts = 132;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint patience = 1024;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint heads = 4;
layout(constant_id = 9) const uint kv_heads = 2;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const float rope_theta = 500000.0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint gate = 0;
layout(constant_id = 14) const uint heads_together = 1;
layout(constant_id = 15) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;

const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim;
const uint narrow = hidden_size > q_size ? hidden_size : q_size, columns_max = intermediate_size > narrow ? intermediate_size : narrow;
uint columns, rows, epilogue;
#define norm_width columns
#define norm_width_max columns_max
#include "subgroup.glsl"
#include "norm.glsl"
#include "attention.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Addresses { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer SharedWords { volatile devicecoherent uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SharedPairs { volatile devicecoherent vec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer SharedQuads { volatile devicecoherent vec4 at[]; };
layout(push_constant, scalar) uniform Push { Addresses arguments; Words progress, state; };

Words scales, output_, keys, values;
#include "epilogue.glsl"

// kernels::layers: the words of `progress` in use, and places of a layer's arguments.
const uint progress_left = 1u, progress_gave_up = 3u;
const uint argument_count = 21u, argument_keys = 1u, argument_values = 2u, argument_weights = 8u, argument_partials = 20u;

const uint steps = 5u, step_qkv = 0u, step_attention = 1u, step_projection = 2u, step_gated = 3u, step_down = 4u;
// plan/resident.hpp has the same numbers, and chooses shapes for which they suffice.
const uint threads = 1024u, members = threads / 32u;  // of a workgroup: invocations, subgroups
const uint loads = 5u, first_part = 3u;                // quads of weight words of a lane; those of gate and up that are loaded before the attention
const uint octets_of_context = (context + 7u) / 8u, most_spans = (context + span_positions - 1u) / span_positions, partial_quads = quads + 1u;
const uint nothing = 0xffffffffu;                      // no number that arithmetic gives

struct step_share {  // what a product is for this workgroup
  uint columns, first_group, groups, slices, inverse_slices, part;
};
shared step_share shares[steps];
shared uint64_t places[layers * argument_count];
shared uvec4 sx[columns_max / 16u];       // int8 input
shared int partial[2u * 128u];            // sums of the workgroup's rows
shared vec2 rotation[head_dim / 2u];      // sine, cosine
shared float span_totals[32], span_maxima[32];
shared vec4 sums_of[32u * quads];         // attention: sums of values of an octet, or of a span
shared vec4 fresh[3u * quads];            // query, key and value of this position
shared int input_sum[2];
shared uint input_max[2], shared_position;
shared float scales_of[layers * steps * 3u];
shared vec4 kept_stream[64];              // the residual of this workgroup's rows
shared vec3 scaling;                      // 1 / root mean square, 127 / largest, largest / 127
shared bool leaves_last;

uint sub;
uint turn;         // which half of what two products in a row may not share
bool gave_up;
uvec4 w[loads];    // weights of the next product
uvec4 w_after;     // of the product behind the attention
uvec4 key_words[4];
uvec2 value_words[8];

uint64_t place(uint layer, uint argument) { return places[layer * argument_count + argument]; }
uint64_t input_of(uint layer, uint step) { return place(layer, step == step_qkv ? 0u : step + 2u); }
uint64_t output_of(uint layer, uint step) { return place(layer, step + 3u); }
// 0: norm, 1: weight, 2: scales
uint64_t weight_of(uint layer, uint step, uint which) { return place(layer, argument_weights + 3u * (step == step_qkv ? 0u : step - 1u) + which); }

// Computed once: integer divisions take longer than anything else a step does for itself.
step_share share_of(uint step) {
  step_share s;
  uint groups = (step == step_qkv ? q_size + 2u * kv_size : step == step_gated ? 2u * intermediate_size : hidden_size) / 4u;
  s.columns = step == step_projection ? q_size : step == step_down ? intermediate_size : hidden_size;
  // Workgroups that attend at any context have no part in the output projection.
  uint skipped = step == step_projection ? heads : 0u, worker = gl_WorkGroupID.x - skipped, workers = parts - skipped;
  uint tiles = s.columns / 16u, most_groups = (groups + workers - 1u) / workers;
  s.slices = min(members / most_groups, (tiles + 31u) / 32u);
  s.inverse_slices = 65536u / s.slices + 1u;
  s.part = (tiles + s.slices - 1u) / s.slices;
  s.first_group = worker * groups / workers;
  s.groups = gl_WorkGroupID.x < skipped || step == step_attention ? 0u : (worker + 1u) * groups / workers - s.first_group;
  return s;
}

// A subgroup's task: first quad of weight words, their number, the first tile of the input, the group.
uvec4 task_of(step_share s) {
  uint g = (sub * s.inverse_slices) >> 16, slice = sub - g * s.slices, tiles = s.columns / 16u, first = slice * s.part;
  return uvec4((s.first_group + g) * tiles + first, g < s.groups ? min(s.part, tiles - first) : 0u, first, g);
}
// Weights of a product. All is set: a register that may keep its content through the attention would be spilled.
void fetch(uint layer, uint step, uint from, uint to) {
  WordQuads weight = WordQuads(weight_of(layer, step, 1u));
  uvec4 task = task_of(shares[step]);
  [[unroll]] for (uint i = from; i < to; ++i) {
    uint k = lane + i * 32u;
    w[i] = k < task.y ? weight.at[task.x + k] : uvec4(0u);
  }
}
void fetch_after(uint layer) {
  WordQuads weight = WordQuads(weight_of(layer, step_projection, 1u));
  uvec4 task = task_of(shares[step_projection]);
  w_after = lane < task.y ? weight.at[task.x + lane] : uvec4(0u);
}

bool absent(vec4 v) { return any(equal(floatBitsToUint(v), uvec4(nothing))); }

void give_up() {
  gave_up = true;
  SharedWords(progress).at[progress_gave_up] = 1u;
}
// After `patience` turns, or when another one has given up.
bool waits_in_vain(uint tries) {
  return gave_up || tries >= patience || ((tries & 1023u) == 0u && SharedWords(progress).at[progress_gave_up] != 0u);
}

vec4 await1(SharedQuads x, uint quad, bool wanted) {
  vec4 a;
  uint tries = 0u;
  bool waits;
  do {
    a = wanted ? x.at[quad] : vec4(0.0);
    waits = subgroupAny(absent(a));
  } while (waits && !waits_in_vain(++tries));
  if (waits && !gave_up) give_up();
  return a;
}

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
  if (wanted && row < shares[keeper].groups) kept_stream[(keeper == step_down ? 32u : 0u) + row] = mine;
  precise vec4 square = mine * mine;
  precise float sum = (square.x + square.y) + (square.z + square.w);
  sum = butterfly(sum);
  if (lane == 0u && quad / 32u < (columns_max + 127u) / 128u) block_sums[quad / 32u] = sum;
  precise vec4 weighted_ = mine * weight;
  return weighted_;
}

// int8 of the normalised input into sx. keeper: the product that adds to this input, step_attention for none.
void quantise(uint layer, uint step, uint keeper) {
  uint t = gl_LocalInvocationIndex, count = shares[step].columns / 4u, blocks = (count + 31u) / 32u;
  SharedQuads x = SharedQuads(input_of(layer, step));
  FloatQuads norm = FloatQuads(weight_of(layer, step, 0u));
  precise vec4 product[2];
  product[0] = take_in(x, norm, t, count, keeper);
  uint largest = floatBitsToUint(greatest(product[0]));
  product[1] = vec4(0.0);
  if (step == step_down) {
    product[1] = take_in(x, norm, t + threads, count, step_attention);
    largest = max(largest, floatBitsToUint(greatest(product[1])));
  }
  largest = subgroupMax(largest);
  if (lane == 0u) atomicMax(input_max[turn], largest);
  barrier();
  if (subgroupAll(sub == 0u)) {  // one subgroup: thirty-two would wait for each other's instructions
    float low = lane < blocks ? block_sums[lane] : 0.0, high = lane + 32u < blocks ? block_sums[lane + 32u] : 0.0;
    precise float sum = low + high;
    sum = butterfly(sum);
    // Divisors that are constants, as elsewhere: drivers divide by those in another way.
    precise float mean = (step == step_projection ? sum / float(q_size) : step == step_down ? sum / float(intermediate_size) : sum / float(hidden_size)) + eps;
    precise float root = 1.0 / sqrt(mean);
    float r = finite(mean) ? root : not_a_number, m = largest_activation(uintBitsToFloat(input_max[turn]), r);
    precise float s = 127.0 / m;
    if (lane == 0u) scaling = vec3(r, s, grid_step(m, r));
  } else if (t < 160u) {
    // The last product's sums have been read.
    partial[(turn ^ 1u) * 128u + t - 32u] = 0;
    if (t == 32u) {
      input_sum[turn ^ 1u] = 0;
      input_max[turn ^ 1u] = 0u;
    }
  }
  barrier();
  int total = 0;
  float r = scaling.x, s = scaling.y;
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    if (i == 0u || step == step_down) {
      uint quad = t + i * threads;
      precise vec4 scaled = (product[i] * r) * s;
      ivec4 q = ivec4(roundEven(scaled));  // at most 127 and a rounding error
      int word = bitfieldInsert(bitfieldInsert(bitfieldInsert(q.x, q.y, 8, 8), q.z, 16, 8), q.w, 24, 8);
      total += dotPacked4x8EXT(word, 0x01010101);
      if (quad < count) sx[quad / 4u][quad % 4u] = uint(word);
    }
  }
  total = subgroupAdd(total);
  if (lane == 0u) atomicAdd(input_sum[turn], total);
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
  uvec4 task = task_of(share);
  ivec4 r = ivec4(0), r4 = ivec4(0), r16 = ivec4(0), r64 = ivec4(0);
  if (step == step_projection) {  // its weights are not in w
    accumulate(r, r4, r16, r64, w_after, sx[min(task.z + lane, columns_max / 16u - 1u)]);
  } else {
    [[unroll]] for (uint i = 0u; i < loads; ++i)
      if (i * 32u < share.part) accumulate(r, r4, r16, r64, w[i], sx[min(task.z + lane + i * 32u, columns_max / 16u - 1u)]);
  }
  add_up(r + (r4 >> 2) + (r16 >> 4) + (r64 >> 6), task.w, task.y != 0u);
  barrier();
}

// A number may not look like nothing.
vec4 something(vec4 v) { return mix(v, vec4(not_a_number), isnan(v)); }

void store_half_pair(uint64_t cache, uint element, uint pair) { Words(cache).at[element / 2u] = pair; }

// Four rows of q, k or v: channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2 of a head. Keys and values go to those that attend as well.
void hand_on(uint layer, uint group, vec4 y) {
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
        uint element = key_index(head - heads, position, p / 8u) * 8u + p % 8u, apart = head_dim / 16u * 64u;  // between chunks of 8 channels: 64
        store_half_pair(place(layer, argument_keys), element, low_word);
        store_half_pair(place(layer, argument_keys), element + apart, high_word);
      } else {
        uint element = ((head - heads - kv_heads) * context + position) * head_dim + p;
        store_half_pair(place(layer, argument_values), element, low_word);
        store_half_pair(place(layer, argument_values), element + head_dim / 2u, high_word);
      }
    }
  }
  uint at = (head * head_dim + p) / 2u;
  SharedPairs out_ = SharedPairs(output_of(layer, step_qkv));
  vec4 both = something(vec4(low, high));
  out_.at[at] = both.xy;
  out_.at[at + head_dim / 4u] = both.zw;
}

// Keys and values of this subgroup's octet of a span.
void fetch_octet(uint layer, uint head, uint span, uint count) {
  uint kv_head = head / (heads / kv_heads), octet = span * 32u + sub;
  WordQuads keys = WordQuads(place(layer, argument_keys));
  WordPairs values = WordPairs(place(layer, argument_values));
  bool here = octet * 8u < count;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uint chunk = (lane >> 3) + 4u * i;
    key_words[i] = uvec4(0u);
    if (here && 4u * i < chunks) key_words[i] = keys.at[((kv_head * octets_of_context + octet) * chunks + min(chunk, chunks - 1u)) * 8u + (lane & 7u)];
  }
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    value_words[j] = uvec2(0u);
    if (here) value_words[j] = values.at[(kv_head * context + min(octet * 8u + j, context - 1u)) * quads + min(lane, quads - 1u)];
  }
}

// Maximum, total and sums of a span; the sums of channel quad sub * 8 + lane % 8 in every invocation of the first subgroups.
vec4 compute_span(uint span, uint count, out vec2 weight) {
  uint first = (span * 32u + sub) * 8u, own = first + (lane & 7u);
  bool newest = own == shared_position;
  precise vec4 a = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    uint chunk = (lane >> 3) + 4u * i;
    if (chunk < chunks) {
      uvec4 words = key_words[i];
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
  float score = own < count ? scaled_score(sum) : minus_infinity;
  float m = subgroupMax(score);
  if (lane == 0u) span_maxima[sub] = m;
  barrier();
  m = subgroupMax(span_maxima[lane]);
  precise vec4 acc = vec4(0.0);
  precise float total = 0.0;
  precise float below = score - m;
  float p = own < count ? canonical_exp(own < count ? below : 0.0) : 0.0;
  total = p + subgroupShuffleXor(p, 4u);
  total = total + subgroupShuffleXor(total, 2u);
  total = total + subgroupShuffleXor(total, 1u);
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    float pj = subgroupShuffle(p, j);
    uvec2 words = value_words[j];
    vec4 v = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    if (first + j == shared_position) v = fresh[2u * quads + min(lane, quads - 1u)];
    if (first + j >= count) v = vec4(0.0);
    precise vec4 products = pj * v;
    acc = acc + products;
  }
  if (lane < quads) sums_of[sub * quads + lane] = acc;
  if (lane == 0u) span_totals[sub] = total;
  barrier();
  precise vec4 s = vec4(0.0);
  precise float l = 0.0;
  if (sub * 8u < quads) {
    uint g = lane >> 3, c = sub * 8u + (lane & 7u);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      s = s + sums_of[(8u * g + i) * quads + c];
      l = l + span_totals[8u * g + i];
    }
    s = s + subgroupShuffleXor(s, 8u);
    s = s + subgroupShuffleXor(s, 16u);
    l = l + subgroupShuffleXor(l, 8u);
    l = l + subgroupShuffleXor(l, 16u);
  }
  weight = vec2(m, l);
  return s;
}

void await_fresh(uint layer, uint head) {
  uint t = gl_LocalInvocationIndex, which = t / quads, kv_head = head / (heads / kv_heads);
  uint from = which == 0u ? head : which == 1u ? heads + kv_head : heads + kv_heads + kv_head;
  vec4 v = await1(SharedQuads(input_of(layer, step_attention)), from * quads + t % quads, t < 3u * quads);
  if (t < 3u * quads) fresh[t] = v;
  barrier();
}

void store_attended(uint layer, uint quad, vec4 v) {
  if (lane < 8u) SharedQuads(output_of(layer, step_attention)).at[quad] = something(v);
}

// Task i is span i / heads of head i % heads; the workgroup of span 0 merges a head's spans.
void attention(uint layer) {
  uint count = min(shared_position + 1u, context);
  uint t = gl_LocalInvocationIndex, spans = (count + span_positions - 1u) / span_positions;
  uint channel = sub * 8u + (lane & 7u);
  bool first_subgroups = sub * 8u < quads && lane < 8u;
  SharedQuads partials = SharedQuads(place(layer, argument_partials));
  vec4 merged = vec4(0.0);
  vec2 totals = vec2(0.0);
  for (uint task = gl_WorkGroupID.x; subgroupAll(task < heads * spans); task += parts) {
    uint head = task % heads, span = task / heads;
    if (task != gl_WorkGroupID.x) barrier();
    fetch_octet(layer, head, span, count);
    await_fresh(layer, head);
    vec2 weight;
    vec4 s = compute_span(span, count, weight);
    if (spans == 1u) {
      if (sub * 8u < quads) {
        precise vec4 result = s / weight.y;
        store_attended(layer, head * quads + channel, result);
      }
    } else if (span != 0u) {
      uint first = (head * most_spans + span) * partial_quads;
      if (first_subgroups) partials.at[first + channel] = something(s);
      if (t == 0u) partials.at[first + quads] = something(vec4(weight, 0.0, 0.0));
    } else {
      merged = s;
      totals = weight;
    }
  }
  if (spans > 1u && gl_WorkGroupID.x < heads) {
    uint head = gl_WorkGroupID.x;
    barrier();
    for (uint round = 1u; round < spans; round += members) {
      uint own = round + sub, first = (head * most_spans + own) * partial_quads;
      vec4 s = await1(partials, first + min(lane, quads - 1u), own < spans);
      vec4 weight = await1(partials, first + quads, own < spans);
      if (lane < quads) sums_of[sub * quads + lane] = s;
      if (lane == 0u) { span_maxima[sub] = weight.x; span_totals[sub] = weight.y; }
      barrier();
      if (sub * 8u < quads)
        [[dont_unroll]] for (uint b = 0u; b < min(members, spans - round); ++b) {
          vec2 f = merge_factors(totals, vec2(span_maxima[b], span_totals[b]));
          merged = merged_sums(merged, sums_of[b * quads + channel], f);
        }
      barrier();
    }
    if (sub * 8u < quads) {
      precise vec4 result = merged / totals.y;
      store_attended(layer, head * quads + channel, result);
    }
  }
  if (sub * 8u < quads) memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
}

// Rows of this workgroup: scale, then what the step does with them.
void finish_rows(uint layer, uint step) {
  step_share s = shares[step];
  if (subgroupAll(sub != 0u)) return;
  if (lane < s.groups) {
    uint row = turn * 128u + 4u * lane;
    ivec4 sums = ivec4(partial[row], partial[row + 1u], partial[row + 2u], partial[row + 3u]) - input_sum[turn];
    uint group = s.first_group + lane, first = (layer * steps + step) * 3u;
    vec4 scale = vec4(scales_of[first]);
    if (step == step_gated) scale.yw = vec2(scales_of[first + 1u]);
    if (step == step_qkv && 4u * group >= q_size) scale = vec4(scales_of[first + (4u * group < q_size + kv_size ? 1u : 2u)]);
    precise vec4 y = vec4(sums) * (scaling.z * scale);
    if (step == step_qkv) {
      hand_on(layer, group, y);
    } else if (step == step_gated) {
      SharedPairs(output_of(layer, step)).at[group] = something(vec4(gated(y.x, y.y), gated(y.z, y.w), 0.0, 0.0)).xy;
    } else {
      precise vec4 sum = kept_stream[(step == step_down ? 32u : 0u) + lane] + y;
      SharedQuads(output_of(layer, step)).at[group] = something(sum);
    }
  }
  memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
}

void main() {
  lane = gl_SubgroupInvocationID;
  sub = gl_SubgroupID;
  gave_up = false;
  uint t = gl_LocalInvocationIndex;
  for (uint i = t; i < layers * argument_count; i += workgroup_size) places[i] = arguments.at[i];
  uint position = state.at[state_position];
  if (t < 256u) partial[t] = 0;
  if (t < 2u) {
    input_max[t] = 0u;
    input_sum[t] = 0;
  }
  turn = 0u;
  if (t < head_dim / 2u) rotation[t] = rope_turn(position, t, head_dim, rope_theta);
  if (t < steps) shares[t] = share_of(t);
  if (t == 0u) shared_position = position;
  uint attending = heads * ((min(position + 1u, context) + span_positions - 1u) / span_positions);
  barrier();
  for (uint i = t; i < layers * steps * 3u; i += workgroup_size) {
    uint which = i % 3u, step = i / 3u % steps, layer = i / 3u / steps;
    if (step != step_attention && (which == 0u || step == step_qkv || (step == step_gated && which == 1u)))
      scales_of[i] = Floats(weight_of(layer, step, 2u)).at[which];
  }
  barrier();
  // What the rest is written for; the plan asks for nothing else.
  uint end = layers;
  if (workgroup_size != threads || subgroup_width != 32u || heads_together != 1u || cache_element != element_f16) {
    end = 0u;
    give_up();
  }
  fetch(0u, step_qkv, 0u, loads);
  [[dont_unroll]] for (uint layer = 0u; layer < end; ++layer) {
    [[dont_unroll]] for (uint step = 0u; step < steps; ++step) {
      bool attends = subgroupAll(gl_WorkGroupID.x < attending);
      if (step == step_attention) {
        if (!attends) continue;
        attention(layer);
        // What the others loaded before.
        if (gl_WorkGroupID.x < heads) ++step;
        fetch_after(layer);
        fetch(layer, step_gated, 0u, loads);
      } else {
        quantise(layer, step, step == step_qkv ? step_projection : step == step_gated ? step_down : step_attention);
        multiply(step);
        finish_rows(layer, step);
        turn ^= 1u;
        if (subgroupAll(sub == members - 1u)) {  // this workgroup's share of a norm of the next layer comes into the L2 cache
          uint quad = gl_WorkGroupID.x * 16u + lane;
          if (quad < shares[step].columns / 4u && lane < 16u && layer + 1u < layers && absent(FloatQuads(weight_of(layer + 1u, step, 0u)).at[quad])) give_up();
        }
        if (step == step_qkv && attends) continue;
        if (step == step_qkv) {
          fetch_after(layer);
          fetch(layer, step_gated, 0u, first_part);
        } else if (step == step_projection) {
          fetch(layer, step_gated, first_part, loads);
        } else if (step == step_gated) {
          fetch(layer, step_down, 0u, loads);
        } else {
          fetch(min(layer + 1u, layers - 1u), step_qkv, 0u, loads);
        }
      }
    }
  }
  barrier();
  if (t == 0u) {
    uint left = atomicAdd(progress.at[progress_left], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease) + 1u;
    bool last = left == gl_NumWorkGroups.x;
    if (last) progress.at[progress_left] = 0u;
    leaves_last = last && SharedWords(progress).at[progress_gave_up] != 0u;
  }
  barrier();
  if (leaves_last)
    for (uint i = t; i < hidden_size / 4u; i += workgroup_size) FloatQuads(output_of(layers - 1u, step_down)).at[i] = vec4(not_a_number);
}
