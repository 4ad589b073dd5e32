// SPDX-License-Identifier: MIT
// All layers of a decode pass in one resident dispatch, for GPUs on which all its workgroups run at once: each
// workgroup stays on its multiprocessor and computes the steps of one layer after the other. There is no barrier
// between steps. A vector that crosses workgroups holds the unwritten pattern, which no number has, when the pass
// begins (plan::sequence::blank_bytes); readers wait until each element differs from it. Data that other workgroups do
// not write (weights, norms, the cache of earlier tokens) is loaded before the wait. No wait is endless: a workgroup
// that times out sets a flag in `progress`, all others leave as well, and the last to leave makes the pass's result
// NaN, from which no token is drawn. NVIDIA's driver makes a subgroup operation slow (some 100 cycles, and registers
// spilled around a call) where it cannot prove that all lanes reach it: in a branch or loop on a loaded or voted value.
// So conditions around them depend on constants and the workgroup's number only, and waits have none.
// variant: layers -DWIDE_LOADS=0 -DLONG_CONTEXTS=0
// variant: layers_long -DWIDE_LOADS=0 -DLONG_CONTEXTS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
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
layout(constant_id = 6) const uint spin_limit = 1024;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint heads = 4;
layout(constant_id = 9) const uint kv_heads = 2;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const float rope_theta = 500000.0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint heads_together = 1;
layout(constant_id = 14) const uint subgroup_width = 0;
layout(constant_id = 15) const uint ffns_before = 0;  // FFNs of a layer before attention, 0 or 1; after it, 1 or 2
layout(constant_id = 16) const uint ffns_after = 1;
layout(local_size_x_id = 0) in;

const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim;
const uint narrow = hidden_size > q_size ? hidden_size : q_size,
           columns_max = intermediate_size > narrow ? intermediate_size : narrow;
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
layout(push_constant, scalar) uniform Push {
  Addresses arguments;
  Words progress, state;
};

Words scales, output_, keys, values;
#include "epilogue.glsl"

// kernels::layers: the words of `progress` in use, and indices of a layer's arguments.
const uint progress_left = 1u, progress_timed_out = 3u;
const uint further_ffns = ffns_before + ffns_after - 1u;
const uint argument_count = 21u + 8u * further_ffns, argument_keys = 1u, argument_values = 2u, argument_weights = 8u,
           argument_partials = 20u;

// The steps of an FFN before attention and of a second FFN after it have the last numbers.
const uint steps = 5u + 2u * further_ffns, products = steps - 1u, step_qkv = 0u, step_attention = 1u,
           step_projection = 2u, step_gated = 3u, step_down = 4u, step_early_gated = 5u, step_early_down = 6u,
           step_late_gated = 7u, step_late_down = 8u;
// plan/resident.hpp has the same numbers, and chooses shapes for which they suffice.
const uint threads = 1024u, members = threads / 32u;  // per workgroup: invocations, subgroups
const uint loads = 5u;                                // quads of weight words per lane
const uint finisher = members - 1u;  // the subgroup that finishes the rows; mostly it has no task itself
const uint octets_of_context = (context + 7u) / 8u, most_spans = (context + span_positions - 1u) / span_positions,
           partial_quads = quads + 1u;
const uint merged_together =
    6u;  // spans; about the number that workgroups compute at once on an H200 at BitNet 2B's 20 heads
const uint unwritten = 0xffffffffu;  // the unwritten pattern: no arithmetic result has these bits

struct step_share {  // a workgroup's share of a product
  uint columns, first_group, groups, slices, inverse_slices, part;
};
shared step_share shares[steps];
shared uvec2 tasks[products * members];  // task_of each subgroup in each product
shared uint64_t addresses[layers * argument_count];
// int8 input; lanes after a task's last tile read the words after it and multiply them by weights of 0
#if LONG_CONTEXTS
const uint sharing = 4u;  // heads that share keys and values
// In attention: sums of values of octets of two heads, [2, octets, quads], or of spans, [spans, quads], as floats.
const uint input_quads = columns_max / 16u + 48u;
shared uvec4 sx[input_quads > 64u * quads ? input_quads : 64u * quads];
#else
shared uvec4 sx[columns_max / 16u + 48u];
#endif
shared int partial[members * 4u];   // sums of a subgroup's four rows over its slice of the columns
shared ivec4 totals[members / 4u];  // sums of the values that subgroups put into sx
shared vec4 subgroup_largest[members / 4u];
shared vec4 sums_by_lane[16];  // sums of squares: blocks b, b + 16, b + 8, b + 24 are in quad b % 8, blocks from 32 on
                               // in the eight quads after
