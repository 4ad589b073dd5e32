// SPDX-License-Identifier: MIT
// All layers of a pass over up to 32 sessions in one resident dispatch, for GPUs on which all its workgroups run at
// once and which multiply f16 matrices. shaders/layers_rows.comp does the same for up to eight sessions and keeps x in
// registers. Here a subgroup has 16 rows and reads their weights once; all subgroups share x, which goes through shared
// memory in steps of 128 columns of every token. Four workgroups share the columns of all products except gate and up
// and exchange sums: each reads a quarter of x. A few further workgroups only write the unwritten pattern where the
// others will exchange data. x crosses workgroups as f16; a workgroup's columns of a token have a scale of their own. A
// norm is its weight, by which the writers of the stream multiply, and a factor per token, which the readers compute
// from sums of squares. Waits are as in layers_rows: unwritten words are all ones, no wait is endless, a timeout makes
// the result NaN. With INNER_NORMS a product's result is normalised before it is added to the stream: workgroups
// exchange its squares and wait for all of them; attention applies the norms of heads and rotations, there are windows,
// octets of the stream and stages of columns need not divide evenly, and weights may be plain f16.
// variant: layers_batch -DWIDE_LOADS=0
// variant: layers_batch_normed -DWIDE_LOADS=0 -DINNER_NORMS=1
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
layout(constant_id = 13) const uint slots = 32;
layout(constant_id = 14) const uint slot_words = 32;
layout(constant_id = 15) const uint page_size = 8;
#ifdef INNER_NORMS
layout(constant_id = 16) const uint window = 0;  // of all layers except each full_every-th
layout(constant_id = 17) const uint full_every = 1;
layout(constant_id = 18) const uint subgroup_width = 0;
#else
layout(constant_id = 16) const uint subgroup_width = 0;
#endif
layout(local_size_x_id = 0) in;

#define LATER_UNROLLED [[unroll]]
uint columns;  // of the product
#include "codec.glsl"
#include "half_codes.glsl"
#include "rows_codes.glsl"
#include "rows_matrices.glsl"
#include "rows_frame.glsl"

// kernels::layers_batch has the same numbers, and plan/resident_rows.hpp chooses shapes for which they suffice.
const uint threads = 512u, members = threads / 32u, shares = 4u;
const uint most_scale_quads = 3u;                                        // per invocation: 16 have a token's
const uint row_groups = (slots + 7u) / 8u, most_rows = row_groups * 8u;  // of tokens
const uint own_qkv = qkv_size / 16u / parts,
           shared_tiles = hidden_size / 16u /
                          (parts / shares);  // of 16 rows; for the stream, tiles of the workgroups that share columns
const uint most_octets = (hidden_size / 8u + parts - 1u) / parts,
           row_quads = 2u * most_octets;  // of the stream, at most, per workgroup
#ifdef INNER_NORMS
const uint value_slices = (head_dim + 127u) / 128u,
           most_turns =
               2u;  // of 128 channels of values: one per workgroup if there are enough workgroups, else in turn
uint octet_at(uint workgroup) { return workgroup * (hidden_size / 8u) / parts; }
#define first_octet octet_at(gl_WorkGroupID.x)
#define own_octets (octet_at(gl_WorkGroupID.x + 1u) - first_octet)
const uint heads_of_key = heads / kv_heads, heads_each = heads_of_key % 2u == 0u ? 2u : 1u;  // per task of attention
#else
const uint value_slices = 1u, most_turns = 1u, own_octets = most_octets;
#define first_octet (gl_WorkGroupID.x * own_octets)
const uint heads_of_key = heads / kv_heads, heads_each = heads_of_key % 4u == 0u   ? 4u
                                                         : heads_of_key % 2u == 0u ? 2u
                                                                                   : 1u;
#endif
const uint tasks_of_row = heads / heads_each,
           value_turns = most_rows * tasks_of_row * value_slices > parts ? value_slices : 1u,
           value_parts = value_slices / value_turns, most_value_octets = 2u;
const uint tasks = most_rows * tasks_of_row * value_parts, kept_tasks = (tasks + parts - 1u) / parts;

