// SPDX-License-Identifier: MIT
// All layers of ternary weights of a pass over a batch in one resident dispatch, for GPUs on which all its workgroups
// run at once and which multiply f16 matrices. shaders/layers.comp does the same for a single token. The result has the
// bits of the chain norm_quantize, ternary_batch, attention_batch: products of int8 and ternary codes are integers that
// f16 and sums in f32 hold exactly in any order, and all other sums have the order of docs/kernels.md. Several
// workgroups compute a token's norm, each over the whole token, and write one slice of its columns as int8 for the
// others. A workgroup has tiles of 16 rows of a product, whose weights are in registers before x is there; its
// subgroups share the columns (and the tiles, if there are many). A layer's code has to fit into the instruction cache
// (128 KiB, 8,192 instructions, on an H100): only code that would be slower as a loop is unrolled. Waits are as in
// layers_rows: unwritten words are all ones, no wait is endless, a timeout makes the result NaN.
// variant: layers_ternary_rows -DWIDE_LOADS=0
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
#extension GL_EXT_integer_dot_product : require
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
layout(constant_id = 11) const float rope_theta = 10000.0;
layout(constant_id = 12) const float scale = 0.0;
layout(constant_id = 13) const uint slots = 8;
layout(constant_id = 14) const uint slot_words = 32;
layout(constant_id = 15) const uint page_size = 8;
layout(constant_id = 16) const uint subgroup_width = 0;
layout(local_size_x_id = 0) in;

#include "rows_frame.glsl"

const uint threads = 512u, members = threads / 32u;
const uint most_tiles = 4u, most_pairs = 8u;  // per subgroup: tiles of 16 rows, pairs with 64 columns;
                                              // plan/resident.hpp chooses shapes for which they suffice
const uint zeros = 0x7f7f7f7fu;  // int8 is stored as 0 to 254: four of them never have the bits of `unwritten`
const uint most_rows = (slots + 7u) / 8u * 8u;

// Offsets of the data that workgroups exchange in a layer, in bytes from its `exchange`.
const uint stream_at = 0u, query_at = stream_at + most_rows * hidden_size * 4u,
           attended_at = query_at + most_rows * qkv_size * 4u, middle_at = attended_at + most_rows * q_size * 4u,
           gated_at = middle_at + most_rows * hidden_size * 4u,
           codes_at = gated_at + most_rows * intermediate_size * 4u,
           factors_at = codes_at + most_rows * (2u * hidden_size + q_size + intermediate_size);

uint codes_offset(uint product) {  // of the product's x
  return codes_at + most_rows * (product == qkv          ? 0u
                                 : product == projection ? hidden_size
                                 : product == gate_up    ? hidden_size + q_size
                                                         : 2u * hidden_size + q_size);
}
// Tokens are multiplied in groups of eight. Two groups share the unpacking of a code. If there are more groups,
// workgroups share them too, provided that registers hold the larger number of tiles.
const uint row_groups = most_rows / 8u, together = row_groups % 2u == 0u ? 2u : 1u,
           most_split = 24u;  // tiles times pairs of columns
uint tiles_by(uint product, uint splits) { return (rows_of(product) / 16u + parts / splits - 1u) / (parts / splits); }
uint splits_of(uint product) {
  uint splits = row_groups / together, tiles = tiles_by(product, splits);
  return parts % splits == 0u && tiles <= most_tiles &&
                 tiles * ((columns_of(product) / 64u + members - 1u) / members) <= most_split
             ? splits
             : 1u;
}
uint tiles_of(uint product) { return tiles_by(product, splits_of(product)); }  // per workgroup, at most
uint sets_of(uint product) {
  return tiles_of(product) > most_tiles ? 2u : 1u;
}  // of tiles, each with its own subgroups
uint ways_of(uint product) { return members / sets_of(product); }  // subgroups that share the columns
// The workgroup's number modulo the splits selects the groups of tokens, the quotient the tiles.
uint first_of(uint product, uint share) { return share * (rows_of(product) / 16u) / (parts / splits_of(product)); }
uint first_tile(uint product) { return first_of(product, gl_WorkGroupID.x / splits_of(product)); }
uint tile_count(uint product) {
  return first_of(product, gl_WorkGroupID.x / splits_of(product) + 1u) - first_tile(product);
}