shared vec2 rotation[head_dim / 2u];  // sine, cosine
#if LONG_CONTEXTS
shared vec4 maxima_of[sharing * 8u], totals_of[sharing * 8u];  // of octets: [heads, octets]
shared vec4 factors_of[32u];         // of merged spans: of the sum so far, of the span; the span's total
shared vec4 fresh[sharing * quads];  // queries of this position
#else
shared float span_totals[32], span_maxima[32];
shared vec4 sums_of[32u * quads];  // attention: sums of values of an octet, or of a span
shared vec4 fresh[quads];          // query of this position
#endif
shared uvec2 fresh_words[2u * quads];  // key and value of this position, as the caches store them
shared uint shared_position;
shared float scales_of[layers * products * 3u];
shared vec4 kept_stream[64u + 32u * further_ffns];  // the residual of this workgroup's rows
shared vec3 scaling;                                // 1 / root mean square, 127 / largest, largest / 127
shared bool leaves_last;

uint sub;
bool timed_out;
uvec4 w[loads];              // weights of the next product
uvec4 w_after;               // weights of the product after attention
uint touched, touched_norm;  // words of the next weights and norm
uvec4 key_words[4];
uvec2 value_words[8];

uint64_t address_of(uint layer, uint argument) { return addresses[layer * argument_count + argument]; }
bool is_gated(uint step) { return step >= step_gated && (step & 1u) != 0u; }
bool is_down(uint step) { return step >= step_down && (step & 1u) == 0u; }
// Argument indices of an FFN other than the one that every layer has: gated values, the stream after it, weights.
uint further_argument(uint step) { return 21u + (step >= step_late_gated ? 8u * ffns_before : 0u); }
uint64_t output_of(uint layer, uint step) {
  return address_of(layer, step <= step_down ? step + 3u : further_argument(step) + 1u - (step & 1u));
}
uint64_t input_of(uint layer, uint step) {
  if (step == step_qkv && ffns_before != 0u) return output_of(layer, step_early_down);
  if (step == step_qkv || step == step_early_gated) return address_of(layer, 0u);
  return output_of(layer, step == step_late_gated ? step_down : step - 1u);
}
// 0: norm, 1: weight, 2: scales
uint product_of(uint step) {
  return step == step_qkv ? 0u : step < step_late_gated ? step - 1u : products + step - step_late_down - 1u;
}
uint step_of(uint product) {
  uint step = product == 0u ? step_qkv : product + 1u;
  return step > step_down && ffns_before == 0u ? step + 2u : step;
}
uint64_t weight_of(uint layer, uint step, uint which) {
  if (step > step_down) return address_of(layer, further_argument(step) + 5u - 3u * (step & 1u) + which);
  return address_of(layer, argument_weights + 3u * product_of(step) + which);
}
// The step that ends the sublayer which `step` begins: it adds its result to the input of `step`.
uint end_of_half(uint step) { return step == step_qkv ? step_projection : is_gated(step) ? step + 1u : step_attention; }
uint kept_of(uint end) {
  return end == step_projection ? 0u : end == step_down ? 32u : end == step_early_down ? 64u : 32u + 32u * further_ffns;
}
uint share_at(uint step) { return step < step_late_gated ? step : steps + step - step_late_down - 1u; }

uint groups_in(uint step) {
  return (step == step_qkv ? q_size + 2u * kv_size : is_gated(step) ? 2u * intermediate_size : hidden_size) / 4u;
}
uint tiles_in(uint step) {
  return (step == step_projection ? q_size : is_down(step) ? intermediate_size : hidden_size) / 16u;
}
// The slices into which a group's columns are divided, one subgroup each, and the tiles of a slice.
uint slices_of(uint step) {
  uint workers = parts - (step == step_projection ? heads : 0u);
  return min(members / ((groups_in(step) + workers - 1u) / workers), (tiles_in(step) + 31u) / 32u);
}
uint part_of(uint step) { return (tiles_in(step) + slices_of(step) - 1u) / slices_of(step); }

// Computed once: integer divisions take longer than all other index arithmetic of a step.
step_share share_of(uint step) {
  step_share s;
  uint groups = groups_in(step);
  s.columns = 16u * tiles_in(step);
  // Workgroups that compute attention at any context have no part in the output projection.
  uint skipped = step == step_projection ? heads : 0u, worker = gl_WorkGroupID.x - skipped, workers = parts - skipped;
  s.slices = slices_of(step);
  s.inverse_slices = 65536u / s.slices + 1u;
  s.part = part_of(step);
  s.first_group = worker * groups / workers;
  s.groups =
      gl_WorkGroupID.x < skipped || step == step_attention ? 0u : (worker + 1u) * groups / workers - s.first_group;
  return s;
}

