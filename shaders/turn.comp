// SPDX-License-Identifier: MIT
// Processes heads of q, k and v between their products and attention: biases, norms of q and k, rotary embedding of q
// and k; then q goes to the output, k and v to the cache. One workgroup per head (x) and token (y). A rotation does not
// change a head's root mean square, so a norm after it is a norm before it whose weight is applied later. With
// `latent` there is one key and value head: a normalised latent vector is the value and, in front of k, the key.
// variant: turn -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint heads = 4;
layout(constant_id = 2) const uint kv_heads = 1;
layout(constant_id = 3) const uint head_dim = 64;
layout(constant_id = 4) const float eps = 1e-6;
layout(constant_id = 5) const uint context = 256;
layout(constant_id = 6) const uint ring = 0;
layout(constant_id = 7) const uint cache_element = 0;
layout(constant_id = 8) const uint subgroup_width = 0;
layout(constant_id = 9) const uint slot_words = 0;
layout(constant_id = 10) const uint page_size = 0;
layout(constant_id = 11) const uint q_stride = 256;  // floats from one token to the next
layout(constant_id = 12) const uint k_stride = 64;
layout(constant_id = 13) const uint v_stride = 64;
layout(constant_id = 14) const uint norms = 0;  // kernels::turn_norms
layout(constant_id = 15) const uint biased = 0;
layout(constant_id = 16) const float rope_factor = 1.0;  // of rotated channels
layout(constant_id = 17) const uint v_norm = 0;          // normalises heads of v, without a weight
layout(constant_id = 18) const uint latent = 0;          // channels of the latent vector; 0: there is none
layout(local_size_x_id = 0) in;
#include "subgroup.glsl"

layout(push_constant, scalar) uniform Push {
  Words q, k, v, q_norm, k_norm, bias, output_, state, keys, values, rope, latent_query;
};

const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim;
const uint rows = q_size + 2u * kv_size, epilogue = 2u;
const uint head_quads = head_dim / 4u;
// Channels of a value, and of a query or key with the latent channels in front of it.
const uint cached_value_dim_ = latent != 0u ? latent : head_dim, joined_dim = latent + head_dim;
#define cached_value_dim cached_value_dim_
const uint value_quads = cached_value_dim / 4u, widest_quads = value_quads > head_quads ? value_quads : head_quads;
const uint norms_none = 0u, norms_all_heads = 2u, norms_after = 3u;

bool is_query;
uint bias_shift;  // distance from a quad of the input to its bias
vec4 biased_quad(Words from, uint quad) {
  precise vec4 x = float_quad(from, quad);
  if (biased != 0u) x = x + float_quad(bias, quad + bias_shift);
  return x;
}
#define input_quad biased_quad
bool is_value;
#define weight_quad(weight, chunk, s) \
  ((v_norm != 0u && is_value) || norms == norms_after ? vec4(1.0) : chunk_quad(weight, 0u, chunk, s))
#define norm_width \
  (norms == norms_all_heads ? (is_query ? q_size : kv_size) : latent != 0u && is_value ? latent : head_dim)
#define norm_width_max (norms == norms_all_heads ? q_size : 4u * widest_quads)
#include "norm.glsl"

#include "coded_cache.glsl"
shared vec4 shared_y[widest_quads];

#define UNSCALED
vec2 rope_of_pair(uint position, uvec2 turns) {
  vec2 turn = rope_from_turns(position, turns);
  if (rope_factor != 1.0 && (turns.x | turns.y) != 0u) turn = turn * rope_factor;
  return turn;
}
// Sine and cosine of a pair; those of no rotation if heads are rotated before.
#define rope_of(position, pair) (norms == norms_after ? vec2(0.0, 1.0) : rope_of_pair(position, word_pair(rope, pair)))
#define slot_of(position) (ring != 0u ? (position) % context : min(position, context))
#define PAGED
#include "slots.glsl"
#define position_of(token) (batched ? row_position(token) : first_position + (token))
#define cache_slot(token, position) (batched ? row_offset(token, position) : slot_of(position))
#include "epilogue.glsl"

// Two neighbouring pairs, rotated by the sines and cosines of each.
void rotate_pairs(vec2 a, vec2 b, inout vec2 lower, inout vec2 upper) {
  vec2 sine = vec2(a.x, b.x), cosine = vec2(a.y, b.y);
  precise vec2 turned_lower = lower * cosine - upper * sine, turned_upper = upper * cosine + lower * sine;
  lower = turned_lower;
  upper = turned_upper;
}
// Two channels of a norm's weight; the first channel is even.
vec2 two_weights(Words weight, uint channel) {
  vec4 quad = float_quad(weight, channel >> 2);
  return (channel & 2u) != 0u ? quad.zw : quad.xy;
}
// Rotates the pairs from channels `low` and `high` on, then multiplies them by the norm's weight if it comes later.
void turn_and_weigh(uint token, uint low, uint high, Words weight, inout vec2 lower, inout vec2 upper) {
  uint position = position_of(token);
  rotate_pairs(rope_of_pair(position, word_pair(rope, low)), rope_of_pair(position, word_pair(rope, low + 1u)), lower,
               upper);
  precise vec2 weighted_lower = lower * two_weights(weight, low), weighted_upper = upper * two_weights(weight, high);
  lower = weighted_lower;
  upper = weighted_upper;
}