// Sums, [tile, way, 36]: a lane's four are one quad, and after each eight quads one is unused, so that no two
// invocations use the same bank. Also attention's values of a span.
const uint sum_quads = 36u, pool_quads = most_tiles * members * sum_quads;
shared vec4 pool[pool_quads];
const uint qkv_tiles =
    (qkv_size / 16u + parts - 1u) / parts;         // without splits; with splits there are up to that many times more
shared vec2 rotation[qkv_tiles * 8u * most_rows];  // sine, cosine of the workgroup's pairs and tokens
shared uint positions[most_rows], ends[most_rows], cache_offsets[most_rows];  // by row; an end of 0 marks an unused row
shared float token_factors[most_rows];
shared float block_sums[64], greatest_of[members];
shared uint64_t addresses[2u * argument_count];
const uint heads_each = heads / kv_heads % 2u == 0u ? 2u : 1u;  // per task of attention
const uint tasks_of_row = heads / heads_each, kept_tasks = (most_rows * tasks_of_row + parts - 1u) / parts;
shared vec4 fresh[heads_each * quads];               // queries
shared uvec4 fresh_words[2u * chunks];               // key and value of this position, as the caches store them
shared uint octet_offsets[(kept_tasks + 1u) * 32u];  // of the tasks' first spans, and of one other
shared uint half_magic;  // 1024 twice as f16: read from memory, so that the compiler does not know it and emits one
                         // instruction for mask and sum

uint rows, lane;
bool timed_out;
#define sums_of coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define codes_of coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define tokens_of coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
// Tiles whose weights are loaded before a norm, which waits for other workgroups: only for eight tokens, where the code
// has room for that.
const uint early_gate_up = row_groups == 1u ? 2u : 0u, early_down = row_groups == 1u ? 1u : 0u;
uint codes[most_tiles * most_pairs * 2u];  // of rows lane / 4 and lane / 4 + 8, 16 columns per word

#include "rows_exchange.glsl"
#include "rows_waits.glsl"
bool finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

// The way whose columns a subgroup loads in its last pair, if not every subgroup has one: its own way, or else the last
// one, which is read again without use. The same holds for an invocation's last quad.
uint end_way(uint way, uint ways, uint pairs) { return min(way, pairs - 1u - pairs / ways * ways); }