// Offsets of the data that workgroups exchange in a layer, in bytes from its `exchange`: x as f16, scales of the
// columns that a workgroup or a task of attention writes of a token, squares; then inputs of attention, sums of
// products with shared columns, and a word per helper.
const uint x_at = 0u, middle_at = x_at + most_rows * hidden_size * 2u,
           attended_at = middle_at + most_rows * hidden_size * 2u, gated_at = attended_at + most_rows * q_size * 2u,
           x_scales_at = gated_at + most_rows * intermediate_size * 2u,
           middle_scales_at = x_scales_at + most_rows * parts * 4u,
           attended_scales_at = middle_scales_at + most_rows * parts * 4u,
           gated_scales_at = attended_scales_at + most_rows * tasks_of_row * value_slices * 4u,
           squares_at = gated_scales_at + most_rows * parts * 4u,
           middle_squares_at = squares_at + most_rows * parts * 4u,
           query_at = middle_squares_at + most_rows * parts * 4u, qkv_sums_at = query_at + most_rows * qkv_size * 4u,
           projection_sums_at = qkv_sums_at + most_rows * qkv_size * shares * 4u,
           down_sums_at = projection_sums_at + most_rows * hidden_size * shares * 4u,
           after_sums = down_sums_at + most_rows * hidden_size * shares * 4u;
#ifdef INNER_NORMS
const uint projected_squares_at = after_sums, lowered_squares_at = projected_squares_at + most_rows * parts * 4u,
           blanked_at = lowered_squares_at + most_rows * parts * 4u;
#else
const uint blanked_at = after_sums;
#endif

const uint first_blank =
    2u;  // kernels::layers_batch::blank_layers: their exchange is unwritten before the pass; helpers blank the others

// Holds two stages (each two steps) of x, [step, group of tokens, octet of a block, token, block], or sums, [subgroup,
// token, four quads of rows].
const uint step_quads = row_groups * 128u, buffer_quads = 2u * step_quads, sum_quads = most_rows * 4u;
shared vec4 pool[2048];
shared vec4 scratch[320];  // exponents of scales; a workgroup's results of its rows
shared float square_parts[most_rows * 9u];
shared uint64_t addresses[2u * argument_count];
#ifdef INNER_NORMS
shared float head_squares[members], norm_factors[most_rows];
#else
shared vec4 rotation[own_qkv * most_rows *
                     4u];  // sine and cosine, twice, of the quads of rows of q, k and v that a workgroup owns
#endif
shared uint positions[most_rows], ends[most_rows], cache_offsets[most_rows];  // by row; an end of 0 marks an unused row
shared float token_scales[most_rows];
shared uvec4 fresh[heads_each * chunks];             // queries as f16
shared uvec4 fresh_words[2u * chunks];               // key and value of this position, as the caches store them
shared uint octet_offsets[(kept_tasks + 1u) * 32u];  // of the tasks' first spans, and of one other
shared uint code_magic;

#define scratched(index) scratch[(index) >> 2][uint(index) & 3u]
uint rows, lane;
bool timed_out;
vec4 residual;           // of a quad of the workgroup's rows of the stream
row_part next_parts[4];  // [unit & 1, half of the tile]

#include "rows_exchange.glsl"
#include "rows_waits.glsl"
#include "rows_spans.glsl"

uvec4 written(vec4 a) { return floatBitsToUint(vec4(written(a.x), written(a.y), written(a.z), written(a.w))); }

