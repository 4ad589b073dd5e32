// SPDX-License-Identifier: MIT
// All layers of one token in one dispatch: every workgroup stays on its multiprocessor and walks the period's steps, with a grid-wide
// barrier between steps and the next step's weights loaded into registers while it waits.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
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
layout(constant_id = 1) const uint layers = 30;
layout(constant_id = 2) const uint widest = 6912;    // columns of the widest product
layout(constant_id = 3) const uint heads = 20;
layout(constant_id = 4) const uint kv_heads = 5;
layout(constant_id = 5) const uint head_dim = 128;
layout(constant_id = 6) const uint context = 4096;
layout(constant_id = 7) const float rope_theta = 500000.0;
layout(constant_id = 8) const float eps = 1e-5;
layout(constant_id = 9) const uint gate = 0;
layout(constant_id = 10) const uint steps = 5;
layout(local_size_x_id = 0) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer SharedQuads { devicecoherent vec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SharedPairs { devicecoherent vec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer SharedWords { devicecoherent uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SharedWordPairs { devicecoherent uvec2 at[]; };

// A step of the period: 16 64-bit words, see field_*.
layout(push_constant, scalar) uniform Push { Longs table; Words state; Words counter; };

const uint field_kind = 0u, field_columns = 1u, field_rows = 2u, field_slices = 3u;                      // numbers
const uint field_input = 4u, field_output = 5u, field_norm = 6u, field_weight = 8u, field_scales = 10u;  // addresses; norm, weight, scales with a stride a layer
const uint field_keys = 12u, field_values = 14u;
const uint kind_qkv = 0u, kind_attention = 1u, kind_add = 2u, kind_gated = 3u;
const uint max_steps = 8u;
const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim, quads = head_dim / 4u;

struct step_share {  // what a step is for this workgroup
  uint kind, columns, first_group, groups, slices, inverse_slices, part, loads;
};
shared step_share shares[max_steps];
shared uint64_t places[max_steps * 16u];
shared uvec4 sx[widest / 16u];            // int8 input
shared int partial[1024];                 // sums of the workgroup's rows
shared vec2 rotation[head_dim / 2u];      // sine, cosine
shared vec2 blocks_of[64];                // sum of squares and maximum of 128 elements; maximum and total of attention blocks
shared vec4 sums_of[32u * quads];         // attention: sums of values of a block
shared vec4 query_of[quads];
shared vec4 own_stream[64];
shared int shared_sum;

uint target;
uvec4 w[5];
vec4 norm_w[2];
vec4 scale_v;
uint lane, sub;

void arrive() {
  barrier();
  if (gl_LocalInvocationIndex == 0u) {
    target += gl_NumWorkGroups.x;
    atomicAdd(counter.at[0], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
  }
}
void wait_all() {
  if (gl_LocalInvocationIndex == 0u) {
    while (atomicLoad(counter.at[0], gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed) < target);
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire);
  }
  barrier();
}

uint64_t place(uint step, uint field) { return places[step * 16u + field]; }
uint64_t place(uint step, uint field, uint layer) { return places[step * 16u + field] + places[step * 16u + field + 1u] * uint64_t(layer); }
uint group_of(step_share s) { return (sub * s.inverse_slices) >> 16; }

// Weights, norm and scales of a product for this subgroup's task.
void fetch(uint step, uint layer) {
  step_share s = shares[step];
  WordQuads weight = WordQuads(place(step, field_weight, layer));
  uint g = group_of(s), slice = sub - g * s.slices, p = ((s.first_group + g) * s.slices + slice) * s.part;
  if (g < s.groups)
    [[unroll]] for (uint i = 0u; i < 5u; ++i)
      if (i < s.loads) {
        uint k = lane + i * 32u;
        w[i] = k < s.part ? weight.at[p + k] : uvec4(0u);
      }
  FloatQuads norm = FloatQuads(place(step, field_norm, layer));
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    uint quad = gl_LocalInvocationIndex + i * 1024u;
    if (quad < s.columns / 4u) norm_w[i] = norm.at[quad];
  }
  Floats scales = Floats(place(step, field_scales, layer));
  if (gl_LocalInvocationIndex < s.groups) {
    uint first = 4u * (s.first_group + gl_LocalInvocationIndex);
    uint a = s.kind == kind_qkv && first >= q_size ? (first < q_size + kv_size ? 1u : 2u) : 0u;
    scale_v.xz = vec2(scales.at[a]);
    scale_v.yw = s.kind == kind_gated ? vec2(scales.at[1]) : scale_v.xz;
  }
}

float greatest(vec4 v) { v = abs(v); return max(max(v.x, v.y), max(v.z, v.w)); }

// int8 of the normalised input into sx; gives the factor.
float quantise(SharedQuads x, uint columns) {
  uint t = gl_LocalInvocationIndex, count = columns / 4u, blocks = (count + 31u) / 32u;
  vec4 mine[2];
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    mine[i] = vec4(0.0);
    uint quad = t + i * 1024u;
    if (quad < count) mine[i] = x.at[quad];
  }
  if (t == 0u) shared_sum = 0;
  partial[t] = 0;
  [[unroll]] for (uint i = 0u; i < 2u; ++i)
    if (sub + i * 32u < blocks) {
      precise vec4 square = mine[i] * mine[i];
      precise float sum = (square.x + square.y) + (square.z + square.w);
      [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) sum = sum + subgroupShuffleXor(sum, d);
      precise vec4 weighted = mine[i] * norm_w[i];
      float m = subgroupMax(t + i * 1024u < count ? greatest(weighted) : 0.0);
      if (lane == 0u) blocks_of[sub + i * 32u] = vec2(sum, m);
    }
  barrier();
  vec2 low = lane < blocks ? blocks_of[lane] : vec2(0.0), high = lane + 32u < blocks ? blocks_of[lane + 32u] : vec2(0.0);
  precise float sum = low.x + high.x;
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) sum = sum + subgroupShuffleXor(sum, d);
  precise float mean = sum / float(columns) + eps;
  precise float r = 1.0 / sqrt(mean);
  precise float m = max(subgroupMax(max(low.y, high.y)) * r, 1e-5);
  precise float s = 127.0 / m;
  int total = 0;
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    uint quad = t + i * 1024u;
    if (quad < count) {
      precise vec4 scaled = ((mine[i] * r) * norm_w[i]) * s;
      ivec4 q = clamp(ivec4(roundEven(scaled)), -128, 127);
      total += q.x + q.y + q.z + q.w;
      sx[quad / 4u][quad % 4u] = (uint(q.x) & 255u) | (uint(q.y) & 255u) << 8 | (uint(q.z) & 255u) << 16 | uint(q.w) << 24;
    }
  }
  total = subgroupAdd(total);
  if (lane == 0u) atomicAdd(shared_sum, total);
  barrier();
  precise float factor = m / 127.0;
  return factor;
}