// Normalises a row and quantises it to int8, over the workgroup's slice of the columns. Workgroups without a slice
// discard their result: conditions on loaded values make subgroup operations slow. An unused row is zeros.
void normalise(uint layer, uint product, const uint width) {
  const uint quads_of_row = width / 4u, blocks = (width + 127u) / 128u, slices = parts / most_rows;
  uint t = gl_LocalInvocationIndex, row = gl_WorkGroupID.x % most_rows, slice = gl_WorkGroupID.x / most_rows;
  uint64_t exchange = address(layer, argument_exchange);
  uint first = slice * (width / 16u) / slices * 4u,
       end = slice < slices ? (slice + 1u) * (width / 16u) / slices * 4u : 0u;  // quads
  SharedWords to = SharedWords(exchange + uint64_t(codes_offset(product)));
  uint to_row = row / 8u * (width / 64u) * 128u + row % 8u * 16u;
  bool is_there = ends[row] != 0u;
  vec4 weights[4];
  uvec4 words[4];
  uint end_quad = end_way(t, threads, quads_of_row);
  uint64_t norm = address(layer, argument_products + 3u * product);
  FloatQuads norm_at = FloatQuads(norm + uint64_t(t * 16u)), norm_end = FloatQuads(norm + uint64_t(end_quad * 16u));
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    words[j] = uvec4(0u);
    weights[j] = vec4(0.0);
    if ((j + 1u) * threads <= quads_of_row) weights[j] = norm_at.at[j * threads];
    else if (j * threads < quads_of_row) weights[j] = norm_end.at[j * threads];
  }
  if (is_there) {
    bool waits = product != qkv || layer != 0u;
    uint64_t from = (waits ? exchange + uint64_t(product == qkv          ? stream_at
                                                 : product == projection ? attended_at
                                                 : product == gate_up    ? middle_at
                                                                         : gated_at)
                           : address(layer, argument_stream)) +
                    uint64_t(row * width * 4u);
    SharedQuads x_at = SharedQuads(from + uint64_t(t * 16u)), x_end = SharedQuads(from + uint64_t(end_quad * 16u));
    uint tries = 0u, most_bits;
    do {
      most_bits = 0u;
      [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        if ((j + 1u) * threads <= quads_of_row) words[j] = x_at.at[j * threads];
        else if (j * threads < quads_of_row) words[j] = x_end.at[j * threads];
      }
      [[unroll]] for (uint j = 0u; j < 4u; ++j)
        if (j * threads < quads_of_row) most_bits = max(most_bits, largest_of(words[j]));
    } while (waits && most_bits == unwritten && !out_of_spins(++tries));
    if (waits && most_bits == unwritten && !timed_out) time_out();
  }
  vec4 products[4];
  float most = 0.0;
  [[unroll]] for (uint j = 0u; j < 4u; ++j)
    if (j * threads < quads_of_row) {
      vec4 v = uintBitsToFloat(words[j]);
      precise vec4 product_ = v * weights[j], square = v * v;
      precise float its = (square.x + square.y) + (square.z + square.w),
                    sum = t + j * threads < quads_of_row ? its : 0.0;
      products[j] = product_;
      vec4 size = abs(product_);
      most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
      [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) {
        precise float both = sum + subgroupShuffleXor(sum, d);
        sum = both;
      }
      if (lane == 0u && sub + members * j < blocks) block_sums[sub + members * j] = sum;
    }
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1)
    most = max(most, subgroupShuffleXor(most, d));
  if (lane == 0u) greatest_of[sub] = most;
  barrier();
  precise float total = lane < blocks ? block_sums[min(lane, blocks - 1u)] : 0.0;
  if (blocks > 32u) total = total + (lane + 32u < blocks ? block_sums[min(lane + 32u, blocks - 1u)] : 0.0);
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) {
    precise float both = total + subgroupShuffleXor(total, d);
    total = both;
  }
  float largest = greatest_of[lane & (members - 1u)];
  [[unroll]] for (uint d = 8u; d >= 1u; d >>= 1)
    largest = max(largest, subgroupShuffleXor(largest, d));
  precise float mean = total / float(width) + eps;
  precise float root = 1.0 / sqrt(mean);
  float r = finite(mean) ? root : not_a_number;
  precise float of_largest = largest * r;
  float m = max(of_largest, 1e-5);
  precise float s = 127.0 / m;
  [[unroll]] for (uint j = 0u; j < 4u; ++j)
    if (j * threads < quads_of_row) {
      uint quad = t + j * threads;
      precise vec4 y = products[j] * r;
      precise vec4 scaled = y * s;
      ivec4 q = clamp(ivec4(roundEven(scaled)), -127, 127);
      uvec4 e = uvec4(q + 127);
      if (quad >= first && quad < end)
        to.at[to_row + quad / 16u * 128u + quad % 16u] = e.x | e.y << 8 | e.z << 16 | e.w << 24;
    }
  precise float step_ = m / 127.0;
  if (slice == 0u && t == 0u)
    SharedWords(exchange + uint64_t(factors_at)).at[product * most_rows + row] =
        is_there ? floatBitsToUint(written(finite(r) ? step_ : not_a_number)) : 0u;
}