bool shares_columns(uint product) { return product != gate_up; }
uint share() { return gl_WorkGroupID.x % shares; }
const uint gate_up_tiles = (intermediate_size / 8u + parts - 1u) / parts;  // per workgroup, at most
uint most_tiles(uint product) {
  return product == gate_up ? gate_up_tiles : product == qkv ? shares * own_qkv : shared_tiles;
}
uint first_tile(uint product) {
  return product == gate_up ? gl_WorkGroupID.x * (intermediate_size / 8u) / parts
                            : gl_WorkGroupID.x / shares * most_tiles(product);
}
uint tile_count(uint product) {
  return product == gate_up ? (gl_WorkGroupID.x + 1u) * (intermediate_size / 8u) / parts - first_tile(gate_up)
                            : most_tiles(product);
}
uint ways_of(uint product) {
  return 2u * most_tiles(product) <= members ? 2u : 1u;
}  // subgroups that share the columns of a tile
// A stage is two steps of 128 columns. These are the stages of the workgroup.
#ifdef INNER_NORMS
uint stage_at(uint product, uint its_share) { return its_share * (columns_of(product) / 256u) / shares; }
uint first_own_stage(uint product) { return shares_columns(product) ? stage_at(product, share()) : 0u; }
uint stages_of(uint product) {
  return shares_columns(product) ? stage_at(product, share() + 1u) - stage_at(product, share())
                                 : columns_of(product) / 256u;
}
#else
uint stages_of(uint product) { return columns_of(product) / (shares_columns(product) ? 256u * shares : 256u); }
uint first_own_stage(uint product) { return shares_columns(product) ? share() * stages_of(product) : 0u; }
#endif

// One subgroup waits for the data that is likely written last, so that few reads are issued meanwhile; the other
// subgroups wait at the barrier.
void await_by_one(uint subgroup, SharedQuads x, uint quad, bool wanted) {
  if (sub == subgroup && wanted) awaited(x, quad, x.at[quad]);
  barrier();
}
uint last_token_quad(uint count) {
  return (most_rows - 1u) * count + min(lane, count - 1u);
}  // a lane's quad of the last token, if each token has `count` quads

#include "batch_x.glsl"
#include "batch_products.glsl"

// Writes an octet of a token for the workgroups that wait for it: words of columns 0 and 2, 1 and 3, 4 and 6, 5 and 7.
void publish(uint64_t to, uint o, uint token, uint its_scale, vec4 low, vec4 high) {
  float by = by_scale(its_scale);
  precise vec4 a = low * by, b = high * by;
  SharedQuads(to).at[octet_quad(o, token)] =
      uvec4(half_word(a.x) | half_word(a.z) << 16, half_word(a.y) | half_word(a.w) << 16,
            half_word(b.x) | half_word(b.z) << 16, half_word(b.y) | half_word(b.w) << 16);
}
float largest_of(vec4 a) { return max(max(abs(a.x), abs(a.y)), max(abs(a.z), abs(a.w))); }

// A quad of the workgroup's rows of the stream. Behind the last one it is the last one again, whose residual is 0.
uint own_quad(uint quad) { return 2u * first_octet + min(quad, 2u * own_octets - 1u); }
bool has_quad(uint quad) { return quad < 2u * own_octets; }
// The sum of squares of a token over the workgroup's rows.
float squares_of(uint token) {
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < row_quads; ++i)
    sum = sum + square_parts[token * 9u + i];
  return sum;
}
// Writes the workgroup's rows of the stream, times the weight of the next norm, and the sums of their squares. An
// invocation has a quad of rows of a token.
void publish_stream(uint64_t exchange, uint codes, uint scales, uint squares, uint64_t norm) {
  uint t = gl_LocalInvocationIndex, token = t / row_quads, quad = t % row_quads;
  if (token < most_rows) {
    precise vec4 weighted_ = residual * FloatQuads(norm).at[own_quad(quad)], square = residual * residual;
    precise float four = (square.x + square.y) + (square.z + square.w);
    scratch[token * (row_quads + 1u) + quad] = weighted_;
    square_parts[token * 9u + quad] = four;
  }
  barrier();
  token = t / most_octets;
  uint o = t % most_octets;
  if (token < most_rows && o < own_octets) {
    float most = 0.0;
    [[unroll]] for (uint i = 0u; i < row_quads; ++i)
      most = max(most, largest_of(scratch[token * (row_quads + 1u) + i]));
    uint its_scale = scale_bits(most);
    publish(exchange + uint64_t(codes), first_octet + o, token, its_scale, scratch[token * (row_quads + 1u) + 2u * o],
            scratch[token * (row_quads + 1u) + 2u * o + 1u]);
    if (o == 0u) {
      SharedWords(exchange + uint64_t(scales)).at[token * parts + gl_WorkGroupID.x] = its_scale;
      SharedWords(exchange + uint64_t(squares)).at[token * parts + gl_WorkGroupID.x] =
          floatBitsToUint(written(squares_of(token)));
    }
  }
}