// Sums of the rows of this workgroup into partial.
void multiply(step_share s) {
  uint g = group_of(s), slice = sub - g * s.slices, k0 = slice * s.part;
  if (g < s.groups) {
    ivec4 r = ivec4(0), r4 = ivec4(0), r16 = ivec4(0);
    [[unroll]] for (uint i = 0u; i < 5u; ++i)
      if (i < s.loads) {
        uint k = lane + i * 32u;
        uvec4 xv = sx[min(k0 + k, widest / 16u - 1u)];
        [[unroll]] for (uint j = 0u; j < 4u; ++j) {
          uint v = w[i][j];
          r[j] += dotPacked4x8EXT(int(v & 0x03030303u), int(xv.x));
          r4[j] += dotPacked4x8EXT(int(v & 0x0c0c0c0cu), int(xv.y));
          r16[j] += dotPacked4x8EXT(int(v & 0x30303030u), int(xv.z));
          r16[j] += dotPacked4x8EXT(int((v >> 2) & 0x30303030u), int(xv.w));
        }
      }
    r += (r4 >> 2) + (r16 >> 4);
    ivec2 u = ((lane & 16u) != 0u ? r.zw : r.xy) + subgroupShuffleXor((lane & 16u) != 0u ? r.xy : r.zw, 16u);
    int q = ((lane & 8u) != 0u ? u.y : u.x) + subgroupShuffleXor((lane & 8u) != 0u ? u.x : u.y, 8u);
    q += subgroupShuffleXor(q, 4u);
    q += subgroupShuffleXor(q, 2u);
    q += subgroupShuffleXor(q, 1u);
    uint row = g * 4u + (lane >> 4) * 2u + ((lane >> 3) & 1u);
    if ((lane & 7u) == 0u) atomicAdd(partial[row], q);
  }
  barrier();
}