// Unrolled by macros: the driver does not unroll loops over so much code and keeps arrays that they index in memory.
#define EACH_PAIR(what, j) what(j, 0) what(j, 1) what(j, 2) what(j, 3) what(j, 4) what(j, 5) what(j, 6) what(j, 7)
#define EACH_TILE(what) what(0) what(1) what(2) what(3)

// Loads weights of the subgroup's tiles `from_tile` to `end_tile` - 1, of its columns. Beyond the end it loads the last
// ones again: a load without a condition does not wait for earlier loads. An address is a lane's own plus a constant,
// which is part of the load.
void fetch(uint layer, uint product, const uint from_tile, const uint end_tile) {
  const uint tiles16 = columns_of(product) / 16u, pairs = columns_of(product) / 64u, ways = ways_of(product),
             set_tiles = (tiles_of(product) + sets_of(product) - 1u) / sets_of(product);
  uint64_t weight = address(layer, argument_products + 3u * product + 1u);
  uint from = first_tile(product), last = tile_count(product) - 1u, way = sub % ways,
       own = (lane & 3u) * 4u + (lane >> 2 & 3u);
#define FETCH_FROM(tile_, j, k)                                                  \
  codes[(uint(j) * most_pairs + uint(k)) * 2u] = tile_.at[uint(k) * ways * 16u]; \
  codes[(uint(j) * most_pairs + uint(k)) * 2u + 1u] = tile_.at[uint(k) * ways * 16u + 2u * tiles16 * 4u];
#define FETCH_PAIR(j, k)                \
  if ((uint(k) + 1u) * ways <= pairs) { \
    FETCH_FROM(tile_, j, k)             \
  } else if (uint(k) * ways < pairs) {  \
    FETCH_FROM(end_, j, k)              \
  }
#define FETCH_TILE(j)                                                                                           \
  if (uint(j) < set_tiles && uint(j) >= from_tile && uint(j) < end_tile) {                                      \
    uint row_ = (4u * (from + min(sub / ways * set_tiles + uint(j), last)) + (lane >> 4)) * tiles16 * 4u + own; \
    HeldWords tile_ = HeldWords(weight + uint64_t((row_ + way * 16u) * 4u)),                                    \
              end_ = HeldWords(weight + uint64_t((row_ + end_way(way, ways, pairs) * 16u) * 4u));               \
    EACH_PAIR(FETCH_PAIR, j)                                                                                    \
  }
  EACH_TILE(FETCH_TILE)
}

f16vec2 as_pair(uint word) { return unpackFloat2x16(word); }
#define SET_PAIR(to, from, pair) \
  {                              \
    f16vec2 pair_ = pair;        \
    to[from] = pair_.x;          \
    to[from + 1] = pair_.y;      \
  }
// Columns 4f .. 4f + 3 of both rows, in the order 0, 2, 1, 3: the codes, masked in place, are f16 without an exponent,
// in units of 2^-24 times 4^f.
codes_of codes_matrix(uint low, uint high, uint f) {
  const uint mask = 0x00030003u << 2u * f;
  codes_of out_;
  SET_PAIR(out_, 0, as_pair(low & mask))
  SET_PAIR(out_, 2, as_pair(low >> 8 & mask))
  SET_PAIR(out_, 4, as_pair(high & mask))
  SET_PAIR(out_, 6, as_pair(high >> 8 & mask))
  return out_;
}
// Columns 4f .. 4f + 3 of x, divided by 4^f.
tokens_of tokens_matrix(uint bytes, uint f, uint magic) {
  const float16_t by = float16_t(1.0 / float(1u << 2u * f)), from = float16_t(-1151.0) * by;
  tokens_of out_;
  SET_PAIR(out_, 0, fma(as_pair((bytes & 0x00ff00ffu) | magic), f16vec2(by), f16vec2(from)))
  SET_PAIR(out_, 2, fma(as_pair((bytes >> 8 & 0x00ff00ffu) | magic), f16vec2(by), f16vec2(from)))
  return out_;
}