// A subgroup's task: first quad of weight words; the number of quads, and in the upper 16 bits the input's first tile.
uvec2 task_of(step_share s, uint sub) {
  uint g = (sub * s.inverse_slices) >> 16, slice = sub - g * s.slices, tiles = s.columns / 16u, first = slice * s.part;
  return uvec2((s.first_group + g) * tiles + first, (g < s.groups ? min(s.part, tiles - first) : 0u) | first << 16);
}
// Loads a product's weights. Every register is set: one that might keep its content through attention would be spilled.
// Here and below an address begins with the part that differs between lanes; constant distances are part of the loads.
void fetch(uint layer, uint step) {
  uvec2 task = tasks[product_of(step) * members + sub];
  uint count = task.y & 0xffffu;
  WordQuads weight = WordQuads(weight_of(layer, step, 1u) + uint64_t(task.x + lane) * 16u);
  [[unroll]] for (uint i = 0u; i < loads; ++i) {
    uint k = lane + i * 32u;
    w[i] = k < count ? weight.at[i * 32u] : uvec4(0u);
  }
}
// A step that is not a literal makes the compiler generate other code.
void fetch_first(uint layer) {
  if (ffns_before != 0u) fetch(layer, step_early_gated);
  else fetch(layer, step_qkv);
}
void fetch_after(uint layer) {
  uvec2 task = tasks[product_of(step_projection) * members + sub];
  w_after = lane < (task.y & 0xffffu)
                ? WordQuads(weight_of(layer, step_projection, 1u) + uint64_t(task.x + lane) * 16u).at[0]
                : uvec4(0u);
}

bool absent(vec4 v) { return any(equal(floatBitsToUint(v), uvec4(unwritten))); }

void time_out() {
  timed_out = true;
  SharedWords(progress).at[progress_timed_out] = 1u;
}
// True after `spin_limit` turns, or when another workgroup has timed out.
bool out_of_spins(uint tries) {
  return timed_out || tries >= spin_limit ||
         ((tries & 1023u) == 0u && SharedWords(progress).at[progress_timed_out] != 0u);
}

// Two reads are in flight at any time, so that a new value is seen sooner.
vec4 await_quad(SharedQuads x, uint quad, bool wanted) {
  vec4 a = vec4(0.0);
  if (wanted) {
    uint tries = 0u;
    a = x.at[quad];
    vec4 later = x.at[quad];
    while (absent(a)) {
      a = x.at[quad];
      if (!absent(later)) {
        a = later;
        break;
      }
      if (out_of_spins(++tries)) break;
      later = x.at[quad];
    }
    if (absent(a) && !timed_out) time_out();
  }
  return a;
}

float butterfly(float sum) {
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) {
    precise float both = sum + subgroupShuffleXor(sum, d);
    sum = both;
  }
  return sum;
}

// Loads one quad of the input per invocation and multiplies it by the norm's weight. Adds its square to the block's sum
// and keeps the largest product so far in `largest`.
precise vec4 take_in(SharedQuads x, FloatQuads norm, uint quad, uint count, uint keeper, inout float largest) {
  bool wanted = quad < count;
  vec4 weight = wanted ? norm.at[quad] : vec4(0.0);
  vec4 mine = await_quad(x, quad, wanted);
  uint row = quad - shares[share_at(keeper)].first_group;
  if (keeper != step_attention && wanted && row < shares[share_at(keeper)].groups)
    kept_stream[kept_of(keeper) + row] = mine;
  precise vec4 square = mine * mine;
  precise float sum = (square.x + square.y) + (square.z + square.w);
  sum = butterfly(sum);
  uint block = quad / 32u;
  if (lane == 0u && block < 64u)
    sums_by_lane[(block & 7u) + ((block & 32u) >> 2)][((block & 16u) >> 4) | ((block & 8u) >> 2)] = sum;
  precise vec4 weighted_ = mine * weight;
  largest = max(largest, greatest(weighted_));
  return weighted_;
}

#if LONG_CONTEXTS
void fetch_keys_ahead(uint layer);
#endif

