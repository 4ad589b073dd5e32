// SPDX-License-Identifier: MIT
// All layers of a pass over up to eight sessions in one resident dispatch, for GPUs on which all its workgroups run at
// once and which multiply f16 matrices. shaders/layers_coded.comp does the same for a single token; the products are
// those of shaders/matmul_chunk_batch.comp. The subgroups share a product's columns: each keeps its part of x in
// registers while it multiplies all rows of the workgroup, so that a multiprocessor reads x once. The subgroups' sums
// meet in shared memory, four tiles of 16 rows at a time (docs/kernels.md). Four workgroups share the columns of the
// down projection and exchange sums. x crosses workgroups as f16; every eight columns have a scale of their own. A norm
// is its weight, by which the writers of the stream multiply, and a factor per token, which the readers compute from
// sums of squares: it needs no other wait. Waits are as in layers_coded: unwritten words are all ones, no wait is
// endless, a timeout makes the result NaN. With INNER_NORMS a product's result is normalised before it is added to the
// stream: workgroups exchange its squares and wait for all of them; attention applies the norms of heads and rotations,
// there are windows, tiles of the stream need not divide evenly, and weights may be plain f16.
// variant: layers_rows -DWIDE_LOADS=0
// variant: layers_rows_normed -DWIDE_LOADS=0 -DINNER_NORMS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#pragma use_vulkan_memory_model
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 512;
layout(constant_id = 1) const uint hidden_size = 256;
layout(constant_id = 2) const uint intermediate_size = 1024;
layout(constant_id = 3) const uint layers = 8;
layout(constant_id = 4) const uint parts = 128;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint spin_limit = 1024;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint heads = 4;
layout(constant_id = 9) const uint kv_heads = 2;
layout(constant_id = 10) const uint context = 256;  // positions of the pool
layout(constant_id = 11) const uint codec = 0;
layout(constant_id = 12) const float scale = 0.0;
layout(constant_id = 13) const uint slot_words = 32;
layout(constant_id = 14) const uint page_size = 8;
#ifdef INNER_NORMS
layout(constant_id = 15) const uint window = 0;  // of all layers except each full_every-th
layout(constant_id = 16) const uint full_every = 1;
layout(constant_id = 17) const uint subgroup_width = 0;
#else
layout(constant_id = 15) const uint subgroup_width = 0;
#endif
layout(local_size_x_id = 0) in;

#define LATER_UNROLLED [[unroll]]
uint columns;  // of the product
#include "codec.glsl"
#include "half_codes.glsl"
#include "rows_codes.glsl"
#include "rows_matrices.glsl"
#include "rows_frame.glsl"

// kernels::layers_rows has the same numbers, and plan/resident_rows.hpp chooses shapes for which they suffice.
const uint most_rows = 8u;
const uint shares = 4u;  // of the down projection's columns
#ifdef INNER_NORMS
#define threads workgroup_size
const uint members = workgroup_size / 32u;
const uint most_slots = 2u, wide_columns = hidden_size > heads *head_dim ? hidden_size : heads *head_dim,
           widest = wide_columns > intermediate_size / shares ? wide_columns : intermediate_size / shares;
const uint slots = (widest / 128u + members - 1u) / members;  // steps of 128 columns per subgroup
#define EACH_SLOT(k)                                \
  [[unroll]] for (uint k = 0u; k < most_slots; ++k) \
    if (k < slots)
#else
const uint threads = 512u, members = threads / 32u;
const uint most_slots = 2u, slots = 2u;  // steps of 128 columns per subgroup
#define EACH_SLOT(k) [[unroll]] for (uint k = 0u; k < slots; ++k)
#endif
const uint step_quads =
    160u;  // of x: four octets of each of four blocks, and four scales of each block, of eight tokens
const uint hidden_tiles = hidden_size / 16u;  // tiles of 16 rows of the stream
#ifdef INNER_NORMS
#define own_tiles tile_count(projection)
const uint shared_tiles = hidden_tiles / (parts / shares);  // of the workgroups that share columns
#else
const uint own_tiles = hidden_tiles / parts, shared_tiles = shares * own_tiles;
#endif