// The model's activation of a gate and its `up`. C++ replaces the instruction that mod() becomes by it
// (kernels/splice.hpp).
float gated(float g, float up) { return mod(g, up); }

// A row of q, k or v of a token: rows of a group of four are channels p, p + head_dim / 2, p + 1, p + 1 + head_dim / 2
// of a head.
void hand_on(uint layer, uint64_t exchange, uint tile, uint own_row, uint token, float y, uint pair_at, bool wanted) {
  uint row = tile * 16u + own_row, head = row / head_dim, p = row % head_dim / 4u * 2u + (row >> 1 & 1u),
       channel = p + (row & 1u) * (head_dim / 2u);
  float other = subgroupShuffleXor(y, 1u);
  vec2 turn = rotation[pair_at];
  precise float turned = y * turn.y + ((row & 1u) != 0u ? other * turn.x : -(other * turn.x));
  if (row < q_size + kv_size) y = turned;
  uint its = half_from_float(y), pair = its | subgroupShuffleXor(its, 2u) << 16;
  if (!wanted) return;
  SharedWords query = SharedWords(exchange + uint64_t(query_at + token * qkv_size * 4u));
  if (row < q_size) query.at[head * head_dim + channel] = floatBitsToUint(written(y));
  if (row < q_size || (row & 2u) != 0u) return;
  query.at[q_size + (head - heads) * (head_dim / 2u) + channel / 2u] = pair == unwritten ? 0x7e007e00u : pair;
  uint cache_offset = cache_offsets[token];
  if (cache_offset >= context) return;
  bool is_key = row < q_size + kv_size;
  uint kv_head = head - (is_key ? heads : heads + kv_heads);
  uint element = is_key ? key_index(kv_head, cache_offset, channel / 8u) * 8u + channel % 8u
                        : (kv_head * context + cache_offset) * head_dim + channel;
  Words(address(layer, is_key ? argument_keys : argument_values)).at[element / 2u] = pair;
}