// Quantises the normalised input to int8 in sx.
int quantise(uint layer, uint step) {
  const uint keeper = end_of_half(step);
  uint t = gl_LocalInvocationIndex, count = tiles_in(step) * 4u;
  SharedQuads x = SharedQuads(input_of(layer, step));
  FloatQuads norm = FloatQuads(weight_of(layer, step, 0u));
  precise vec4 product[2];
  float largest = 0.0;
  product[0] = take_in(x, norm, t, count, keeper, largest);
  product[1] = vec4(0.0);
  if (is_down(step)) product[1] = take_in(x, norm, t + threads, count, step_attention, largest);
#if LONG_CONTEXTS
  if (step == step_qkv) fetch_keys_ahead(layer);  // after the wait: loads return in order
#endif
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1)
    largest = max(largest, subgroupShuffleXor(largest, d));
  if (lane == 0u) subgroup_largest[sub / 4u][sub % 4u] = largest;
  barrier();
  if (sub == 0u) {  // one subgroup: the instructions of thirty-two would wait for each other
    vec4 quads_of[8];
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      quads_of[i] = sums_by_lane[i];
      if (is_down(step)) quads_of[i] = quads_of[i] + sums_by_lane[8u + i];
    }
    vec4 most = vec4(0.0);
    [[unroll]] for (uint i = 0u; i < members / 4u; ++i)
      most = max(most, subgroup_largest[i]);
    float whole = max(max(most.x, most.y), max(most.z, most.w));
    precise float lane_sums[8];  // the butterfly over 32 blocks, without shuffles
    [[unroll]] for (uint i = 0u; i < 8u; ++i)
      lane_sums[i] = (quads_of[i].x + quads_of[i].y) + (quads_of[i].z + quads_of[i].w);
    precise float sum = ((lane_sums[0] + lane_sums[4]) + (lane_sums[2] + lane_sums[6])) +
                        ((lane_sums[1] + lane_sums[5]) + (lane_sums[3] + lane_sums[7]));
    // Divisors are constants, as elsewhere: drivers divide by constants in another way.
    precise float mean = (step == step_projection ? sum / float(q_size)
                          : is_down(step)         ? sum / float(intermediate_size)
                                                  : sum / float(hidden_size)) +
                         eps;
    precise float root = 1.0 / sqrt(mean);
    float r = finite(mean) ? root : not_a_number, m = largest_activation(whole, r);
    precise float s = 127.0 / m;
    if (lane == 0u) scaling = vec3(r, s, grid_step(m, r));
  }
  barrier();
  int total = 0;
  float r = scaling.x, s = scaling.y;
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    if (i == 0u || is_down(step)) {
      uint quad = t + i * threads;
      precise vec4 scaled = (product[i] * r) * s;
      precise vec4 rounded =
          scaled + 12582912.0;  // 1.5 * 2^23: the nearest integer, half to even, is in the lowest byte
      ivec4 q = floatBitsToInt(rounded);
      int word = bitfieldInsert(bitfieldInsert(bitfieldInsert(q.x, q.y, 8, 8), q.z, 16, 8), q.w, 24, 8);
      total += dotPacked4x8EXT(word, 0x01010101);
      if (quad < count) sx[quad / 4u][quad % 4u] = uint(word);
    }
  }
  barrier();
  return total;
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

// Reads one word of every 64 bytes of a later step's data, so that they are in the L2 cache by then. Done between two
// exchanges: the reads of an exchange return after all earlier loads.
void touch(uint64_t from, uint bytes, inout uint into) {
  if (into == unwritten) time_out();
  into = gl_LocalInvocationIndex < bytes / 64u ? Words(from).at[gl_LocalInvocationIndex * 16u] : 0u;
}
void touch_weights(uint layer, uint step) {
  uint bytes = tiles_in(step) * 16u;
  touch(weight_of(layer, step, 1u) + shares[share_at(step)].first_group * bytes, shares[share_at(step)].groups * bytes,
        touched);
}
// Touches this workgroup's share of a norm of the next layer.
void touch_norm(uint layer, uint step) {
  if (touched_norm == unwritten) time_out();
  uint quad = gl_WorkGroupID.x * 16u + lane;
  touched_norm = sub == members - 2u && quad < tiles_in(step) * 4u && lane < 16u && layer + 1u < layers
                     ? Words(weight_of(layer + 1u, step, 0u)).at[quad * 4u]
                     : 0u;
}