// Writes the rotated channels of two neighbouring pairs back to shared_y, where their block waits for its last pair.
void keep_pairs(uint token, uint low, uint high, vec2 lower, vec2 upper) {
  if (!is_value) {
    uint position = position_of(token);
    rotate_pairs(rope_of(position, low), rope_of(position, low + 1u), lower, upper);
  }
  shared_y[low >> 2][low & 3u] = lower.x;
  shared_y[low >> 2][(low & 3u) + 1u] = lower.y;
  shared_y[high >> 2][high & 3u] = upper.x;
  shared_y[high >> 2][(high & 3u) + 1u] = upper.y;
}

// Factors of a block of 32 channels in shared_y, as in ggml's quantize_row_q8_0_ref and quantize_row_q4_0_ref: the
// stored factor, and the factor that turns channels into codes. A NaN or infinite channel makes the stored factor NaN:
// codes cannot express it. count: quads in shared_y
vec2 block_factors(uint block, uint count) {
  float largest = 0.0, signed_largest = 0.0;
  bool finite = true;
  for (uint quad = 8u * block; quad < min(8u * block + 8u, count); ++quad)
    LATER_UNROLLED for (uint i = 0u; i < 4u; ++i) {
      float x = shared_y[quad][i];
      finite = finite && (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u;
      if (abs(x) > largest) {
        largest = abs(x);
        signed_largest = x;
      }
    }
  precise float factor = cache_bits == 8u ? largest / 127.0 : signed_largest / -8.0;
  precise float inverse = 1.0 / factor;
  return finite ? vec2(factor, factor != 0.0 ? inverse : 0.0) : vec2(uintBitsToFloat(0x7fc00000u), 0.0);
}
uint code_of(float x, float inverse) {
  precise float scaled = inverse != 0.0 ? x * inverse : 0.0;
  if (cache_bits == 8u) {
    precise float away = scaled + (scaled < 0.0 ? -0.5 : 0.5);
    return uint(int(away)) & 255u;
  }
  precise float up = scaled + 8.5;
  return uint(clamp(int(up), 0, 15));
}
// Where a head's channels go in a coded cache.
struct coded_row {
  uint dim, octet_size, first_chunk;  // channels of a head; words of its octets; the chunk of the first channel
  bool by_rows;                       // as values are, with the chunks of a position side by side
};
// Writes `count` quads in shared_y to their position of a coded cache.
void store_codes(Words cache, coded_row at, uint head, uint token, uint count) {
  uint position = position_of(token), slot = cache_slot(token, position), in_octet = slot & 7u;
  if (slot >= context) return;
  uint base = (head * ((context + 7u) / 8u) + slot / 8u) * at.octet_size, code_words = at.dim * chunk_words;
  uint blocks = (count + 7u) / 8u;
  for (uint chunk = gl_LocalInvocationIndex; chunk < count / 2u; chunk += workgroup_size) {
    vec2 factors = block_factors(chunk / 4u, count);
    uint own = at.first_chunk + chunk;
    uint item = base + (at.by_rows ? in_octet * (at.dim / 8u) + own : own * 8u + in_octet) * chunk_words,
         words[2] = {0u, 0u};
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
      uint code = code_of(shared_y[2u * chunk + i / 4u][i & 3u], factors.y);
      if (cache_bits == 8u) words[i / 4u] |= code << (8u * (i & 3u));
      else words[0] |= code << (4u * i);
    }
    cache.at[item] = words[0];
    if (cache_bits == 8u) cache.at[item + 1u] = words[1];
    if ((own & 7u) == 0u)
      cache.at[base + code_words + factor_word(own, in_octet)] =
          pack_f16(factors.x, chunk / 4u + 1u < blocks ? block_factors(chunk / 4u + 1u, count).x : 0.0);
  }
}

// Words of an octet of a coded cache's keys that have the latent channels in front.
const uint joined_octet_words = joined_dim * chunk_words + 8u * ((joined_dim + 63u) / 64u);