// Offsets of the data that workgroups exchange in a layer, in bytes from its `exchange`.
const uint x_bytes = hidden_size / 8u * step_quads, square_bytes = hidden_tiles * 32u;
const uint x_at = 0u, squares_at = x_at + x_bytes, middle_at = squares_at + square_bytes,
           middle_squares_at = middle_at + x_bytes, attended_at = middle_squares_at + square_bytes,
           gated_at = attended_at + q_size / 8u * step_quads, query_at = gated_at + intermediate_size / 8u * step_quads,
           sums_at = query_at + qkv_size * 32u, projected_squares_at = sums_at + hidden_tiles * shares * 512u,
           lowered_squares_at = projected_squares_at + square_bytes;

// Sums of a batch of tiles, [tile, subgroup, 36]: a lane's four are one quad, and after each eight quads one is unused,
// so that no two invocations use the same bank. Also attention's values of a span.
#ifdef INNER_NORMS
const uint sum_quads = 35u;
#else
const uint sum_quads = 36u;
#endif
const uint batch = 4u, pool_quads = batch * members * sum_quads;
shared vec4 pool[pool_quads];
shared float token_squares[most_rows * 20u];
shared uint64_t addresses[2u * argument_count];
#ifdef INNER_NORMS
shared float head_squares[members];
#else
shared vec2 rotation[most_rows * (head_dim / 2u)];  // sine, cosine
#endif
shared uint positions[most_rows], ends[most_rows], cache_offsets[most_rows];  // by row; an end of 0 marks an unused row
#ifdef INNER_NORMS
const uint value_parts = head_dim / 64u, value_turns = 1u, most_turns = 1u,
           most_value_octets = 1u;  // workgroups that share the channels of values of a task of attention
#else
const uint value_parts = 1u, value_turns = 1u, most_turns = 1u, most_value_octets = 2u;
#endif
const uint heads_of_key = heads / kv_heads, heads_each = heads_of_key % 2u == 0u ? 2u : 1u;  // per task of attention
const uint tasks_of_row = heads / heads_each, tasks = most_rows * tasks_of_row * value_parts,
           kept_tasks = (tasks + parts - 1u) / parts;
shared uvec4 fresh[heads_each * chunks];             // queries as f16
shared uvec4 fresh_words[2u * chunks];               // key and value of this position, as the caches store them
shared uint octet_offsets[(kept_tasks + 1u) * 32u];  // of the tasks' first spans, and of one other
shared uint code_magic;

#define own_row (gl_LocalInvocationIndex & 15u)
#define own_token (gl_LocalInvocationIndex >> 4 & 7u)
#define own_tile (gl_LocalInvocationIndex >> 7)
uint rows, lane;
bool timed_out;
float residual;      // one of the workgroup's rows of the stream
float token_factor;  // 1 / root mean square of its token, for the product
row_part next_parts[most_slots * 2u];
tokens_of x_tokens[most_slots * 8u];
#ifdef INNER_NORMS
uvec4 next_quads[most_slots * 8u];  // of dense weights: [slot, half of the tile, quad]
// An octet of columns of a step is quad octet_quad of the quads that lane octet_lane of a token has: a lane has one
// block, or with dense weights four lanes have neighbouring octets.
uint octet_quad(uint o) { return dense ? o >> 2 & 3u : o & 3u; }
uint octet_lane(uint o) { return dense ? o & 3u : o >> 2 & 3u; }
#else
#define octet_quad(o) (uint(o) & 3u)
#define octet_lane(o) ((o) / 4u & 3u)
#endif
vec2 token_scales;  // of the tokens whose sums the lane has

#include "rows_exchange.glsl"
#include "rows_waits.glsl"

