// SPDX-License-Identifier: MIT
// Ternary weights times int8 activations, with what comes before (norm, quantisation) and after (scale, residual, rotary embedding
// and cache, gate). A subgroup takes groups of 4 rows; its lanes stride over tiles of 16 columns, one 16-byte load each.
// variant: ternary_matmul -DINTEGER_DOT=1 -DWIDE_LOADS=0
// variant: ternary_matmul_portable -DINTEGER_DOT=0 -DWIDE_LOADS=0
// variant: ternary_matmul_cpu -DINTEGER_DOT=0 -DWIDE_LOADS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#if INTEGER_DOT
#extension GL_EXT_integer_dot_product : require
#endif
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 256;
layout(constant_id = 2) const uint rows = 256;
layout(constant_id = 3) const uint prologue = 0;
layout(constant_id = 4) const uint epilogue = 0;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint tile_tokens = 1;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint q_size = 256;
layout(constant_id = 9) const uint kv_size = 64;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const float rope_theta = 500000.0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint gate = 0;
layout(constant_id = 14) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"
#include "norm.glsl"
#include "ternary.glsl"

layout(push_constant, scalar) uniform Push { Words input_, norm_weight, factors, weight, scales, output_, state, keys, values; };

const uint prologue_norm_quantize = 1u;
const uint epilogue_add = 1u, epilogue_rope_cache = 2u, epilogue_gated = 3u;
const uint gate_silu = 1u, gate_gelu_tanh = 2u;
const uint tiles = columns / 16u;

const bool quantises = prologue == prologue_norm_quantize;
// A CPU copies the activations of its tokens where reading is cheap.
#if WIDE_LOADS
const uint staged_tokens = tile_tokens * tiles <= 1536u ? tile_tokens : 0u;
#else
const uint staged_tokens = 0u;
#endif
const uint shared_tokens = quantises ? 1u : staged_tokens;

// Activations of the prologue or of the staged tokens.
shared uvec4 shared_x[shared_tokens * tiles + 1u];

uvec4 activations(uint first_token, uint t, uint tile) {
  if (quantises) return shared_x[tile];
  if (staged_tokens != 0u) return shared_x[t * tiles + tile];
  return word_quad(input_, (first_token + t) * tiles + tile);
}

// Fills shared_x; gives 1 / s. Each subgroup sums the squares for itself, all share the rest.
float quantise_input() {
  float r = inverse_rms(input_, 0u, columns, eps);
  float m = largest_activation(input_, 0u, norm_weight, columns, r);
  precise float s = 127.0 / m;
  for (uint tile = gl_LocalInvocationIndex; tile < tiles; tile += workgroup_size) {
    uvec4 q;
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) q[i] = quantised(normalised(input_, 0u, norm_weight, 4u * tile + i, r), s);
    shared_x[tile] = q;
  }
  precise float factor = m / 127.0;
  return factor;
}

// Read once, by every lane.
float scale_of[3];
uint first_position;

float gated(float g, float up) {
  precise float y;
  if (gate == gate_silu) {
    y = (g / (1.0 + canonical_exp(-g))) * up;
  } else if (gate == gate_gelu_tanh) {
    precise float inner = 0.797884561 * (g + 0.044715 * ((g * g) * g));
    precise float t = 1.0 - 2.0 / (canonical_exp(2.0 * inner) + 1.0);
    y = ((0.5 * g) * (1.0 + t)) * up;
  } else {
    float p = max(g, 0.0);
    y = (p * p) * up;
  }
  return y;
}

// Two neighbouring channels into the cache.
void store_pair(Words cache, uint element, vec2 pair) {
  if (cache_element == element_f32) FloatPairs(cache).at[element / 2u] = pair;
  else cache.at[element / 2u] = pack_halves(pair.x, pair.y);
}

// Rows of one group: channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2 of one head of q, k or v.
void rope_cache(uint token, uint group, vec4 y) {
  uint first = 4u * group, head = first / head_dim, p = (first % head_dim) / 2u, half_dim = head_dim / 2u;
  uint position = first_position + token;
  vec2 low = y.xz, high = y.yw;
  if (first < q_size + kv_size) {
    vec2 a = rope_turn(position, p, head_dim, rope_theta), b = rope_turn(position, p + 1u, head_dim, rope_theta);
    vec2 sine = vec2(a.x, b.x), cosine = vec2(a.y, b.y);
    precise vec2 turned_low = low * cosine - high * sine, turned_high = high * cosine + low * sine;
    low = turned_low;
    high = turned_high;
  }
  if (first < q_size) {
    uint at = token * q_size + head * head_dim + p;
    FloatPairs(output_).at[at / 2u] = low;
    FloatPairs(output_).at[(at + half_dim) / 2u] = high;
  } else if (position < context) {
    bool is_key = first < q_size + kv_size;
    uint kv_head = head - (is_key ? q_size : q_size + kv_size) / head_dim;
    uint at = (kv_head * context + position) * head_dim + p;
    Words cache = is_key ? keys : values;
    store_pair(cache, at, low);
    store_pair(cache, at + half_dim, high);
  }
}

