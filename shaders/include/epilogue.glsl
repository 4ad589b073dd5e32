// SPDX-License-Identifier: MIT
// The epilogue of a product of ternary weights for four rows of a token: scale, then store, add to the residual stream,
// rotate and write to the cache, or gate. The including shader has the specialization constants and push constants that
// are named here.
#ifndef INTAGLIO_EPILOGUE
#define INTAGLIO_EPILOGUE

#ifndef rope_of  // sine and cosine of a pair of channels at a position
#define rope_of(position, pair) rope_turn(position, pair, head_dim, rope_theta)
#endif
#ifndef slot_of  // the cache's slot for a position, or `context`, which means none
#define slot_of(position) min(position, context)
#endif
#ifndef position_of  // a token's position
#define position_of(token) (first_position + (token))
#endif
#ifndef cache_slot  // the cache's slot for it
#define cache_slot(token, position) slot_of(position)
#endif
#ifndef added_to  // the stream to which a product is added, if it is not the output
#define added_to output_
#endif

const uint epilogue_add = 1u, epilogue_rope_cache = 2u, epilogue_gated = 3u;

uint first_position;

#ifdef UNSCALED
void read_epilogue() {
  if (epilogue == epilogue_rope_cache) first_position = state.at[state_position];
}
#else
// Read once, by every lane.
float scale_of[3];

void read_epilogue() {
  scale_of[0] = Floats(scales).at[0];
  if (epilogue == epilogue_rope_cache || epilogue == epilogue_gated) scale_of[1] = Floats(scales).at[1];
  if (epilogue == epilogue_rope_cache) {
    scale_of[2] = Floats(scales).at[2];
    first_position = state.at[state_position];
  }
}

// Scales of a group's rows.
vec4 row_scales(uint group) {
  vec4 scale = vec4(scale_of[0]);
  if (epilogue == epilogue_gated) scale.yw = vec2(scale_of[1]);
  if (epilogue == epilogue_rope_cache && 4u * group >= q_size)
    scale = vec4(4u * group < q_size + kv_size ? scale_of[1] : scale_of[2]);
  return scale;
}
#endif

// The model's activation of a gate and its `up`. C++ replaces the instruction that mod() becomes by it
// (kernels/splice.hpp). No kernel that gates uses mod() of floats for anything else.
float gated(float g, float up) { return mod(g, up); }

// Writes two neighbouring channels to the cache.
void store_pair(Words cache, uint element, vec2 pair) {
  if (cache_element == element_f32) store_floats(cache, element / 2u, pair);
  else cache.at[element / 2u] = pack_f16(pair.x, pair.y);
}

// Rows of one group: channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2 of one head of q, k or v.
void rope_cache(uint token, uint group, vec4 y) {
  uint first = 4u * group, head = first / head_dim, p = (first % head_dim) / 2u, half_dim = head_dim / 2u;
  uint position = position_of(token);
  vec2 low = y.xz, high = y.yw;
  if (first < q_size + kv_size) {
    vec2 a = rope_of(position, p), b = rope_of(position, p + 1u);
    vec2 sine = vec2(a.x, b.x), cosine = vec2(a.y, b.y);
    precise vec2 turned_low = low * cosine - high * sine, turned_high = high * cosine + low * sine;
    low = turned_low;
    high = turned_high;
  }
  if (first < q_size) {
    uint at = token * q_size + head * head_dim + p;
    store_floats(output_, at / 2u, low);
    store_floats(output_, (at + half_dim) / 2u, high);
  } else if (cache_slot(token, position) < context) {
    uint slot = cache_slot(token, position);
    bool is_key = first < q_size + kv_size;
    uint kv_head = head - (is_key ? q_size : q_size + kv_size) / head_dim;
    // Values [kv_heads, context, head_dim]; keys [kv_heads, octets, chunks of 8 channels, 8 positions, 8 channels].
    uint first_at = (kv_head * (is_key ? (context + 7u) & ~7u : context) + (is_key ? slot & ~7u : slot)) * head_dim +
                    (is_key ? 8u * (slot & 7u) : 0u);
    uint apart = is_key ? 7u : 0u;
    Words cache = is_key ? keys : values;
    LATER_UNROLLED for (uint i = 0u; i < 2u; ++i) {
      uint channel = p + i * half_dim;
      store_pair(cache, first_at + channel + apart * (channel & ~7u), i == 0u ? low : high);
    }
  }
}

// The scaled sums of one token and one group of rows.
void finish(uint token, uint group, vec4 y) {
  uint quad = token * (rows / 4u) + group;
  if (epilogue == epilogue_rope_cache) {
    rope_cache(token, group, y);
  } else if (epilogue == epilogue_gated) {
    store_floats(output_, quad, vec2(gated(y.x, y.y), gated(y.z, y.w)));
  } else if (epilogue == epilogue_add) {
    precise vec4 sum = float_quad(added_to, quad) + y;
    store_floats(output_, quad, sum);
  } else {
    store_floats(output_, quad, y);
  }
}

#endif