// The model's activation of a gate and its `up`. C++ replaces the instruction that mod() becomes by it
// (kernels/splice.hpp).
float gated(float g, float up) { return mod(g, up); }

#ifdef INNER_NORMS
#include "rows_heads.glsl"
// Adds four rows of a token to the stream, normalised, once the squares of all rows of all tokens are known.
void add_normalised(uint64_t squares_at_, uint64_t norm, vec4 y) {
  SharedWords to = SharedWords(squares_at_);
  SharedQuads squares = SharedQuads(squares_at_);
  uint t = gl_LocalInvocationIndex, token = t / row_quads, quad = t % row_quads,
       read_token = min(t / 16u, most_rows - 1u);
  const uint count = parts / 4u;
  vec4 weight = FloatQuads(norm).at[own_quad(quad)];
  precise vec4 square = y * y;
  precise float four = (square.x + square.y) + (square.z + square.w);
  if (token < most_rows) square_parts[token * 9u + quad] = four;
  barrier();
  if (t < most_rows) to.at[t * parts + gl_WorkGroupID.x] = floatBitsToUint(written(squares_of(t)));
  await_by_one(members - 1u, squares, last_token_quad(count), true);
  uvec4 exchanged[most_scale_quads];
  [[unroll]] for (uint k = 0u; k < most_scale_quads; ++k)
    if (64u * k < parts) exchanged[k] = squares.at[read_token * count + min(t % 16u + 16u * k, count - 1u)];
  precise float sum = 0.0;
  [[unroll]] for (uint k = 0u; k < most_scale_quads; ++k)
    if (64u * k < parts) {
      uint index = t % 16u + 16u * k, from = read_token * count + min(index, count - 1u);
      vec4 its = uintBitsToFloat(awaited(squares, from, exchanged[k]));
      precise float of_quad = (its.x + its.y) + (its.z + its.w), more = sum + of_quad;
      if (index < count) sum = more;
    }
  [[unroll]] for (uint d = 8u; d >= 1u; d >>= 1) {
    precise float both = sum + subgroupShuffleXor(sum, d);
    sum = both;
  }
  precise float mean = sum / float(hidden_size) + eps;
  if (t < 16u * most_rows && t % 16u == 0u) norm_factors[t / 16u] = 1.0 / sqrt(mean);
  barrier();
  precise vec4 normalised = y * weight * norm_factors[min(token, most_rows - 1u)], next = residual + normalised;
  if (has_quad(quad)) residual = next;
}
#else
// Four rows of q, k or v of a token: channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2 of a head.
void hand_on(uint layer, uint64_t exchange, uint row, uint token, vec4 y, vec4 turn) {
  uint head = row / head_dim, p = row % head_dim / 4u * 2u;
  if (row < q_size + kv_size) {
    precise vec4 turned = vec4(y.x * turn.y - y.y * turn.x, y.y * turn.y + y.x * turn.x, y.z * turn.w - y.w * turn.z,
                               y.w * turn.w + y.z * turn.z);
    y = turned;
  }
  SharedWords query = SharedWords(exchange + uint64_t(query_at + token * qkv_size * 4u));
  if (row < q_size) {
    uvec4 its = written(y);
    uint at = head * head_dim + p;
    query.at[at] = its.x;
    query.at[at + 1u] = its.z;
    query.at[at + head_dim / 2u] = its.y;
    query.at[at + head_dim / 2u + 1u] = its.w;
    return;
  }
  uvec2 pairs = uvec2(half_word(y.x) | half_word(y.z) << 16, half_word(y.y) | half_word(y.w) << 16);
  bool is_key = row < q_size + kv_size;
  uint kv_head = head - (is_key ? heads : heads + kv_heads), cache_offset = cache_offsets[token];
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    uint channel = p + i * (head_dim / 2u);
    query.at[q_size + (head - heads) * (head_dim / 2u) + channel / 2u] = pairs[i];
    if (token < rows && cache_offset < context) {
      uint element = is_key ? key_index(kv_head, cache_offset, channel / 8u) * 8u + channel % 8u
                            : (kv_head * context + cache_offset) * head_dim + channel;
      Words(address(layer, is_key ? argument_keys : argument_values)).at[element / 2u] = pairs[i];
    }
  }
}