void store_key(SharedWords cache, uint kv_head, uint position, uint p, vec2 pair) {
  // keys: blocks of 32 positions, four channels of each position together
  cache.at[((((kv_head * (context / 32u) + position / 32u) * quads + p / 4u) * 32u + position % 32u) * 4u + p % 4u) / 2u] = pack_halves(pair.x, pair.y);
}

void rope_cache(uint step, uint layer, uint position, uint group, vec4 y) {
  uint first = 4u * group, head = first / head_dim, p = (first % head_dim) / 2u;
  vec2 low = y.xz, high = y.yw;
  if (first < q_size + kv_size) {
    vec2 a = rotation[p], b = rotation[p + 1u];
    vec2 sine = vec2(a.x, b.x), cosine = vec2(a.y, b.y);
    precise vec2 turned_low = low * cosine - high * sine, turned_high = high * cosine + low * sine;
    low = turned_low;
    high = turned_high;
  }
  if (first < q_size) {
    SharedPairs q = SharedPairs(place(step, field_output));
    q.at[(head * head_dim + p) / 2u] = low;
    q.at[(head * head_dim + p + head_dim / 2u) / 2u] = high;
  } else if (position < context) {
    if (first < q_size + kv_size) {
      SharedWords keys = SharedWords(place(step, field_keys, layer));
      store_key(keys, head - heads, position, p, low);
      store_key(keys, head - heads, position, p + head_dim / 2u, high);
    } else {
      SharedWords values = SharedWords(place(step, field_values, layer));
      uint at = ((head - heads - kv_heads) * context + position) * head_dim + p;
      values.at[at / 2u] = pack_halves(low.x, low.y);
      values.at[(at + head_dim / 2u) / 2u] = pack_halves(high.x, high.y);
    }
  }
}

void attention(uint step, uint layer, uint count) {
  uint head = gl_WorkGroupID.x, t = gl_LocalInvocationIndex, blocks = (count + 31u) / 32u, kv_head = head / (heads / kv_heads);
  SharedWordPairs keys = SharedWordPairs(place(step, field_keys, layer)), values = SharedWordPairs(place(step, field_values, layer));
  if (t < quads) query_of[t] = SharedQuads(place(step, field_input)).at[head * quads + t];
  barrier();
  vec4 merged = vec4(0.0);
  float maximum = uintBitsToFloat(0xff800000u), total = 0.0;
  for (uint round = 0u; round < blocks; round += 32u) {
    uint own = round + sub;
    if (own < blocks) {
      uint base = (kv_head * (context / 32u) + own) * quads * 32u + lane, valid = min(count - own * 32u, 32u);
      precise vec4 a = vec4(0.0);
      [[dont_unroll]] for (uint quad = 0u; quad < quads; quad += 8u) {
        uvec2 words[8];
        [[unroll]] for (uint i = 0u; i < 8u; ++i) words[i] = keys.at[base + (quad + i) * 32u];
        [[unroll]] for (uint i = 0u; i < 8u; ++i) {
          precise vec4 products = query_of[quad + i] * vec4(halves(words[i].x), halves(words[i].y));
          a = a + products;
        }
      }
      precise float score = ((a.x + a.y) + (a.z + a.w)) * (1.0 / sqrt(float(head_dim)));
      if (lane >= valid) score = uintBitsToFloat(0xff800000u);
      float m = subgroupMax(score);
      precise float below = score - m;
      float p = canonical_exp(below);
      precise float sum = p;
      [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) sum = sum + subgroupShuffleXor(sum, d);
      precise vec4 acc = vec4(0.0);
      uint vbase = (kv_head * context + own * 32u) * quads + lane % quads;
      [[dont_unroll]] for (uint j = 0u; j < 32u; j += 8u) {
        uvec2 words[8];
        [[unroll]] for (uint i = 0u; i < 8u; ++i) words[i] = values.at[vbase + (j + i) * quads];
        [[unroll]] for (uint i = 0u; i < 8u; ++i) {
          float pj = subgroupShuffle(p, j + i);
          precise vec4 products = pj * vec4(halves(words[i].x), halves(words[i].y));
          acc = acc + products;
        }
      }
      if (lane < quads) sums_of[sub * quads + lane] = acc;
      if (lane == 0u) blocks_of[sub] = vec2(m, sum);
    }
    barrier();
    if (t < quads)
      [[dont_unroll]] for (uint b = 0u; b < min(32u, blocks - round); ++b) {
        vec2 weight = blocks_of[b];
        float now = max(maximum, weight.x);
        precise float old_distance = maximum - now, new_distance = weight.x - now;
        float f = canonical_exp(old_distance), g = canonical_exp(new_distance);
        precise float sum = total * f + weight.y * g;
        precise vec4 sums = merged * f + sums_of[b * quads + t] * g;
        total = sum;
        merged = sums;
        maximum = now;
      }
    barrier();
  }
  if (t < quads) {
    precise vec4 result = merged / total;
    SharedQuads(place(step, field_output)).at[head * quads + t] = result;
  }
}