uint steps_of(uint product) { return columns_of(product) / (product == down ? 128u * shares : 128u); }
uint first_step(uint product) { return product == down ? gl_WorkGroupID.x % shares * steps_of(down) : 0u; }
uint tiles_of(uint product) { return rows_of(product) / 16u; }
uint tile_count(uint product) {
  return product == down
             ? shared_tiles
             : (gl_WorkGroupID.x + 1u) * tiles_of(product) / parts - gl_WorkGroupID.x * tiles_of(product) / parts;
}
// Tiles of the stream are ordered so that the four workgroups that share columns have neighbouring tiles. In the down
// projection a workgroup's own tiles begin the last batch, or form a batch of their own if tiles are not shared evenly:
// meanwhile the other workgroups write their sums of these tiles.
#ifdef INNER_NORMS
uint first_own() { return shared_tiles - own_tiles; }
#else
uint first_own() { return batch * own_tiles - batch; }
#endif
uint tile_at(uint product, uint i) {
  if (product != down) return gl_WorkGroupID.x * tiles_of(product) / parts + i;
  uint from = gl_WorkGroupID.x / shares * shared_tiles, own_from = gl_WorkGroupID.x * hidden_tiles / parts - from,
       first = first_own();
  uint its = i < first ? own_from + own_tiles + i : i < first + own_tiles ? own_from + i - first : own_from + i;
  return from + (its < shared_tiles ? its : its - shared_tiles);
}

// Address of a lane's weights of a product: rows lane / 4 + 8 * i, blocks of its subgroup's steps. `codes` is that of
// tile 0 and the first step. The distances lead to the second half of a block, to the second step (0 if the subgroup
// has none: x is 0 there) and to the next group of rows.
struct weight_address {
  uint64_t codes, factors;
  uint half_bytes, second, group_bytes;
};
weight_address address_of(uint64_t weight, uint product) {
  columns = columns_of(product);
  uint r = lane >> 2 & 3u, block = 4u * (first_step(product) + min(sub * slots, steps_of(product) - 1u)) + (lane & 3u);
  weight_address out_;
  out_.group_bytes = group_quads * 16u;
  uint64_t group = weight + uint64_t((lane >> 4) * out_.group_bytes);
  out_.half_bytes = blocks * 16u;
  out_.second = sub * slots + 1u < steps_of(product) ? 4u : 0u;
#ifdef INNER_NORMS
  if (dense) {
    out_.second = out_.second != 0u ? 16u : 0u;
    out_.codes =
        group +
        uint64_t((r * octets + 16u * (first_step(product) + min(sub * slots, steps_of(product) - 1u)) + (lane & 3u)) *
                 16u);
    return out_;
  }
#endif
  out_.codes = group + uint64_t((r * (codec == codec_q8_0 ? 2u : 1u) * blocks + block) * 16u);
  out_.factors = codec == codec_q8_0   ? group + uint64_t(128u * blocks + 8u * block + r / 2u * 4u)
                 : codec == codec_q4_0 ? group + uint64_t(64u * blocks + 8u * block + r / 2u * 4u)
                                       : group + uint64_t(64u * blocks + 16u * block + r * 4u);
  return out_;
}
const bool at_fixed_offsets = codec == codec_q8_0 || codec == codec_q4_0 || codec == codec_q4_1;
// With whole_tiles all loads of a tile are issued before the previous tile is multiplied.
row_part load_part(uint64_t weight, weight_address from, uint product, uint tile, uint i, uint k) {
  row_part part = row_part(raw_codes(uvec4(0u), uvec4(0u)), uvec4(0u));
  if (at_fixed_offsets) {
    uint64_t ahead = uint64_t(tile * 4u + 2u * i) * from.group_bytes;
    uint block = k == 0u ? 0u : from.second;
    part.raw.a = whole_tiles ? HeldQuads(from.codes + ahead).at[block] : WordQuads(from.codes + ahead).at[block];
    if (codec == codec_q8_0) part.raw.b = WordQuads(from.codes + ahead + uint64_t(from.half_bytes)).at[block];
    part.factor.x = HeldWords(from.factors + ahead).at[(codec == codec_q4_1 ? 4u : 2u) * block];
  } else {
    columns = columns_of(product);
    uint r = lane >> 2 & 3u,
         block = 4u * (first_step(product) + min(sub * slots + k, steps_of(product) - 1u)) + (lane & 3u);
    uvec2 group = unpackUint2x32(weight + uint64_t((tile * 4u + 2u * i + (lane >> 4)) * group_quads) * 16u);
    part.raw =
        load_codes(lane_addresses(group, advanced(group, 16u * block), advanced(group, 8u * block), uvec2(0u)), r);
    part.factor = load_factor(Words(group), r, block);
  }
  return part;
}
#ifdef INNER_NORMS
uvec4 load_quad(weight_address from, uint tile, uint i, uint k, uint q) {
  return WordQuads(from.codes + uint64_t(tile * 4u + 2u * i) * uint64_t(from.group_bytes))
      .at[(k == 0u ? 0u : from.second) + 4u * q];
}
bool works(uint product) { return sub * slots < steps_of(product); }
#define IF_WORKS(product) if (works(product))
#define FETCHED (last ? next_product : product)
#else
#define IF_WORKS(product)
#define FETCHED product
#endif
void fetch(uint64_t weight, weight_address from, uint product, uint tile) {
#ifdef INNER_NORMS
  if (!works(product)) {  // else they would keep the previous product's values, in registers until then
    if (!whole_tiles) {
      [[unroll]] for (uint n = 0u; n < most_slots * 2u; ++n)
        next_parts[n] = row_part(raw_codes(uvec4(0u), uvec4(0u)), uvec4(0u));
      [[unroll]] for (uint n = 0u; n < most_slots * 8u; ++n)
        next_quads[n] = uvec4(0u);
    }
    return;
  }
  if (dense) {
    EACH_SLOT(k)
    [[unroll]] for (uint i = 0u; i < 2u; ++i) [[unroll]]
      for (uint q = 0u; q < 4u; ++q) next_quads[(2u * k + i) * 4u + q] = load_quad(from, tile, i, k, q);
    return;
  }
#endif
  EACH_SLOT(k)
  [[unroll]] for (uint i = 0u; i < 2u; ++i)
    next_parts[2u * k + i] = load_part(weight, from, product, tile, i, k);
}
weight_address here;  // of the current product