void multiply(uint layer, uint step, int total) {
  if (is_gated(step)) touch_weights(layer, step + 1u);
  if (step == step_early_down) touch_weights(layer, step_qkv);
  if (step == step_down && ffns_after > 1u) touch_weights(layer, step_late_gated);
  else if ((step == step_down || step == step_late_down) && layer + 1u < layers) {
    if (ffns_before != 0u) touch_weights(layer + 1u, step_early_gated);
    else touch_weights(layer + 1u, step_qkv);
  }
  touch_norm(layer, step);
  uint first = (tasks[product_of(step) * members + sub].y >> 16) + lane;
  ivec4 r = ivec4(0), r4 = ivec4(0), r16 = ivec4(0), r64 = ivec4(0);
  if (step == step_projection) {  // its weights are in w_after, not in w
    accumulate(r, r4, r16, r64, w_after, sx[first]);
  } else {
    [[unroll]] for (uint i = 0u; i < loads; ++i)
      if (i * 32u < part_of(step)) accumulate(r, r4, r16, r64, w[i], sx[first + i * 32u]);
  }
  r = r + (r4 >> 2) + (r16 >> 4) + (r64 >> 6);
  // Each group of eight lanes has row lane / 8 of the four.
  ivec2 u = ((lane & 16u) != 0u ? r.zw : r.xy) + subgroupShuffleXor((lane & 16u) != 0u ? r.xy : r.zw, 16u);
  int q = ((lane & 8u) != 0u ? u.y : u.x) + subgroupShuffleXor((lane & 8u) != 0u ? u.x : u.y, 8u);
  total += subgroupShuffleXor(total, 16u);
  total += subgroupShuffleXor(total, 8u);
  [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1) {
    q += subgroupShuffleXor(q, d);
    total += subgroupShuffleXor(total, d);
  }
  if ((lane & 7u) == 0u) partial[sub * 4u + (lane >> 3)] = q;
  if (lane == 0u) totals[sub / 4u][sub % 4u] = total;
  barrier();
}

// Replaces NaN, so that no number has the bits of `unwritten`.
vec4 written(vec4 v) { return mix(v, vec4(not_a_number), isnan(v)); }

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
uvec2 f16_quad(vec4 v) {
  if (normal_half(v.x) && normal_half(v.y) && normal_half(v.z) && normal_half(v.w))
    return uvec2(half_of_normal(v.x) | half_of_normal(v.y) << 16, half_of_normal(v.z) | half_of_normal(v.w) << 16);
  return uvec2(pack_f16(v.x, v.y), pack_f16(v.z, v.w));
}

void store_half_pair(uint64_t cache, uint element, uint pair) { Words(cache).at[element / 2u] = pair; }

// Four rows of q, k or v: channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2 of a head. Keys and values are also
// written for the workgroups that compute attention.
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
  uvec2 words = uvec2(0u);
  if (first >= q_size) {
    words = f16_quad(vec4(low, high));
    low = unpackHalf2x16(words.x);
    high = unpackHalf2x16(words.y);
  }
  uint at = (head * head_dim + p) / 2u;
  SharedPairs out_ = SharedPairs(output_of(layer, step_qkv));
  vec4 both = written(vec4(low, high));
  out_.at[at] = both.xy;
  out_.at[at + head_dim / 4u] = both.zw;
  if (first >= q_size && position < context) {  // only later tokens read the caches
    if (first < q_size + kv_size) {
      uint element = key_index(head - heads, position, p / 8u) * 8u + p % 8u,
           apart = head_dim / 16u * 64u;  // between chunks of 8 channels: 64
      store_half_pair(address_of(layer, argument_keys), element, words.x);
      store_half_pair(address_of(layer, argument_keys), element + apart, words.y);
    } else {
      uint element = ((head - heads - kv_heads) * context + position) * head_dim + p;
      store_half_pair(address_of(layer, argument_values), element, words.x);
      store_half_pair(address_of(layer, argument_values), element + head_dim / 2u, words.y);
    }
  }
}

#if LONG_CONTEXTS
#include "ternary_attention_long.glsl"
#else
#include "ternary_attention.glsl"
#endif