#endif

void finish(uint layer, uint product) {
  uint t = gl_LocalInvocationIndex, ways = ways_of(product), count = tile_count(product), from = first_tile(product);
  uint64_t exchange = address(layer, argument_exchange);
  if (product == gate_up) {
    uint tile = t / most_rows, token = t % most_rows;
    vec4 out_[2];
    out_[0] = out_[1] = vec4(0.0);
    bool wanted = tile < count;
    if (wanted) {
      [[unroll]] for (uint q = 0u; q < 4u; ++q) {
        precise vec4 y = workgroup_sum(ways, tile, token, q) * token_scales[token];
        out_[q / 2u][q % 2u * 2u] = gated(y.x, y.y);
        out_[q / 2u][q % 2u * 2u + 1u] = gated(y.z, y.w);
      }
      scratched(token * 20u + tile) = max(largest_of(out_[0]), largest_of(out_[1]));
    }
    barrier();
    if (wanted) {
      float most = 0.0;
      [[unroll]] for (uint i = 0u; i < 16u; ++i)
        if (i < count) most = max(most, scratched(token * 20u + i));
      uint its_scale = scale_bits(most);
      publish(exchange + uint64_t(gated_at), from + tile, token, its_scale, out_[0], out_[1]);
      if (tile == 0u)
        SharedWords(exchange + uint64_t(gated_scales_at)).at[token * parts + gl_WorkGroupID.x] = its_scale;
    }
  } else {
    const uint tile_quads = most_rows * 4u, team_octets = 2u * shared_tiles;
    uint own_from = first_octet % team_octets;  // among the octets of the workgroups that share the stream's columns
    SharedQuads exchanged = SharedQuads(exchange + uint64_t(product == qkv          ? qkv_sums_at
                                                            : product == projection ? projection_sums_at
                                                                                    : down_sums_at));
    for (uint i = t; i < count * tile_quads; i += threads) {
      uint tile = i / tile_quads, token = i / 4u % most_rows, q = i % 4u, its_octet = tile * 2u + q / 2u;
      bool is_own =
          product == qkv ? tile / own_qkv == share() : its_octet >= own_from && its_octet < own_from + own_octets;
      if (!is_own)
        exchanged.at[((from + tile) * shares + share()) * tile_quads + token * 4u + q] =
            written(workgroup_sum(ways, tile, token, q));
    }
    // The workgroup's own quads: of q, k and v, tile after tile; of the stream, token after token.
    uint quad = t % row_quads, of_team = 2u * own_from + min(quad, 2u * own_octets - 1u);
    uint its = product == qkv ? own_qkv * share() + t / tile_quads : of_team / 4u,
         token = product == qkv ? t / 4u % most_rows : t / row_quads, q = product == qkv ? t % 4u : of_team % 4u;
    bool wanted = product == qkv ? t < own_qkv * tile_quads : token < most_rows && has_quad(quad);
    uint last = product == qkv ? own_qkv * (share() + 1u) * 4u - 1u
                               : 2u * (own_from + own_octets) - 1u;  // quad of rows of the tiles
    await_by_one(
        members - 1u, exchanged,
        ((from + last / 4u) * shares + min(lane, shares - 1u)) * tile_quads + (most_rows - 1u) * 4u + last % 4u,
        lane < shares && lane != share());
    vec4 sum = vec4(0.0);
    if (wanted) {
      uint at = (from + its) * shares * tile_quads + token * 4u + q;
      uvec4 parts_[shares];
      [[unroll]] for (uint i = 0u; i < shares; ++i)
        parts_[i] = exchanged.at[at + i * tile_quads];
      vec4 mine = workgroup_sum(ways, its, token, q);
      [[unroll]] for (uint i = 0u; i < shares; ++i)
        parts_[i] = i == share() ? floatBitsToUint(mine) : awaited(exchanged, at + i * tile_quads, parts_[i]);
      precise vec4 all = ((uintBitsToFloat(parts_[0]) + uintBitsToFloat(parts_[1])) +
                          (uintBitsToFloat(parts_[2]) + uintBitsToFloat(parts_[3]))) *
                         token_scales[token];
      sum = all;
#ifdef INNER_NORMS
      if (product == qkv)
        SharedQuads(exchange + uint64_t(query_at)).at[token * (qkv_size / 4u) + (from + its) * 4u + q] = written(sum);
#else
      if (product == qkv) hand_on(layer, exchange, (from + its) * 16u + 4u * q, token, sum, rotation[t]);
#endif
    }
    if (product != qkv) {
      bool ends_layer = product == down;
#ifdef INNER_NORMS
      add_normalised(exchange + uint64_t(ends_layer ? lowered_squares_at : projected_squares_at),
                     address(layer, ends_layer ? argument_lowered_norm : argument_projected_norm), sum);
#else
      precise vec4 next_ = residual + sum;
      residual = next_;
#endif
      uint64_t to = ends_layer ? addresses[(layer + 1u & 1u) * argument_count + argument_exchange] : exchange;
      uint64_t norm = ends_layer ? addresses[(layer + 1u & 1u) * argument_count + argument_qkv_norm]
                                 : address(layer, argument_gate_up_norm);
      if (!ends_layer || layer + 1u < layers)
        publish_stream(to, ends_layer ? x_at : middle_at, ends_layer ? x_scales_at : middle_scales_at,
                       ends_layer ? squares_at : middle_squares_at, norm);
    }
  }
  barrier();
}