// Squares of the stream, [tiles, tokens]: loaded right after the first quads of x, so that they arrive with these.
const uint square_count = hidden_tiles * most_rows, squares_each = (square_count + threads - 1u) / threads;
uint squares_of[squares_each];
void ask_squares(SharedWords from) {
  [[unroll]] for (uint i = 0u; i < squares_each; ++i)
    squares_of[i] = from.at[min(gl_LocalInvocationIndex + i * threads, square_count - 1u)];
}
void take_squares(SharedWords from) {
  float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < squares_each; ++i) {
    uint index = gl_LocalInvocationIndex + i * threads;
    precise float its = sum + uintBitsToFloat(awaited(from, min(index, square_count - 1u), squares_of[i]));
    if (index < square_count) sum = its;
  }
  precise float both = sum + subgroupShuffleXor(sum, 8u), all = both + subgroupShuffleXor(both, 16u);
  if (lane < most_rows) token_squares[lane * 20u + sub] = all;
}
// 1 / root mean square of a token.
float factor_of(uint token) {
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < members; ++i)
    sum = sum + token_squares[token * 20u + i];
  precise float mean = sum / float(hidden_size) + eps;
  return 1.0 / sqrt(mean);
}

// Loads x of the subgroup's steps into registers: f16 on the scale of the token's largest value.
void take(SharedQuads x, uint product, SharedWords squares) {
  uvec4 v[most_slots * 5u];
  uint from[most_slots];
  EACH_SLOT(k) {
    from[k] = (first_step(product) + min(sub * slots + k, steps_of(product) - 1u)) * step_quads + lane;
    [[unroll]] for (uint i = 0u; i < 5u; ++i)
      v[5u * k + i] = x.at[from[k] + 32u * i];
  }
  {  // two reads are in flight at any time, so that a new value is seen sooner
    uvec4 later = x.at[from[0]];
    uint tries = 0u;
    while (absent(v[0])) {
      v[0] = later;
      if (out_of_spins(++tries)) break;
      later = x.at[from[0]];
    }
    if (absent(v[0]) && !timed_out) time_out();
  }
  if (product == qkv || product == gate_up) ask_squares(squares);
  // Once the first quad is there, absent ones are read again together, then one after the other.
  EACH_SLOT(k)
  [[unroll]] for (uint i = 0u; i < 5u; ++i)
    if (k + i != 0u && absent(v[5u * k + i])) v[5u * k + i] = x.at[from[k] + 32u * i];
  EACH_SLOT(k)
  [[unroll]] for (uint i = 0u; i < 5u; ++i)
    if (k + i != 0u) v[5u * k + i] = awaited(x, from[k] + 32u * i, v[5u * k + i]);
  float most = 0.0;
  EACH_SLOT(k) {
    vec4 s = uintBitsToFloat(v[5u * k + 4u]);
    most = max(most, max(max(s.x, s.y), max(s.z, s.w)));
  }
  most = max(most, subgroupShuffleXor(most, 1u));
  most = max(most, subgroupShuffleXor(most, 2u));
  float inverse = uintBitsToFloat((254u << 23) - floatBitsToUint(most));  // powers of two
  EACH_SLOT(k) {
    bool has = sub * slots + k < steps_of(product);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      f16vec2 by = f16vec2(float16_t(has ? uintBitsToFloat(v[5u * k + 4u][i]) * inverse : 0.0));
      uvec4 q = v[5u * k + i];
      [[unroll]] for (uint e = 0u; e < 2u; ++e) {
        f16vec2 high = as_pair(e == 0u ? q.y : q.w) * by;
        x_tokens[8u * k + 2u * i + e][2] = high.x;
        x_tokens[8u * k + 2u * i + e][3] = high.y;
        f16vec2 low = as_pair(e == 0u ? q.x : q.z) * by;
        x_tokens[8u * k + 2u * i + e][0] = low.x;
        x_tokens[8u * k + 2u * i + e][1] = low.y;
      }
    }
  }
  token_scales = vec2(subgroupShuffle(most, (lane & 3u) * 8u), subgroupShuffle(most, (lane & 3u) * 8u + 4u));
}