float activated(float g, float up) {
  precise float y;
  if (gate == 1u) { y = (g / (1.0 + canonical_exp(-g))) * up; }
  else { float p = max(g, 0.0); y = (p * p) * up; }
  return y;
}

void main() {
  lane = gl_SubgroupInvocationID;
  sub = gl_SubgroupID;
  target = 0u;
  uint t = gl_LocalInvocationIndex;
  for (uint i = t; i < steps * 16u; i += 1024u) places[i] = table.at[i];
  uint position = state.at[state_position];
  if (t < head_dim / 2u) rotation[t] = rope_turn(position, t, head_dim, rope_theta);
  barrier();
  if (t < steps) {
    step_share s;
    uint groups = uint(place(t, field_rows)) / 4u;
    s.kind = uint(place(t, field_kind));
    s.columns = uint(place(t, field_columns));
    s.slices = uint(place(t, field_slices));
    s.first_group = gl_WorkGroupID.x * groups / gl_NumWorkGroups.x;
    s.groups = (gl_WorkGroupID.x + 1u) * groups / gl_NumWorkGroups.x - s.first_group;
    s.inverse_slices = s.slices == 0u ? 0u : 65536u / s.slices + 1u;
    s.part = s.slices == 0u ? 0u : s.columns / 16u / s.slices;
    s.loads = (s.part + 31u) / 32u;
    shares[t] = s;
  }
  barrier();
  {
    step_share s = shares[steps - 1u];
    if (t < s.groups) own_stream[t] = SharedQuads(place(steps - 1u, field_output)).at[s.first_group + t];
  }
  fetch(0u, 0u);
  [[dont_unroll]] for (uint layer = 0u; layer < layers; ++layer) {
    [[dont_unroll]] for (uint step = 0u; step < steps; ++step) {
      step_share s = shares[step];
      bool last = step + 1u == steps;
      if (s.kind == kind_attention) {
        bool mine = gl_WorkGroupID.x < heads;
        if (mine) attention(step, layer, min(position + 1u, context));
        arrive();
        if (mine) fetch(step + 1u, layer);
      } else {
        float factor = quantise(SharedQuads(place(step, field_input)), s.columns);
        multiply(s);
        if (t < s.groups) {
          ivec4 sums = ivec4(partial[4u * t], partial[4u * t + 1u], partial[4u * t + 2u], partial[4u * t + 3u]) - shared_sum;
          precise vec4 y = vec4(sums) * (factor * scale_v);
          uint group = s.first_group + t;
          if (s.kind == kind_qkv) {
            rope_cache(step, layer, position, group, y);
          } else if (s.kind == kind_gated) {
            SharedPairs(place(step, field_output)).at[group] = vec2(activated(y.x, y.y), activated(y.z, y.w));
          } else {
            precise vec4 sum = own_stream[t] + y;
            own_stream[t] = sum;
            SharedQuads(place(step, field_output)).at[group] = sum;
          }
        }
        arrive();
        uint next = last ? 0u : step + 1u;
        if (shares[next].kind != kind_attention) {
          if (!last || layer + 1u < layers) fetch(next, last ? layer + 1u : layer);
        } else if (gl_WorkGroupID.x >= heads) {
          fetch(next + 1u, layer);
        }
      }
      if (!last || layer + 1u < layers) wait_all();
    }
  }
  if (t == 0u) {
    uint before = atomicAdd(counter.at[1], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    if (before + 1u == gl_NumWorkGroups.x) { counter.at[1] = 0u; counter.at[0] = 0u; }
  }
}