#define attention_quad(index) scratch[index]
// Writes attention's result of a task. It is staged in scratch, after the values of a span.
void publish_attended(uint64_t exchange, uint row, uint first_head, uint part, float results[most_turns]) {
  const uint head_octets = chunks / value_slices, turn_octets = heads_each * head_octets, results_at = 8u * members,
             mosts_at = results_at + value_turns * turn_octets * 8u;
  uint t = gl_LocalInvocationIndex;
  [[unroll]] for (uint turn = 0u; turn < most_turns; ++turn)
    if (turn < value_turns && t < 8u * turn_octets) scratched(results_at + turn * turn_octets * 8u + t) = results[turn];
  barrier();
  if (t < value_turns * turn_octets)
    scratched(mosts_at + t) =
        max(largest_of(scratch[results_at / 4u + 2u * t]), largest_of(scratch[results_at / 4u + 2u * t + 1u]));
  barrier();
  if (t < value_turns * turn_octets) {
    uint turn = t / turn_octets, its = t % turn_octets, slice = part * value_turns + turn;
    float most = 0.0;
    [[unroll]] for (uint i = 0u; i < turn_octets / 4u; ++i)
      most = max(most, largest_of(scratch[(mosts_at + turn * turn_octets) / 4u + i]));
    uint its_scale = scale_bits(most);
    publish(exchange + uint64_t(attended_at),
            (first_head + its / head_octets) * chunks + slice * head_octets + its % head_octets, row, its_scale,
            scratch[results_at / 4u + 2u * t], scratch[results_at / 4u + 2u * t + 1u]);
    if (its == 0u)
      SharedWords(exchange + uint64_t(attended_scales_at))
          .at[(row * tasks_of_row + first_head / heads_each) * value_slices + slice] = its_scale;
  }
}
#include "rows_attention.glsl"