// Writes an octet of a token for the workgroups that wait for it: words of columns 0 and 2, 1 and 3, 4 and 6, 5 and 7.
// The columns are in lanes `apart` from each other, 1 or 2.
void publish(uint64_t to, uint octet_, uint token, float y, uint apart, bool first) {
  float most = abs(y);
  [[unroll]] for (uint d = 1u; d < 8u; d <<= 1)
    most = max(most, subgroupShuffleXor(most, d * apart));
  uint its_scale = scale_bits(most);
  precise float scaled = y * by_scale(its_scale);
  uint its = half_word(scaled), word = its | subgroupShuffleXor(its, 2u * apart) << 16;
  uint w1 = subgroupShuffleXor(word, apart), w2 = subgroupShuffleXor(word, 4u * apart),
       w3 = subgroupShuffleXor(w1, 4u * apart);
  if (first) {
    uint quad = octet_ / 16u * step_quads + token * 4u + octet_lane(octet_);
    SharedQuads(to).at[quad + 32u * octet_quad(octet_)] = uvec4(word, w1, w2, w3);
    SharedWords(to).at[4u * (quad + 128u) + octet_quad(octet_)] = its_scale;
  }
}
// Writes the invocation's row of the stream, times the weight of the next norm, and the sum of squares of its tile.
void publish_stream(uint64_t x, uint64_t squares, uint64_t norm, uint tile) {
  precise float square = residual * residual;
  [[unroll]] for (uint d = 1u; d < 16u; d <<= 1) {
    precise float both = square + subgroupShuffleXor(square, d);
    square = both;
  }
  precise float weighted_ = residual * Floats(norm).at[tile * 16u + own_row];
  publish(x, (tile * 16u + own_row) / 8u, own_token, weighted_, 1u, (own_row & 7u) == 0u);
  if (own_row == 0u) SharedWords(squares).at[tile * most_rows + own_token] = floatBitsToUint(written(square));
}

// The model's activation of a gate and its `up`. C++ replaces the instruction that mod() becomes by it
// (kernels/splice.hpp).
float gated(float g, float up) { return mod(g, up); }