// Sums of the codes' products for one token and one group of rows: subtracts what codes 0, 1, 2 have over -1, 0, 1, scales, stores.
void finish(uint token, uint group, ivec4 sums, float factor, int activation_sum) {
  vec4 scale = vec4(scale_of[0]);
  if (epilogue == epilogue_gated) scale.yw = vec2(scale_of[1]);
  if (epilogue == epilogue_rope_cache && 4u * group >= q_size) scale = vec4(4u * group < q_size + kv_size ? scale_of[1] : scale_of[2]);
  precise vec4 y = vec4(sums - activation_sum) * (factor * scale);
  uint quad = token * (rows / 4u) + group;
  if (epilogue == epilogue_rope_cache) {
    rope_cache(token, group, y);
  } else if (epilogue == epilogue_gated) {
    FloatPairs(output_).at[quad] = vec2(gated(y.x, y.y), gated(y.z, y.w));
  } else if (epilogue == epilogue_add) {
    precise vec4 sum = float_quad(output_, quad) + y;
    FloatQuads(output_).at[quad] = sum;
  } else {
    FloatQuads(output_).at[quad] = y;
  }
}

void main() {
  find_place();
  uint first_token = gl_WorkGroupID.y * tile_tokens, count = state.at[state_count];
  if (first_token >= count) return;
  uint tokens = min(count - first_token, tile_tokens);

  float own_factor = 0.0;
  int own_sum = 0;
  if (!quantises && staged_tokens != 0u) {
    for (uint i = gl_LocalInvocationIndex; i < tokens * tiles; i += workgroup_size) shared_x[i] = word_quad(input_, first_token * tiles + i);
    workgroup_barrier();
  }
  if (quantises) {
    own_factor = quantise_input();
    workgroup_barrier();
    for (uint tile = lane; tile < tiles; tile += subgroup_size) own_sum += sum_of_bytes(shared_x[tile]);
    own_sum = subgroup_sum(own_sum);
  }

  // Tiles of a lane. Where they are few, a CPU keeps their activations at hand for all rows; idle lanes have zeros.
  uint steps = (tiles + subgroup_size - 1u) / subgroup_size;
  bool resident = WIDE_LOADS != 0 && subgroup_width != 0u && tile_tokens * steps <= 16u;
  prepared x[16];
  if (resident)
    LATER_UNROLLED for (uint i = 0u; i < 16u; ++i)
      if (i < tile_tokens * steps) {
        uint tile = lane + i % steps * subgroup_size, t = i / steps;
        x[i] = prepare(tile < tiles && t < tokens ? activations(first_token, t, tile) : uvec4(0u));
      }

  scale_of[0] = Floats(scales).at[0];
  if (epilogue == epilogue_rope_cache || epilogue == epilogue_gated) scale_of[1] = Floats(scales).at[1];
  if (epilogue == epilogue_rope_cache) {
    scale_of[2] = Floats(scales).at[2];
    first_position = state.at[state_position];
  }

  // Every lane keeps the sums of one token and group until all lanes have some, then all finish at once; subgroups of 4 keep two each.
  ivec4 kept[2];
  uint kept_group[2], kept_token[2], filled = 0u;
  uint room = max(subgroup_size, 8u), groups = rows / 4u;
  uint stride = gl_NumWorkGroups.x * gl_NumSubgroups;
  for (uint group = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID; group < groups; group += stride) {
    ivec4 sums[8];
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t) sums[t] = ivec4(0);
    if (resident) {
      unpacked_codes unpacked;
      LATER_UNROLLED for (uint i = 0u; i < 16u; ++i)
        if (i < tile_tokens * steps) {
          uint k = i / tile_tokens, t = i % tile_tokens;
          if (t == 0u) unpacked = unpack(word_quad(weight, group * tiles + min(lane + k * subgroup_size, tiles - 1u)));
          accumulate(sums[t], unpacked, x[t * steps + k]);
        }
    } else for (uint tile = lane; tile < tiles; tile += subgroup_size) {
      uvec4 codes = word_quad(weight, group * tiles + tile);
      if (tile_tokens == 1u) {
        accumulate_one(sums[0], codes, activations(first_token, 0u, tile));
      } else {
        unpacked_codes unpacked = unpack(codes);
        LATER_UNROLLED for (uint t = 0u; t < 8u; ++t)
          if (t < tile_tokens && t < tokens) accumulate(sums[t], unpacked, prepare(activations(first_token, t, tile)));
      }
    }
    LATER_UNROLLED for (uint t = 0u; t < 8u; ++t)
      if (t < tile_tokens && t < tokens) {
        ivec4 all = subgroup_sum4(sums[t]);
        LATER_UNROLLED for (uint k = 0u; k < 2u; ++k)
          if (k * subgroup_size < room && lane + k * subgroup_size == filled) {
            kept[k] = all;
            kept_group[k] = group;
            kept_token[k] = first_token + t;
          }
        ++filled;
      }
    if (filled + tokens <= room && group + stride < groups) continue;
    LATER_UNROLLED for (uint k = 0u; k < 2u; ++k)
      if (k * subgroup_size < room && lane + k * subgroup_size < filled) {
        float factor = own_factor;
        int activation_sum = own_sum;
        if (prologue != prologue_norm_quantize) {
          uvec2 word = word_pair(factors, kept_token[k]);
          factor = uintBitsToFloat(word.x);
          activation_sum = int(word.y);
        }
        finish(kept_token[k], kept_group[k], kept[k], factor, activation_sum);
      }
    filled = 0u;
  }
}