void multiply(uint layer, uint product) {
  const uint pairs = columns_of(product) / 64u, ways = ways_of(product), sets = sets_of(product),
             all_tiles = tiles_of(product), set_tiles = (all_tiles + sets - 1u) / sets, splits = splits_of(product),
             passes = row_groups / (splits * together);
  uint64_t exchange = address(layer, argument_exchange);
  uint t = gl_LocalInvocationIndex, magic = half_magic, count = tile_count(product), from_tile = first_tile(product),
       way = sub % ways, set = sub / ways;
  Floats scales = Floats(address(layer, argument_products + 3u * product + 2u));
  vec3 scale_of = vec3(scales.at[0]);
  if (product == qkv) scale_of = vec3(scale_of.x, scales.at[1], scales.at[2]);
  if (product == gate_up) scale_of.y = scales.at[1];
  [[dont_unroll]] for (uint turn = 0u; turn < passes + (passes > 1u ? gl_NumWorkGroups.z - 1u : 0u);
                       ++turn) {  // else drivers unroll it and run out of registers
    uint group = (turn * splits + gl_WorkGroupID.x % splits) * together;
    uvec4 bytes[most_pairs], others[most_pairs];
    uint64_t from = exchange + uint64_t(codes_offset(product)) + uint64_t((group * pairs * 32u + lane) * 16u);
    SharedQuads x_at = SharedQuads(from + uint64_t(way * 512u)),
                x_end = SharedQuads(from + uint64_t(end_way(way, ways, pairs) * 512u));
#define READ_ONE(to, of, k)                                                                 \
  if ((uint(k) + 1u) * ways <= pairs) to[k] = x_at.at[(of * pairs + uint(k) * ways) * 32u]; \
  else if (uint(k) * ways < pairs) to[k] = x_end.at[(of * pairs + uint(k) * ways) * 32u];
#define READ(k)                                    \
  {                                                \
    READ_ONE(bytes, 0u, k)                         \
    if (together > 1u) { READ_ONE(others, 1u, k) } \
  }
#define LARGEST(k) (uint(k) * ways < pairs ? max(largest_of(bytes[k]), together > 1u ? largest_of(others[k]) : 0u) : 0u)
    // Two pairs of columns at a time, with the next two in flight.
    READ(0)
    READ(1)
    // The inputs of the step's end are loaded here.
    float residual[2];
    residual[0] = residual[1] = 0.0;
    uint own_row = t & 15u, own_column = t >> 4 & 7u, own_tile = t >> 7;
    bool adds = product == projection || product == down;
    [[unroll]] for (uint i = 0u; i < together; ++i) {
      uint token = (group + i) * 8u + own_column;
      if (adds && own_tile < count && ends[token] != 0u) {
        bool exchanged = product == down || layer != 0u;
        uint64_t at =
            exchanged ? exchange + uint64_t(product == down ? middle_at : stream_at) : address(layer, argument_stream);
        residual[i] = uintBitsToFloat(SharedWords(at).at[token * hidden_size + (from_tile + own_tile) * 16u + own_row]);
      }
    }
    if (t < 8u * together) {
      SharedWords factors = SharedWords(exchange + uint64_t(factors_at));
      uint at = product * most_rows + group * 8u + t;
      token_factors[group * 8u + t] = uintBitsToFloat(awaited(factors, at, factors.at[at]));
    }
    uint total = 0u, other_total = 0u, taken = 0u;  // of the lane's bytes
    sums_of sums[most_tiles], other_sums[most_tiles];
#define CLEAR(j) sums[j] = other_sums[j] = sums_of(0.0);
    EACH_TILE(CLEAR)
#define MULTIPLY_TILE(j, k, f)                                                              \
  if (uint(j) < set_tiles) {                                                                \
    codes_of codes_ = codes_matrix(codes[(uint(j) * most_pairs + uint(k)) * 2u],            \
                                   codes[(uint(j) * most_pairs + uint(k)) * 2u + 1u], f);   \
    sums[j] = coopMatMulAdd(codes_, tokens_, sums[j]);                                      \
    if (together > 1u) other_sums[j] = coopMatMulAdd(codes_, other_tokens_, other_sums[j]); \
  }
#define MULTIPLY_FOUR(k, f)                                              \
  {                                                                      \
    tokens_of tokens_ = tokens_matrix(its_[f], f, magic), other_tokens_; \
    total += dotPacked4x8EXT(its_[f], 0x01010101u);                      \
    if (together > 1u) {                                                 \
      other_tokens_ = tokens_matrix(others_[f], f, magic);               \
      other_total += dotPacked4x8EXT(others_[f], 0x01010101u);           \
    }                                                                    \
    MULTIPLY_TILE(0, k, f)                                               \
    MULTIPLY_TILE(1, k, f)                                               \
    MULTIPLY_TILE(2, k, f)                                               \
    MULTIPLY_TILE(3, k, f)                                               \
  }
#define MULTIPLY_PAIR(k)                                                                            \
  if (uint(k) * ways < pairs) {                                                                     \
    taken += 64u * 127u;                                                                            \
    bool its_own_ = way + uint(k) * ways < pairs;                                                   \
    uvec4 its_ = its_own_ ? bytes[k] : uvec4(zeros), others_ = its_own_ ? others[k] : uvec4(zeros); \
    MULTIPLY_FOUR(k, 0u)                                                                            \
    MULTIPLY_FOUR(k, 1u)                                                                            \
    MULTIPLY_FOUR(k, 2u)                                                                            \
    MULTIPLY_FOUR(k, 3u)                                                                            \
  }
#define MULTIPLY_PAIRS(k, l)                                                         \
  if (uint(k) * ways < pairs) {                                                      \
    if (max(LARGEST(k), LARGEST(l)) == unwritten) {                                  \
      uint tries_ = 0u;                                                              \
      do {                                                                           \
        READ(k)                                                                      \
        READ(l)                                                                      \
      } while (max(LARGEST(k), LARGEST(l)) == unwritten && !out_of_spins(++tries_)); \
      if (!timed_out && max(LARGEST(k), LARGEST(l)) == unwritten) time_out();        \
    }                                                                                \
    READ_NEXT_##k MULTIPLY_PAIR(k) MULTIPLY_PAIR(l)                                  \
  }
#define READ_NEXT_0 READ(2) READ(3)
#define READ_NEXT_2 READ(4) READ(5)
#define READ_NEXT_4 READ(6) READ(7)
#define READ_NEXT_6
    MULTIPLY_PAIRS(0, 1)
    MULTIPLY_PAIRS(2, 3)
    MULTIPLY_PAIRS(4, 5)
    MULTIPLY_PAIRS(6, 7)
    // Codes are one more than weights: subtracts the sums of x of the lane's two tokens.
    total += subgroupShuffleXor(total, 1u);
    total += subgroupShuffleXor(total, 2u);
    float x_sum = float(int(total - taken));
    vec2 x_sums = vec2(subgroupShuffle(x_sum, 8u * (lane & 3u)), subgroupShuffle(x_sum, 8u * (lane & 3u) + 4u)),
         other_x_sums = x_sums;
    if (together > 1u) {
      other_total += subgroupShuffleXor(other_total, 1u);
      other_total += subgroupShuffleXor(other_total, 2u);
      x_sum = float(int(other_total - taken));
      other_x_sums = vec2(subgroupShuffle(x_sum, 8u * (lane & 3u)), subgroupShuffle(x_sum, 8u * (lane & 3u) + 4u));
    }
    [[dont_unroll]] for (uint round = 0u; round < together + (together > 1u ? gl_NumWorkGroups.z - 1u : 0u); ++round) {
#define LEAVE_FOUR(from, j, its_sums)                                                 \
  if (uint(j) < set_tiles)                                                            \
    pool[((set * set_tiles + uint(j)) * ways + way) * sum_quads + lane + lane / 8u] = \
        fma(vec4(from[j][0], from[j][1], from[j][2], from[j][3]), vec4(16777216.0), -its_sums.xyxy);
#define LEAVE(j) LEAVE_FOUR(sums, j, x_sums)
#define LEAVE_OTHER(j) LEAVE_FOUR(other_sums, j, other_x_sums)
      if (round == 0u) {
        EACH_TILE(LEAVE)
      } else {
        EACH_TILE(LEAVE_OTHER)
      }
      barrier();
      [[unroll]] for (uint part = 0u; part < 2u; ++part)
        if (part * 4u < all_tiles) {
          uint own_token = (group + round) * 8u + own_column, index = own_tile + 4u * part,
               its_tile = min(index, count - 1u), tile = from_tile + its_tile;
          bool wanted = index < count && ends[own_token] != 0u;
          uint its_lane = (own_row & 7u) * 4u + (own_column >> 1),
               at = its_tile * ways * sum_quads + its_lane + its_lane / 8u,
               which = (own_row >> 3) * 2u + (own_column & 1u);
          float sum = 0.0;
          [[unroll]] for (uint i = 0u; i < members; ++i)
            if (i < ways) sum += pool[at + i * sum_quads][which];
          uint row = tile * 16u + own_row;
          float its_scale = product == qkv                           ? (row < q_size             ? scale_of.x
                                                                        : row < q_size + kv_size ? scale_of.y
                                                                                                 : scale_of.z)
                            : product == gate_up && (row & 1u) != 0u ? scale_of.y
                                                                     : scale_of.x;
          precise float y = sum * (token_factors[own_token] * its_scale);
          if (product == qkv) {
            hand_on(
                layer, exchange, tile, own_row, own_token, y,
                (its_tile * 8u + (own_row >> 1)) * (most_rows / splits) + (turn * together + round) * 8u + own_column,
                wanted);
          } else if (product == gate_up) {
            float up = subgroupShuffleXor(y, 1u), out_ = gated(y, up);
            if (wanted && (own_row & 1u) == 0u)
              SharedWords(exchange + uint64_t(gated_at)).at[own_token * intermediate_size + row / 2u] =
                  floatBitsToUint(written(out_));
          } else {
            precise float next = (round == 0u ? residual[0] : residual[1]) + y;
            uint element = own_token * hidden_size + row;
            if (wanted) {
              if (product == projection)
                SharedWords(exchange + uint64_t(middle_at)).at[element] = floatBitsToUint(written(next));
              else if (layer + 1u < layers)
                SharedWords(addresses[(layer + 1u & 1u) * argument_count + argument_exchange] + uint64_t(stream_at))
                    .at[element] = floatBitsToUint(written(next));
              else Floats(address(layer, argument_stream)).at[element] = next;
            }
          }
        }
      barrier();
    }
  }
}