void step(uint layer, uint product) {
  const uint arguments_of[4] = {argument_qkv, argument_projection, argument_gate_up, argument_down};
  uint64_t exchange = address(layer, argument_exchange), weight = address(layer, arguments_of[product]);
  SharedQuads x = SharedQuads(exchange + uint64_t(product == qkv          ? x_at
                                                  : product == projection ? attended_at
                                                  : product == gate_up    ? middle_at
                                                                          : gated_at));
  x_offsets at = bring_offsets(product);
  stage_count = stages_of(product);
  first_stage = (shares_columns(product) ? gl_WorkGroupID.x / shares : gl_WorkGroupID.x) % stage_count;
  here = address_of(weight, product);
  fetch(weight, product);
#ifndef INNER_NORMS
  await_by_one(0u, scales_of(exchange, product), last_token_quad(scale_quads(product)), true);
#endif
  uint most = take(exchange, x, at, product);
  multiply(product, weight, x, at, most);
  // From here on the exchange of the layer after the next one may be written.
  if (product == down && layer + first_blank < layers && gl_LocalInvocationIndex < gl_NumWorkGroups.x - parts) {
    SharedWords blanked = SharedWords(exchange + uint64_t(blanked_at));
    awaited(blanked, gl_LocalInvocationIndex, blanked.at[gl_LocalInvocationIndex]);
  }
  finish(layer, product);
}

// Workgroups after `parts` run on processors that the others leave idle. They write the unwritten pattern into a
// layer's exchange two layers ahead.
void help() {
  uint helper = gl_WorkGroupID.x - parts, helpers = gl_NumWorkGroups.x - parts, t = gl_LocalInvocationIndex;
  [[dependency_infinite]] for (uint layer = 0u; layer + first_blank < layers; ++layer) {
    uint64_t exchange = arguments.at[layer * argument_count + argument_exchange];
    if (t == 0u) {
      SharedWords scales = SharedWords(exchange + uint64_t(x_scales_at));
      awaited(scales, 0u, scales.at[0]);
    }
    barrier();
    SharedQuads blank = SharedQuads(arguments.at[(layer + first_blank) * argument_count + argument_exchange]);
    for (uint i = helper * threads + t; i < blanked_at / 16u + 1u; i += helpers * threads)
      blank.at[i] = uvec4(unwritten);
    memoryBarrierBuffer();
    barrier();
    if (t == 0u) SharedWords(exchange + uint64_t(blanked_at)).at[helper] = 0u;
  }
}

void compute() {
  uint t = gl_LocalInvocationIndex;
  if (t == 0u) code_magic = magic_of_codes;
  keep_addresses(0u);
  keep_rows();
  barrier();
  keep_first_octets();
#ifndef INNER_NORMS
  if (t < own_qkv * most_rows * 4u) {
    uint row = (gl_WorkGroupID.x / shares * (shares * own_qkv) + own_qkv * share() + t / (most_rows * 4u)) * 16u +
               t % 4u * 4u,
         token = t / 4u % most_rows, p = row % head_dim / 4u * 2u;
    WordPairs turns = WordPairs(address(0u, argument_rope));
    rotation[t] =
        vec4(rope_from_turns(positions[token], turns.at[p]), rope_from_turns(positions[token], turns.at[p + 1u]));
  }
#endif
  // The code below is written for these values; the plan uses no others.
  uint end = layers;
  if (workgroup_size != threads || subgroup_width != 32u) {
    end = 0u;
    time_out();
  }
  uint own_token = t / row_quads, element = own_token * (hidden_size / 4u) + own_quad(t % row_quads);
  bool has_own = has_quad(t % row_quads);
  uint64_t stream = address(0u, argument_stream);
  residual = vec4(0.0);
  if (has_own && own_token < most_rows && ends[min(own_token, most_rows - 1u)] != 0u)
    residual = FloatQuads(stream).at[element];
  publish_stream(address(0u, argument_exchange), x_at, x_scales_at, squares_at, address(0u, argument_qkv_norm));
  [[dont_unroll]] for (uint layer = 0u; layer < end; ++layer) {
    barrier();
    if (layer + 1u < layers) keep_addresses(layer + 1u);
    barrier();
    [[dont_unroll]] for (uint product = qkv; product <= down; ++product) {
      step(layer, product);
      if (product == qkv) attention(layer);
    }
  }
  if (has_own && own_token < rows) FloatQuads(stream).at[element] = residual;
}

void main() {
  timed_out = false;
  lane = gl_SubgroupInvocationID;
  rows = min(state.at[state_count], slots);
  if (gl_WorkGroupID.x < parts) compute();
  else help();
  leave(arguments.at[argument_stream]);
}