#ifdef INNER_NORMS
#include "rows_heads.glsl"
// Adds the invocation's row of a token to the stream, normalised, once the squares of all rows of the token are known.
void add_normalised(uint64_t squares_at_, uint64_t norm, uint tile, float y, bool wanted) {
  SharedWords squares = SharedWords(squares_at_);
  float weight = Floats(norm).at[tile * 16u + own_row];
  precise float square = y * y;
  [[unroll]] for (uint d = 1u; d < 16u; d <<= 1) {
    precise float both = square + subgroupShuffleXor(square, d);
    square = both;
  }
  if (wanted && own_row == 0u) squares.at[tile * most_rows + own_token] = floatBitsToUint(written(square));
  ask_squares(squares);
  take_squares(squares);
  barrier();
  precise float normalised = y * weight * factor_of(own_token), sum = residual + normalised;
  if (wanted) residual = sum;
}
#else
// A row of q, k or v of a token: rows of a group of four are channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2
// of a head.
void hand_on(uint layer, uint64_t exchange, uint row, float y, bool wanted) {
  uint head = row / head_dim, p = row % head_dim / 4u * 2u + (row >> 1 & 1u),
       channel = p + (row & 1u) * (head_dim / 2u);
  float other = subgroupShuffleXor(y, 1u);
  vec2 turn = rotation[own_token * (head_dim / 2u) + p];
  precise float turned = y * turn.y + ((row & 1u) != 0u ? other * turn.x : -(other * turn.x));
  if (row < q_size + kv_size) y = turned;
  uint its = half_word(y), pair = its | subgroupShuffleXor(its, 2u) << 16;
  if (!wanted) return;
  uint64_t query = exchange + uint64_t(query_at + own_token * qkv_size * 4u);
  if (row < q_size) SharedWords(query).at[head * head_dim + channel] = floatBitsToUint(written(y));
  if (row < q_size || (row & 2u) != 0u) return;
  SharedWords(query).at[q_size + (head - heads) * (head_dim / 2u) + channel / 2u] = pair;
  uint cache_offset = cache_offsets[own_token];
  if (own_token >= rows || cache_offset >= context) return;
  bool is_key = row < q_size + kv_size;
  uint kv_head = head - (is_key ? heads : heads + kv_heads);
  uint element = is_key ? key_index(kv_head, cache_offset, channel / 8u) * 8u + channel % 8u
                        : (kv_head * context + cache_offset) * head_dim + channel;
  Words(address(layer, is_key ? argument_keys : argument_values)).at[element / 2u] = pair;
}
#endif

// Finishes the sums of a batch of tiles; an invocation has one row of one token.
void finish(uint layer, uint product, uint first, uint last) {
  uint index = first + own_tile, count = tile_count(product), tile = tile_at(product, min(index, count - 1u));
  bool wanted = index <= last;
  uint its_lane = (own_row & 7u) * 4u + (own_token >> 1),
       from = min(own_tile, batch - 1u) * members * sum_quads + its_lane + its_lane / 8u,
       which = (own_row >> 3) * 2u + (own_token & 1u);
  precise float y = 0.0;
  [[unroll]] for (uint i = 0u; i < members; ++i)
    y = y + pool[from + i * sum_quads][which];
  if (first == 0u && (product == qkv || product == gate_up)) token_factor = factor_of(own_token);
  uint64_t exchange = address(layer, argument_exchange);
  if (product == qkv) {
    y = y * token_factor;
#ifdef INNER_NORMS
    if (wanted)
      SharedWords(exchange + uint64_t(query_at)).at[own_token * qkv_size + tile * 16u + own_row] =
          floatBitsToUint(written(y));
#else
    hand_on(layer, exchange, tile * 16u + own_row, y, wanted);
#endif
  } else if (product == gate_up) {
    y = y * token_factor;
    float up = subgroupShuffleXor(y, 1u);
    publish(exchange + uint64_t(gated_at), tile, own_token, gated(y, up), 2u, wanted && own_row == 0u);
  } else if (product == projection) {
#ifdef INNER_NORMS
    add_normalised(exchange + uint64_t(projected_squares_at), address(layer, argument_projected_norm), tile, y, wanted);
#else
    precise float sum = residual + y;
    if (wanted) residual = sum;
#endif
    if (own_tile < own_tiles)
      publish_stream(exchange + uint64_t(middle_at), exchange + uint64_t(middle_squares_at),
                     address(layer, argument_gate_up_norm), tile);
  } else {
    SharedWords sums = SharedWords(exchange + uint64_t(sums_at));
    uint share = gl_WorkGroupID.x % shares, own = tile * shares * 128u + (gl_LocalInvocationIndex & 127u);
    bool has_own = first == first_own(), is_own = has_own && own_tile < own_tiles;
    float sum = 0.0;
    if (is_own) {
      uint exchanged[shares];
      [[unroll]] for (uint i = 0u; i < shares; ++i)
        exchanged[i] = sums.at[own + i * 128u];
      [[unroll]] for (uint i = 0u; i < shares; ++i)
        exchanged[i] = i == share ? floatBitsToUint(y) : awaited(sums, own + i * 128u, exchanged[i]);
      vec4 its = uintBitsToFloat(uvec4(exchanged[0], exchanged[1], exchanged[2], exchanged[3]));
      precise float all = (its.x + its.y) + (its.z + its.w);
      sum = all;
    } else if (wanted) {
      sums.at[own + share * 128u] = floatBitsToUint(written(y));
    }
#ifdef INNER_NORMS
    if (has_own)
      add_normalised(exchange + uint64_t(lowered_squares_at), address(layer, argument_lowered_norm), tile, sum, is_own);
#else
    precise float next_residual = residual + sum;
    if (is_own) residual = next_residual;
#endif
    uint64_t next = addresses[(layer + 1u & 1u) * argument_count + argument_exchange];
    if (is_own && layer + 1u < layers)
      publish_stream(next + uint64_t(x_at), next + uint64_t(squares_at),
                     addresses[(layer + 1u & 1u) * argument_count + argument_qkv_norm], tile);
  }
}