// Rows of this workgroup: multiplies by the scale, then does what the step requires.
void finish_rows(uint layer, uint step) {
  if (sub != finisher || lane >= shares[share_at(step)].groups) return;
  ivec4 sums = ivec4(0), all = ivec4(0);
  LATER_UNROLLED for (uint i = 0u; i < slices_of(step); ++i) {
    uint from = 4u * (lane * slices_of(step) + i);
    sums += ivec4(partial[from], partial[from + 1u], partial[from + 2u], partial[from + 3u]);
  }
  [[unroll]] for (uint i = 0u; i < members / 4u; ++i)
    all += totals[i];
  sums -= (all.x + all.y) + (all.z + all.w);
  uint group = shares[share_at(step)].first_group + lane, first = (layer * products + product_of(step)) * 3u;
  vec4 scale = vec4(scales_of[first]);
  if (is_gated(step)) scale.yw = vec2(scales_of[first + 1u]);
  if (step == step_qkv && 4u * group >= q_size)
    scale = vec4(scales_of[first + (4u * group < q_size + kv_size ? 1u : 2u)]);
  precise vec4 y = vec4(sums) * (scaling.z * scale);
  if (step == step_qkv) {
    hand_on(layer, group, y);
  } else if (is_gated(step)) {
    SharedPairs(output_of(layer, step)).at[group] = written(vec4(gated(y.x, y.y), gated(y.z, y.w), 0.0, 0.0)).xy;
  } else {
    precise vec4 sum = kept_stream[kept_of(step) + lane] + y;
    SharedQuads(output_of(layer, step)).at[group] = written(sum);
  }
}

void compute(uint layer, uint step) {
  int total = quantise(layer, step);
  multiply(layer, step, total);
  finish_rows(layer, step);
}

void main() {
  lane = gl_SubgroupInvocationID;
  sub = gl_SubgroupID;
  timed_out = false;
  touched = touched_norm = 0u;
  uint t = gl_LocalInvocationIndex;
  for (uint i = t; i < layers * argument_count; i += workgroup_size) addresses[i] = arguments.at[i];
  uint position = state.at[state_position];
  if (t < head_dim / 2u) rotation[t] = rope_turn(position, t, head_dim, rope_theta);
  if (t < steps) shares[t] = share_of(t < step_early_gated ? t : step_of(t - 1u));
  if (t == 0u) shared_position = position;
#if !LONG_CONTEXTS
  uint attending = heads * ((min(position + 1u, context) + span_positions - 1u) / span_positions);
#endif
  barrier();
  if (t < products * members) tasks[t] = task_of(shares[share_at(step_of(t / members))], t % members);
  for (uint i = t; i < layers * products * 3u; i += workgroup_size) {
    uint which = i % 3u, step = step_of(i / 3u % products), layer = i / 3u / products;
    if (which == 0u || step == step_qkv || (is_gated(step) && which == 1u))
      scales_of[i] = Floats(weight_of(layer, step, 2u)).at[which];
  }
  barrier();
  // The code below is written for these values; the plan uses no others.
  uint end = layers;
  if (workgroup_size != threads || subgroup_width != 32u || misfits_attention || cache_element != element_f16) {
    end = 0u;
    time_out();
  }
  fetch_first(0u);
#if LONG_CONTEXTS
  const bool attends = true;
#else
  bool attends = gl_WorkGroupID.x < attending;
#endif
  // Not a loop: one that the driver unrolls is slower.
  [[dont_unroll]] for (uint layer = 0u; layer < end; ++layer) {
    if (ffns_before != 0u) {
      compute(layer, step_early_gated);
      fetch(layer, step_early_down);
      compute(layer, step_early_down);
      fetch(layer, step_qkv);
    }
    compute(layer, step_qkv);
    if (attends) attention(layer);
    if (gl_WorkGroupID.x >= heads) fetch_after(layer);
    else w_after = uvec4(0u);  // set on every path
    fetch(layer, step_gated);
    if (gl_WorkGroupID.x >= heads) compute(layer, step_projection);
    compute(layer, step_gated);
    fetch(layer, step_down);
    compute(layer, step_down);
    if (ffns_after > 1u) {
      fetch(layer, step_late_gated);
      compute(layer, step_late_gated);
      fetch(layer, step_late_down);
      compute(layer, step_late_down);
    }
    fetch_first(min(layer + 1u, layers - 1u));
  }
  barrier();
  if (t == 0u) {
    uint left = atomicAdd(progress.at[progress_left], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                          gl_SemanticsAcquireRelease) +
                1u;
    bool last = left == gl_NumWorkGroups.x;
    if (last) progress.at[progress_left] = 0u;
    leaves_last = last && SharedWords(progress).at[progress_timed_out] != 0u;
  }
  barrier();
  if (leaves_last)
    for (uint i = t; i < hidden_size / 4u; i += workgroup_size)
      FloatQuads(output_of(layers - 1u, ffns_after > 1u ? step_late_down : step_down)).at[i] = vec4(not_a_number);
}