// Writes two neighbouring channels of a key that has the latent channels in front.
void store_joined_key(uint slot, uint channel, vec2 pair) {
  uint first = ((slot / 8u * (joined_dim / 8u) + channel / 8u) * 8u + (slot & 7u)) * 8u;
  store_pair(keys, first + (channel & 7u), pair);
}
// Writes a rotated query after its latent channels, the rotated channels of the key, or the latent vector, which are
// in shared_y.
void store_joined(uint head, uint token) {
  if (is_query) {
    uint to = (token * heads + head) * (joined_dim / 4u), from = (token * heads + head) * value_quads;
    for (uint quad = gl_LocalInvocationIndex; quad < joined_dim / 4u; quad += workgroup_size)
      store_floats(output_, to + quad,
                   quad < value_quads ? float_quad(latent_query, from + quad) : shared_y[quad - value_quads]);
    return;
  }
  uint count = is_value ? value_quads : head_quads, first = is_value ? 0u : value_quads;
  if (coded_cache) {
    store_codes(keys, coded_row(joined_dim, joined_octet_words, first / 2u, false), 0u, token, count);
    if (is_value) store_codes(values, coded_row(latent, value_octet_words, 0u, true), 0u, token, count);
    return;
  }
  uint slot = cache_slot(token, position_of(token));
  if (slot >= context) return;
  for (uint i = gl_LocalInvocationIndex; i < 2u * count; i += workgroup_size) {
    vec4 quad = shared_y[i / 2u];
    vec2 pair = (i & 1u) == 0u ? quad.xy : quad.zw;
    store_joined_key(slot, 4u * first + 2u * i, pair);
    if (is_value) store_pair(values, slot * latent + 2u * i, pair);
  }
}

// Reads a head into shared_y. `first`: its first quad in the input; `in_norm`: in the weight of a norm of all heads.
void normalise(Words from, uint first, Words weight, uint in_norm) {
  bool all_heads = norms == norms_all_heads;
  float largest, r = inverse_rms(from, all_heads ? first - in_norm : first, weight, eps, largest);
  if (all_heads) {
    for (uint quad = gl_LocalInvocationIndex; quad < head_quads; quad += workgroup_size) {
      precise vec4 product = biased_quad(from, first + quad) * float_quad(weight, in_norm + quad);
      precise vec4 y = product * r;
      shared_y[quad] = y;
    }
    return;
  }
  for (uint chunk = 0u; chunk < norm_chunks; ++chunk) {
    reload_chunk(from, first, weight, chunk);
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) if (owns_quad(chunk, i)) shared_y[norm_quad(chunk, i)] =
        normalised(i, r);
  }
}

void main() {
  find_lane();
  uint head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  bool wanted = token < state.at[state_count];
  if (subgroup_width < 32u && !wanted)
    return;  // GPUs: after a return the driver diverges lanes, and everything waits for the count
  read_epilogue();
  is_query = head < heads;
  is_value = head >= heads + kv_heads;
  Words from = is_query ? q : is_value ? v : k;
  uint before = is_query   ? 0u
                : is_value ? heads + kv_heads
                           : heads,
       row = token * ((is_query   ? q_stride
                       : is_value ? v_stride
                                  : k_stride) /
                      4u),
       own = (head - before) * head_quads;
  bias_shift = before * head_quads - row;
  uint own_quads = is_value ? value_quads : head_quads;
  if (is_value ? v_norm != 0u || latent != 0u : norms != norms_none) {
    normalise(from, row + own, is_query ? q_norm : k_norm, own);
  } else {
    for (uint quad = gl_LocalInvocationIndex; quad < own_quads; quad += workgroup_size)
      shared_y[quad] = biased_quad(from, row + own + quad);
  }
  workgroup_barrier();
  for (uint i = gl_LocalInvocationIndex; i < head_dim / 4u; i += workgroup_size) {
    uint low = 2u * i, high = low + head_dim / 2u;  // two neighbouring pairs
    vec2 lower = vec2(shared_y[low >> 2][low & 3u], shared_y[low >> 2][(low & 3u) + 1u]),
         upper = vec2(shared_y[high >> 2][high & 3u], shared_y[high >> 2][(high & 3u) + 1u]);
    if (norms == norms_after && !is_value) turn_and_weigh(token, low, high, is_query ? q_norm : k_norm, lower, upper);
    if (latent != 0u ? !is_value : coded_cache && !is_query) keep_pairs(token, low, high, lower, upper);
    else if (latent == 0u && wanted) rope_cache(token, head * head_quads + i, vec4(lower.x, upper.x, lower.y, upper.y));
  }
  if (latent != 0u) {
    workgroup_barrier();
    if (wanted) store_joined(head, token);
  } else if (coded_cache && !is_query) {
    workgroup_barrier();
    if (wanted)
      store_codes(is_value ? values : keys, coded_row(head_dim, octet_words, 0u, is_value),
                  head - (is_value ? heads + kv_heads : heads), token, head_quads);
  }
}