// If the codec leaves enough registers, the weights of the next product's first tile are loaded during the last tile's
// multiplication and arrive while its x is waited for.
void multiply(uint layer, uint product, uint64_t weight) {
  uint next_product = product + 1u & 3u;
  const uint arguments_of[4] = {argument_qkv, argument_projection, argument_gate_up, argument_down};
  uint64_t next_weight = address(product == down ? min(layer + 1u, layers - 1u) : layer, arguments_of[next_product]);
  weight_address there = here;
  uint first_there = 0u;
  if (whole_tiles) {
    there = address_of(next_weight, next_product);
    first_there = tile_at(next_product, 0u);
  }
  uint count = tile_count(product), magic = code_magic, first = 0u;  // of a batch of tiles
  [[dont_unroll]] for (uint i = 0u; i < count; ++i) {
    sums_of sums[2];
    sums[0] = sums_of(0.0);
    sums[1] = sums_of(0.0);
    bool last = i + 1u == count;
    weight_address from = here;
    if (whole_tiles && last) from = there;
    uint following = !last ? tile_at(product, i + 1u) : first_there;
#ifdef INNER_NORMS
    if (dense) {
      IF_WORKS(product) EACH_SLOT(k) [[unroll]] for (uint q = 0u; q < 4u; ++q) {
        uvec4 words[2];
        [[unroll]] for (uint n = 0u; n < 2u; ++n) {
          words[n] = next_quads[(2u * k + n) * 4u + q];
          if (!last) next_quads[(2u * k + n) * 4u + q] = load_quad(from, following, n, k, q);
        }
        [[unroll]] for (uint e = 0u; e < 2u; ++e) {
          weights_of w = weights_matrix(dense_f16(e == 0u ? words[0].xy : words[0].zw),
                                        dense_f16(e == 0u ? words[1].xy : words[1].zw));
          sums[e] = coopMatMulAdd(w, x_tokens[8u * k + 2u * q + e], sums[e]);
        }
      }
    } else
#endif
    {
      row_part all[most_slots * 2u];
      [[unroll]] for (uint n = 0u; n < most_slots * 2u; ++n)
        all[n] = next_parts[n];
      if (whole_tiles) fetch(weight, from, FETCHED, following);
      IF_WORKS(product) EACH_SLOT(k) {
        if (!whole_tiles && !last) [[unroll]]
          for (uint n = 0u; n < 2u; ++n) next_parts[2u * k + n] = load_part(weight, from, product, following, n, k);
        block_factors by[2];
        uint block = 4u * (first_step(product) + sub * slots + k) + (lane & 3u);
        [[unroll]] for (uint n = 0u; n < 2u; ++n)
          by[n] = factors_of(all[2u * k + n].factor, lane >> 2 & 3u, block);
        [[unroll]] for (uint j = 0u; j < 8u; ++j) {
          weights_of w =
              weights_matrix(four_f16(all[2u * k], by[0], j, magic), four_f16(all[2u * k + 1u], by[1], j, magic));
          sums[j & 1u] = coopMatMulAdd(w, x_tokens[8u * k + j], sums[j & 1u]);
        }
      }
    }
    vec4 both;
    [[unroll]] for (uint n = 0u; n < 4u; ++n)
      both[n] = (sums[0][n] + sums[1][n]) * token_scales[n & 1u];
    pool[((i - first) * members + sub) * sum_quads + lane + lane / 8u] = both;
    if (i - first == batch - 1u || last || (product == down && i + 1u == first_own())) {
      barrier();
      finish(layer, product, first, i);
      barrier();
      first = i + 1u;
    }
  }
  here = there;
}