#include "ternary_rows_attention.glsl"

void main() {
  timed_out = false;
  lane = gl_SubgroupInvocationID;
  uint t = gl_LocalInvocationIndex;
  if (t == 0u) half_magic = 0x64006400u;
  keep_addresses(0u);
  rows = min(state.at[state_count], slots);
  keep_drafted_rows();
  barrier();
  [[dont_unroll]] for (uint i = 0u; i < kept_tasks; ++i) {
    uint task = gl_WorkGroupID.x + i * parts;
    if (task < rows * tasks_of_row) keep_octets(32u * i, task / tasks_of_row, 0u);
  }
  const uint pairs = tiles_of(qkv) * 8u, own_rows = most_rows / splits_of(qkv);
  for (uint i = t; i < pairs * own_rows; i += threads) {
    uint row = first_tile(qkv) * 16u + i / own_rows * 2u, p = row % head_dim / 4u * 2u + (row >> 1 & 1u),
         token = i % own_rows;
    rotation[i] = rope_turn(
        positions[(token / (8u * together) * splits_of(qkv) + gl_WorkGroupID.x % splits_of(qkv)) * 8u * together +
                  token % (8u * together)],
        p, head_dim, rope_theta);
  }
  // The code below is written for these values; the plan uses no others.
  uint end = layers;
  if (workgroup_size != threads || subgroup_width != 32u) {
    end = 0u;
    time_out();
  }
  [[dont_unroll]] for (uint layer = 0u; layer < end; ++layer) {
    barrier();
    if (layer + 1u < layers) keep_addresses(layer + 1u);
    barrier();
    // One piece of code for all norms of a width. The driver does not know the bound, else it would unroll the loop.
    [[dont_unroll]] for (uint product = qkv; product <= down * gl_NumWorkGroups.z; ++product) {
      if (early_gate_up != 0u) {
        // Defined in each turn: a value left by an earlier turn would occupy registers through all turns.
        [[unroll]] for (uint i = 0u; i < most_tiles * most_pairs * 2u; ++i)
          codes[i] = 0u;
        if (product == gate_up) fetch(layer, gate_up, 0u, early_gate_up);
        if (product == down) fetch(layer, down, 0u, early_down);
      }
      if (product == down) normalise(layer, product, intermediate_size);
      else if (product == projection && q_size != hidden_size) normalise(layer, product, q_size);
      else normalise(layer, product, hidden_size);
      // The other products' weights are loaded only here: loads return in order, and the norm waits for its own.
      if (product == qkv) {
        fetch(layer, qkv, 0u, most_tiles);
        multiply(layer, qkv);
        attention(layer);
      } else if (product == projection) {
        fetch(layer, projection, 0u, most_tiles);
        multiply(layer, projection);
      } else if (product == gate_up) {
        fetch(layer, gate_up, early_gate_up, most_tiles);
        multiply(layer, gate_up);
      } else {
        fetch(layer, down, early_down, most_tiles);
        multiply(layer, down);
      }
    }
  }
  leave(address(0u, argument_stream));
}