#define attention_quad(index) pool[members * heads_each * head_dim / 4u + (index)]
void publish_attended(uint64_t exchange, uint row, uint first_head, uint part, float results[most_turns]) {
  const uint its_channels = head_dim / value_parts;
  uint t = gl_LocalInvocationIndex,
       channel = (first_head + t / its_channels) * head_dim + part * its_channels + t % its_channels;
  publish(exchange + uint64_t(attended_at), channel / 8u % (q_size / 8u), row, results[0], 1u,
          t < heads_each * its_channels && (t & 7u) == 0u);
}
#include "rows_attention.glsl"

void step(uint layer, uint product) {
  const uint arguments_of[4] = {argument_qkv, argument_projection, argument_gate_up, argument_down};
  uint64_t exchange = address(layer, argument_exchange), weight = address(layer, arguments_of[product]);
  SharedWords squares = SharedWords(exchange + uint64_t(product == qkv ? squares_at : middle_squares_at));
  if (!whole_tiles) {
    here = address_of(weight, product);
    fetch(weight, here, product, tile_at(product, 0u));
  }
  take(SharedQuads(exchange + uint64_t(product == qkv          ? x_at
                                       : product == projection ? attended_at
                                       : product == gate_up    ? middle_at
                                                               : gated_at)),
       product, squares);
  if (product == qkv || product == gate_up) take_squares(squares);
  multiply(layer, product, weight);
}

void main() {
  timed_out = false;
  lane = gl_SubgroupInvocationID;
  uint t = gl_LocalInvocationIndex;
  if (t == 0u) code_magic = magic_of_codes;
  keep_addresses(0u);
  rows = min(state.at[state_count], most_rows);
  keep_rows();
  barrier();
  keep_first_octets();
#ifndef INNER_NORMS
  for (uint i = t; i < most_rows * (head_dim / 2u); i += threads)
    rotation[i] =
        rope_from_turns(positions[i / (head_dim / 2u)], WordPairs(address(0u, argument_rope)).at[i % (head_dim / 2u)]);
#endif
  // The code below is written for these values; the plan uses no others.
  uint end = layers;
  if (workgroup_size != threads || subgroup_width != 32u) {
    end = 0u;
    time_out();
  }
  uint tile = tile_at(projection, min(own_tile, own_tiles - 1u)),
       element = own_token * hidden_size + tile * 16u + own_row;
  uint64_t stream = address(0u, argument_stream);
  residual = 0.0;
  if (ends[own_token] != 0u) residual = Floats(stream).at[element];
  if (own_tile < own_tiles)
    publish_stream(address(0u, argument_exchange) + uint64_t(x_at),
                   address(0u, argument_exchange) + uint64_t(squares_at), address(0u, argument_qkv_norm), tile);
  here = address_of(address(0u, argument_qkv), qkv);
  if (whole_tiles) fetch(address(0u, argument_qkv), here, qkv, tile_at(qkv, 0u));
  [[dont_unroll]] for (uint layer = 0u; layer < end; ++layer) {
    barrier();
    if (layer + 1u < layers) keep_addresses(layer + 1u);
    barrier();
    [[dont_unroll]] for (uint product = qkv; product <= down; ++product) {
      step(layer, product);
      if (product == qkv) attention(layer);
    }
  }
  if (own_tile < own_tiles && own_token < rows) Floats(stream).at[element] = residual;
  leave(stream);
}
