// SPDX-License-Identifier: MIT
// All layers of a decode pass of coded weights in one resident dispatch, for GPUs on which all its workgroups run at
// once: each workgroup stays on its multiprocessor and computes the layers' steps as in shaders/layers.comp, without a
// barrier between them. A vector that crosses workgroups holds the unwritten pattern, which no number has, when the
// pass begins (plan::sequence::blank_bytes); readers wait until no element equals it. A subgroup multiplies two
// neighbouring rows at a time. Weights are loaded once their input is there: loads return in order, so a wait's reads
// would return after them. A layer's code must fit into the instruction cache (docs/performance.md). No wait is
// endless: a workgroup that times out sets a flag in `progress`, all others leave as well, and the last makes the
// result NaN. Conditions around subgroup operations depend only on constants, the workgroup's and the subgroup's
// number.
// variant: layers_coded -DWIDE_LOADS=0 -DINTEGER_DOT=1 -DDENSE_ALONE=0 -DMIXED=0 -DEXPERTS=0
// variant: layers_mixed -DWIDE_LOADS=0 -DINTEGER_DOT=1 -DDENSE_ALONE=0 -DMIXED=1 -DEXPERTS=0
// variant: layers_dense -DWIDE_LOADS=0 -DINTEGER_DOT=1 -DDENSE_ALONE=1 -DMIXED=0 -DEXPERTS=0
// variant: layers_experts -DWIDE_LOADS=0 -DINTEGER_DOT=1 -DDENSE_ALONE=0 -DMIXED=1 -DEXPERTS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
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

layout(constant_id = 0) const uint workgroup_size = 512;
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
layout(constant_id = 11) const uint codec = 0;
layout(constant_id = 12) const uint inner_norms = 0;  // norms of what attention and FFN add to the stream:
                                                      // kernels::layers_coded::norms_around
layout(constant_id = 13) const float scale = 0.0;
layout(constant_id = 14) const uint window = 0;      // of layers that do not see all positions
layout(constant_id = 15) const uint ring = 256;      // positions in the caches of layers with a window
layout(constant_id = 16) const uint full_every = 1;  // every full_every-th layer sees all positions
layout(constant_id = 17) const uint subgroup_width = 0;
layout(constant_id = 18) const uint head_norms = 0;      // kernels::turn_norms
layout(constant_id = 19) const uint biased = 0;          // kernels::layers_coded::addition, or-ed
layout(constant_id = 20) const uint turned = 0;          // rows of q and k are in their own order, not in rotated pairs
layout(constant_id = 21) const float rope_factor = 1.0;  // of channels that are rotated
#if MIXED
layout(constant_id = 22) const uint codec_second = 0;  // codecs beside `codec`: kernels::layers_coded::codec_word
layout(constant_id = 23) const uint codec_third = 0;
layout(constant_id = 24) const uint codec_fourth = 0;
layout(constant_id = 25) const uint codecs_used = 0;  // by matrix: kernels::layers_coded::codecs
// Codecs of two kinds of layers each (kernels::layers_coded::layer_codecs), and the kinds of 32 layers each: bit 0, the
// same for further layers, bit 1 and so on.
layout(constant_id = 28) const uint kind_codecs_0 = 0;
layout(constant_id = 29) const uint kind_codecs_1 = 0;
layout(constant_id = 30) const uint kind_codecs_2 = 0;
layout(constant_id = 31) const uint kind_codecs_3 = 0;
layout(constant_id = 32) const uint kind_codecs_4 = 0;
layout(constant_id = 33) const uint kind_codecs_5 = 0;
layout(constant_id = 34) const uint kind_codecs_6 = 0;
layout(constant_id = 35) const uint kind_codecs_7 = 0;
layout(constant_id = 36) const uint kinds_0 = 0;
layout(constant_id = 37) const uint kinds_1 = 0;
layout(constant_id = 38) const uint kinds_2 = 0;
layout(constant_id = 39) const uint kinds_3 = 0;
layout(constant_id = 40) const uint kinds_4 = 0;
layout(constant_id = 41) const uint kinds_5 = 0;
layout(constant_id = 42) const uint kinds_6 = 0;
layout(constant_id = 43) const uint kinds_7 = 0;
layout(constant_id = 44) const uint kinds_8 = 0;
layout(constant_id = 45) const uint kinds_9 = 0;
layout(constant_id = 46) const uint kinds_10 = 0;
layout(constant_id = 47) const uint kinds_11 = 0;
#endif
layout(constant_id = 26) const float softcap = 0.0;  // of scores
#if EXPERTS
layout(constant_id = 27) const uint ffns = 526352;  // kernels::layers_coded::ffns_word: 2 of 8 experts
#else
layout(constant_id = 27) const uint ffns = 16;  // of a layer: before attention, 0 or 1, and 16 times after it, 1 or 2
#endif
layout(local_size_x_id = 0) in;

#if EXPERTS  // the FFN of all layers is a mixture
const uint experts = ffns >> 8 & 1023u, experts_used = ffns >> 18 & 31u;
const bool over_all = (ffns >> 23 & 1u) != 0u;
const bool biased_experts = (ffns >> 24 & 1u) != 0u;  // and their gate and up are matrices apart
const bool biased_heads = (biased & 1u) != 0u, biased_projection = (biased & 2u) != 0u, has_sinks = (biased & 4u) != 0u;
const uint ffns_before = 0u, sublayers_each = 2u;
#else
#define biased_heads (biased != 0u)
const uint ffns_before = ffns & 15u;
const uint sublayers_each = 1u + ffns_before + (ffns >> 4);  // attention and FFNs
#endif
const bool two_sublayers = sublayers_each == 2u;
const bool outer_norms = inner_norms != 2u;  // norms before attention and the FFN
const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim;
const uint narrow = hidden_size > q_size ? hidden_size : q_size;
#if EXPERTS
// Experts of a token whose inputs of the down projection fit in shared memory together.
const uint experts_room = 14336u / intermediate_size, half_of_experts = experts_used / 2u,
           quarter_of_experts = experts_used / 4u;
const bool all_fit = experts_used <= experts_room,
           halves_fit = experts_used % 2u == 0u && half_of_experts <= experts_room,
           quarters_fit = experts_used % 4u == 0u && quarter_of_experts <= experts_room;
const uint quarter_or_one = quarters_fit ? quarter_of_experts : 1u,
           half_or_less = halves_fit ? half_of_experts : quarter_or_one,
           experts_together = all_fit ? experts_used : half_or_less;
const uint ffn_columns = experts_together * intermediate_size;
#else
#define ffn_columns intermediate_size
#endif
const uint columns_max = ffn_columns > narrow ? ffn_columns : narrow;
#define columns hidden_size
const uint cache_element = element_f16;
uint lane;
#define not_a_number uintBitsToFloat(0x7fc00000u)
bool finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
uint packed(ivec4 q) {
  return (uint(q.x) & 255u) | (uint(q.y) & 255u) << 8 | (uint(q.z) & 255u) << 16 | uint(q.w) << 24;
}
int sum_of(ivec4 q) { return (q.x + q.y) + (q.z + q.w); }
#define LONG_SHIFTS
#include "codec_constants.glsl"
#if DENSE_ALONE  // f16 and bf16 leave registers for more rounds
#undef dense
#define dense true
#define ROUNDS_AHEAD 7u
#else
#if MIXED  // codes only
#undef dense
#define dense false
#undef octet_quads
#define octet_quads 1u
#endif
#define ROUNDS_AHEAD 2u
#endif
// Loops that the driver unrolls in any case. With the hint to unroll, loads come in another order than without;
// kernels::hint_loops says which is faster for a codec.
#define BY_CODEC [[dependency_infinite]]
#define EACH_UNROLLED [[unroll]]
#define sums_by_byte (codec == codec_q4_0 || codec == codec_q4_1 || codec == codec_q4_k)
#include "coded_product.glsl"
#define attention_window window
#define attention_ring 0u
#define attention_scale scale
#define attention_softcap softcap
#if EXPERTS
#define attention_sinks uint(has_sinks)
#else
#define attention_sinks 0u
#endif
#include "attention.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Addresses { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer SharedWords { volatile devicecoherent uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SharedPairs { volatile devicecoherent vec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer SharedQuads { volatile devicecoherent vec4 at[]; };
layout(push_constant, scalar) uniform Push {
  Addresses arguments;
  Words progress, state;
};

// kernels::layers: the words of `progress` in use; kernels::layers_coded: indices of a layer's arguments.
const uint progress_left = 1u, progress_timed_out = 3u;
const uint argument_further = 23u;  // of an FFN before attention and of a second FFN after it
#if EXPERTS
const uint argument_router = argument_further, argument_logits = argument_further + 1u,
           argument_sinks = argument_further + 2u, argument_projection_bias = argument_further + 3u,
           argument_router_bias = argument_further + 4u, argument_up = argument_further + 5u,
           argument_gate_bias = argument_further + 6u, argument_up_bias = argument_further + 7u,
           argument_down_bias = argument_further + 8u;
const bool has_additions = biased_experts || biased_projection || has_sinks;
const uint argument_count = argument_further + (has_additions ? 9u : 2u);
#else
const uint argument_count = argument_further + 8u * (sublayers_each - 2u);
#endif
const uint argument_keys = 1u, argument_values = 2u, argument_partials = 20u, argument_biases = 21u, argument_v = 22u;
const uint argument_rope = 10u, argument_k_norm = 11u, argument_after_attention = 13u, argument_q_norm = 16u,
           argument_result = 17u, argument_after_down = 19u;

const uint qkv = 0u, projection = 1u, gate_up = 2u,
           down = 3u,  // products of a layer; attention is after the first
    only_values = 4u;  // v's, or k's and v's, if they are not part of the first
// plan/resident.hpp has the same numbers, and chooses shapes for which they suffice.
const uint threads = 512u, members = threads / 32u;  // per workgroup: invocations, subgroups
const uint most_spans = (context + span_positions - 1u) / span_positions, partial_quads = quads + 1u;
const uint merged_together = 6u;
const uint unwritten = 0xffffffffu;  // the unwritten pattern: no arithmetic result has these bits

// x of a product, or attention's sums of values of a span, by octet. x_units: octets or blocks. If the input is wider
// than shared memory, it is staged in parts; the first has part_units.
const uint unit_columns = dense ? 8u : 32u, most_columns = dense ? 11264u : 14336u,
           units_max = (columns_max + unit_columns - 1u) / unit_columns, two_parts = dense ? 896u : 320u,
           part_units = units_max > 2u * two_parts &&dense ? 1120u : two_parts;
#if EXPERTS
const bool in_parts = false;
#else
const bool in_parts = intermediate_size > most_columns;
#endif
const uint rest_units = units_max > part_units ? units_max - part_units : 0u,
           narrow_units = (narrow + unit_columns - 1u) / unit_columns,
           widest_part = rest_units > part_units ? rest_units : part_units,
           widest = widest_part > narrow_units ? widest_part : narrow_units, x_units = in_parts ? widest : units_max;
const uint x_quads = x_units * (dense ? 2u : 6u), attention_quads = 32u * quads + 208u;
#if EXPERTS
// The router's input, the stream in floats: between the planes of the coded stream, or after them.
const uint plane_rest = x_units - hidden_size / 32u, float_quads = hidden_size / 4u;
const bool between_planes = 6u * plane_rest >= float_quads;
const uint plain_quads = between_planes ? x_quads : x_quads + float_quads,
           pool_quads = plain_quads > attention_quads ? plain_quads : attention_quads;
#else
const uint pool_quads = x_quads > attention_quads ? x_quads : attention_quads;
#endif
shared uvec4 pool[pool_quads];
shared uvec2 x_scales[dense ? 1u : x_units];
shared float block_sums[2u * ((hidden_size + 127u) / 128u)];
shared vec2 rotation[full_every == 1u ? head_dim / 2u : head_dim];  // sine, cosine of pairs of channels, in layers that
                                                                    // see all positions and in others
shared uint64_t addresses[2u * argument_count];
#if EXPERTS  // logits of all experts replace a query; results of the token's experts replace key and value
const uint expert_quads = (experts + 3u) / 4u, fresh_quads = expert_quads > quads ? expert_quads : quads;
const uint lowered_pairs = (hidden_size / 2u / parts + 2u) * experts_used, cached_pairs = 2u * quads,
           fresh_pairs = lowered_pairs > cached_pairs ? lowered_pairs : cached_pairs;
#define expert_logits fresh
#define lowered fresh_words
#else
const uint fresh_quads = quads, fresh_pairs = 2u * quads;
#endif
shared vec4 fresh[fresh_quads];                          // query of this position; values of gate and up to be coded
shared uvec2 fresh_words[fresh_pairs];                   // key and value as the caches store them
shared vec2 kept[2u * (hidden_size / 2u / parts + 2u)];  // the residual of this workgroup's rows
shared bool leaves_last;
#if EXPERTS
const uint counted_experts = over_all ? experts : experts_used;
shared uvec4 expert_keys[expert_quads];
shared vec4 expert_parts[(counted_experts + 3u) / 4u];
shared float chosen_logits[experts_used], expert_shares[experts_used];
shared uint chosen_experts[experts_used];  // experts of the token, in the order of choice
uint first_choice;                         // the first expert whose input is in shared memory
#endif

uint sub, position;
bool timed_out;
vec4 v[10];      // quads of the step's input that the invocation has
vec4 stream[4];  // the residual, if norms come before additions to it

// Addresses of this layer and the next.
uint64_t address_of(uint layer, uint argument) { return addresses[(layer & 1u) * argument_count + argument]; }
uint64_t read_addresses(uint layer) {
  uint64_t its = 0ul;
  if (gl_LocalInvocationIndex < argument_count)
    its = arguments.at[min(layer, layers - 1u) * argument_count + gl_LocalInvocationIndex];
  return its;
}
void keep_address(uint layer, uint64_t its) {
  if (gl_LocalInvocationIndex < argument_count)
    addresses[(layer & 1u) * argument_count + gl_LocalInvocationIndex] = its;
}
// With two sublayers everything that depends on `ffns` is constant-folded: the instructions and their order are those
// of a module without it (docs/lab/bitnet_decode.md).
bool attends(uint at) { return at % sublayers_each == ffns_before; }
// Of a sublayer of the pass: the distance of its FFN's arguments from those of the FFN that every layer has.
uint half_;
uint shift_of(uint at) {
  uint ffn = at % sublayers_each - (at % sublayers_each > ffns_before ? 1u : 0u);
  return ffn == ffns_before ? 0u : argument_further - 12u + 8u * min(ffn, ffns_before);
}
uint64_t weight_of(uint layer, uint product, uint which, uint shift) {
  return address_of(layer, 8u + 3u * product + which + (two_sublayers || product < gate_up ? 0u : shift));
}
// The vectors that a product reads and writes.
uint64_t input_of(uint layer, uint product) { return address_of(layer, product == 0u ? 0u : product + 3u); }
uint64_t output_of(uint layer, uint product, uint shift) {
  return address_of(layer, (product == 0u ? 3u : product + 4u) +
                               (two_sublayers || product < gate_up || shift == 0u ? 0u : shift + 6u));
}
// Weights of the product that follows `product`.
uint64_t next_weight_of(uint layer, uint product, uint shift) {
  if (two_sublayers) return weight_of(layer + (product == down ? 1u : 0u), (product + 1u) & 3u, 1u, 0u);
  if (product == qkv || product == gate_up) return weight_of(layer, product + 1u, 1u, shift);
  uint next = half_ + 1u;
  return weight_of(next / sublayers_each, next % sublayers_each == ffns_before ? qkv : gate_up, 1u, shift_of(next));
}

// Columns of a product.
uint columns_of(uint product) {
  return product == projection ? q_size : product == down ? intermediate_size : hidden_size;
}
// `apart`: whether the product lacks v's rows, or k's and v's, which have a matrix of their own.
#if MIXED
bool apart;
#include "layer_codecs.glsl"
#endif
uint pairs_of(uint product) {
#if MIXED
  if (product == only_values) return apart_rows() / 2u;
  if (apart && product == qkv) return (q_size + 2u * kv_size - apart_rows()) / 2u;
#endif
#if EXPERTS
  if (product == gate_up) return experts_used * intermediate_size / (biased_experts ? 2u : 1u);
#endif
  return (product == qkv ? q_size + 2u * kv_size : product == gate_up ? 2u * intermediate_size : hidden_size) / 2u;
}
uint units_of(uint product) { return dense ? (columns_of(product) + 7u) / 8u : columns_of(product) / 32u; }
uint rounds_of(uint product) { return (units_of(product) + 31u) / 32u; }
const uint columns_together = hidden_size | q_size | intermediate_size;
// A workgroup's rows of gate and up are whole blocks, whose results it writes as coded input of the down projection,
// and then a share of the remaining rows.
#if EXPERTS
const uint blocks_of_share = 0u;
#else
const uint blocks_of_share = dense ? 0u : intermediate_size / 32u / parts;
#endif
const uint blocks_in_fresh = head_dim / 32u;
const uint whole_blocks = blocks_of_share < blocks_in_fresh ? blocks_of_share : blocks_in_fresh,
           coded_columns = whole_blocks * 32u * parts;
const bool ragged = columns_together % (dense ? 256u : 1024u) != 0u;  // a product's last round is not full

bool full(uint layer) { return full_every == 1u || layer % full_every == full_every - 1u; }

bool absent(vec4 x) { return any(equal(floatBitsToUint(x), uvec4(unwritten))); }
void time_out() {
  timed_out = true;
  SharedWords(progress).at[progress_timed_out] = 1u;
}
// True after `spin_limit` turns, or when another workgroup has timed out.
bool out_of_spins(uint tries) {
  return timed_out || tries >= spin_limit ||
         ((tries & 1023u) == 0u && SharedWords(progress).at[progress_timed_out] != 0u);
}
vec4 awaited(SharedQuads x, uint quad, vec4 a) {
  uint tries = 0u;
  while (absent(a)) {
    a = x.at[quad];
    if (out_of_spins(++tries)) break;
  }
  if (absent(a) && !timed_out) time_out();
  return a;
}
// The last word of a coded quad says whether it is written: 16 aligned bytes are written and read at once. A separate
// function: joined with the one above, the whole kernel was a sixth slower (docs/performance.md).
bool lacks(vec4 a, bool coded) { return coded ? floatBitsToUint(a.w) == unwritten : absent(a); }
vec4 awaited_as(SharedQuads x, uint quad, vec4 a, bool coded) {
  uint tries = 0u;
  while (lacks(a, coded)) {
    a = x.at[quad];
    if (out_of_spins(++tries)) break;
  }
  if (lacks(a, coded) && !timed_out) time_out();
  return a;
}
vec4 await_quad(SharedQuads x, uint quad, bool wanted) {
  vec4 a = vec4(0.0);
  if (wanted) a = awaited(x, quad, x.at[quad]);
  return a;
}
// Replaces NaN, so that no number has the bits of `unwritten`.
vec4 written(vec4 x) { return mix(x, vec4(not_a_number), isnan(x)); }
vec2 written(vec2 x) { return mix(x, vec2(not_a_number), isnan(x)); }

// The invocation's pairs of quads that go into v; neighbouring lanes have neighbouring pairs.
#define pair_of(a) (gl_LocalInvocationIndex + uint(a) * threads)
// While a subgroup waits, it reads one word of every 32 bytes of its first pair of rows in q8_0 into L1: a kilobyte
// between two reads of the awaited quad. Other codecs lose by that.
#if MIXED
const bool touches_weights = (codec_second == 0u ? codec : 0u) == codec_q8_0;
#else
const bool touches_weights = codec == codec_q8_0;
#endif
uint64_t nearer;
uint touched_most, touched = 0u;
// coded: the number of quads that arrive already coded. Past the last quad the last one is read again.
void take_in(uint64_t from, uint count, uint coded) {  // quads
  SharedQuads x = SharedQuads(from);
  [[unroll]] for (uint i = 0u; i < 10u; ++i)
    if ((i >> 1) * 2u * threads < count) v[i] = x.at[2u * min(pair_of(i >> 1), count / 2u - 1u) + (i & 1u)];
  bool first_coded = coded != 0u && (2u * threads <= coded || 2u * min(pair_of(0u), count / 2u - 1u) < coded);
  if (touches_weights) {
    uint tries = 0u, k = 0u;
    while (lacks(v[0], first_coded)) {
      if (k < touched_most) {
        touched ^= Words(nearer + uint64_t(k * 1024u)).at[0];
        ++k;
      }
      v[0] = x.at[2u * min(pair_of(0u), count / 2u - 1u)];
      if (out_of_spins(++tries)) break;
    }
  }
  // Once the first quad is there, absent ones are read again together, then one by one: always all together was slower.
  v[0] = awaited_as(x, 2u * min(pair_of(0u), count / 2u - 1u), v[0], first_coded);
  [[unroll]] for (uint i = 1u; i < 10u; ++i)
    if ((i >> 1) * 2u * threads < count) {
      bool its_coded = (i >> 1) * 2u * threads < coded && ((i >> 1) * 2u * threads + 2u * threads <= coded ||
                                                           2u * min(pair_of(i >> 1), count / 2u - 1u) < coded);
      if (lacks(v[i], its_coded)) v[i] = x.at[2u * min(pair_of(i >> 1), count / 2u - 1u) + (i & 1u)];
    }
  [[unroll]] for (uint i = 1u; i < 10u; ++i) {
    bool its_coded = (i >> 1) * 2u * threads < coded && ((i >> 1) * 2u * threads + 2u * threads <= coded ||
                                                         2u * min(pair_of(i >> 1), count / 2u - 1u) < coded);
    if ((i >> 1) * 2u * threads < count)
      v[i] = awaited_as(x, 2u * min(pair_of(i >> 1), count / 2u - 1u) + (i & 1u), v[i], its_coded);
  }
}

float butterfly(float sum) {
  [[unroll]] for (uint d = 16u; d >= 1u; d >>= 1) {
    precise float both = sum + subgroupShuffleXor(sum, d);
    sum = both;
  }
  return sum;
}

// 1 / root mean square of v, of at most the stream's `width`. One barrier. which: one of two calls in a row.
float inverse_rms(uint which, const uint width) {
  const uint count = width / 4u, norm_blocks = (width + 127u) / 128u;
  [[unroll]] for (uint a = 0u; a < 2u; ++a)
    if (a * 2u * threads < count) {
      float both[2];
      [[unroll]] for (uint b = 0u; b < 2u; ++b) {
        precise vec4 square = v[2u * a + b] * v[2u * a + b];
        precise float sum = (square.x + square.y) + (square.z + square.w);
        both[b] = 2u * pair_of(a) < count ? sum : 0.0;
      }
      // Sixteen lanes have a block; half of them continue with each of its quads.
      bool upper = (lane & 8u) != 0u;
      precise float sum = (upper ? both[1] : both[0]) + subgroupShuffleXor(upper ? both[0] : both[1], 8u);
      [[unroll]] for (uint d = 4u; d >= 1u; d >>= 1)
        sum = sum + subgroupShuffleXor(sum, d);
      sum = sum + subgroupShuffleXor(sum, 8u);
      uint block = pair_of(a) >> 4;
      if ((lane & 15u) == 0u && block < norm_blocks) block_sums[which * norm_blocks + block] = sum;
    }
  barrier();
  precise float sum = 0.0;
  [[unroll]] for (uint first = 0u; first < 64u; first += 32u)
    if (first < norm_blocks) {
      uint block = first + lane;
      sum = sum + (block < norm_blocks ? block_sums[which * norm_blocks + min(block, norm_blocks - 1u)] : 0.0);
    }
  precise float mean = butterfly(sum) / float(width) + eps;
  precise float root = 1.0 / sqrt(mean);
  return finite(mean) ? root : not_a_number;
}

// Keeps the residual of this workgroup's rows, of which v has some.
void keep(uint which) {
  const uint pairs = hidden_size / 2u, most = pairs / parts + 2u, count = hidden_size / 4u;
  uint first = gl_WorkGroupID.x * pairs / parts, end = (gl_WorkGroupID.x + 1u) * pairs / parts;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    if ((i >> 1) * 2u * threads < count) {
      uint quad = 2u * pair_of(i >> 1) + (i & 1u);
      if (quad < count && 2u * quad >= first && 2u * quad < end) kept[which * most + 2u * quad - first] = v[i].xy;
      if (quad < count && 2u * quad + 1u >= first && 2u * quad + 1u < end)
        kept[which * most + 2u * quad + 1u - first] = v[i].zw;
    }
}

// Weights of a norm, loaded before v is waited for.
vec4 norm_of[4];
void load_norm(uint64_t weight, out vec4 to[4]) {
  const uint count = hidden_size / 4u;
  FloatQuads norm = FloatQuads(weight);
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    if ((i >> 1) * 2u * threads < count) to[i] = norm.at[2u * min(pair_of(i >> 1), count / 2u - 1u) + (i & 1u)];
}
// v times a norm's weight and 1 / root mean square.
void normalise(uint which) {
  float r = inverse_rms(which, hidden_size);
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    if ((i >> 1) * 2u * threads < hidden_size / 4u) {
      precise vec4 product = v[i] * norm_of[i], y = product * r;
      v[i] = y;
    }
}
// Adds a step's result, after its norm, to the residual; the next norm's weights are in norm_after.
vec4 norm_after[4];
void add_normalised() {
  normalise(0u);
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    norm_of[i] = norm_after[i];
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    if ((i >> 1) * 2u * threads < hidden_size / 4u) {
      precise vec4 sum = stream[i] + v[i];
      stream[i] = v[i] = sum;
    }
}

// A workgroup's rows of gate and up are whole blocks first, then a share of the remaining rows.
const uint rest_pairs = intermediate_size - coded_columns;
uint first_rest(uint of) { return of * rest_pairs / parts; }
uint first_pair(uint product) { return gl_WorkGroupID.x * pairs_of(product) / parts; }
uint own_pairs(uint product) {
  if (whole_blocks != 0u && product == gate_up)
    return 32u * whole_blocks + first_rest(gl_WorkGroupID.x + 1u) - first_rest(gl_WorkGroupID.x);
  return (gl_WorkGroupID.x + 1u) * pairs_of(product) / parts - first_pair(product);
}
uint pair_at(uint product, uint own) {
  if (whole_blocks != 0u && product == gate_up)
    return own < 32u * whole_blocks ? gl_WorkGroupID.x * 32u * whole_blocks + own
                                    : coded_columns + first_rest(gl_WorkGroupID.x) + own - 32u * whole_blocks;
  return first_pair(product) + own;
}

// The model's activation of a gate and its `up`. C++ replaces the instruction that mod() becomes by it
// (kernels/splice.hpp).
float gated(float g, float up) { return mod(g, up); }

void finish_pair(uint64_t to, uint product, uint own, uint pair, vec2 y) {
  if (lane != 0u) return;
  if (product == gate_up) {
    float its = gated(y.x, y.y);
    if (whole_blocks != 0u && own < 32u * whole_blocks) fresh[own / 4u][own & 3u] = its;
    else SharedWords(to).at[pair] = floatBitsToUint(written(vec2(its, 0.0)).x);
    return;
  }
#if EXPERTS
  if (product == down) {
    lowered[own / experts_together * experts_used + first_choice + own % experts_together] = floatBitsToUint(y);
    return;
  }
#endif
#if MIXED
  if (product == only_values) {
    SharedPairs(to).at[(q_size + 2u * kv_size - apart_rows()) / 2u + pair] = written(y);
    return;
  }
#endif
  if (product != qkv && inner_norms == 0u) {
    const uint most = hidden_size / 2u / parts + 2u;
    bool second = two_sublayers ? product == down : (half_ & 1u) != 0u;
    precise vec2 sum = kept[(second ? most : 0u) + own] + y;
    y = sum;
  }
  SharedPairs(to).at[pair] = written(y);
}

#if EXPERTS
#include "biased_rows.glsl"
#endif
// Sums up both rows over all lanes.
void finish_sums(uint64_t to, uint product, uint own, float y[2], vec4 low[2], vec4 high[2]) {
  if (dense) [[unroll]]
    for (uint r = 0u; r < 2u; ++r) y[r] = sum8(low[r], high[r]);
  bool upper = (lane & 16u) != 0u;
  precise float sum = (upper ? y[1] : y[0]) + subgroupShuffleXor(upper ? y[0] : y[1], 16u);
  [[unroll]] for (uint d = 8u; d >= 1u; d >>= 1)
    sum = sum + subgroupShuffleXor(sum, d);
  float other = subgroupShuffleXor(sum, 16u);
#if EXPERTS
  if (has_row_biases(product)) {
    finish_biased(to, product, own, vec2(sum, other));
    return;
  }
#endif
  finish_pair(to, product, own, pair_at(product, own), vec2(sum, other));
}

#if EXPERTS
// Items that subgroups multiply: pairs of rows; in the down projection each pair with every expert in shared memory.
// Where gate and up are matrices apart, a subgroup multiplies each of its pairs of gates and then that of the ups.
uint items_of(uint product) {
  if (biased_experts && product == gate_up) {
    uint own = own_pairs(gate_up), turns = own > sub ? (own - sub - 1u) / members + 1u : 0u;
    return turns == 0u ? 0u : sub + (2u * turns - 1u) * members + 1u;
  }
  return own_pairs(product) * (product == down ? experts_together : 1u);
}
uint row_pair(uint product, uint item) {
  if (biased_experts && product == gate_up) return expert_pair(gate_pair(item));
  if (product == gate_up) {
    uint pair = pair_at(product, item);
    return chosen_experts[pair / intermediate_size] * intermediate_size + pair % intermediate_size;
  }
  if (product == down)
    return chosen_experts[first_choice + item % experts_together] * (hidden_size / 2u) +
           pair_at(product, item / experts_together);
  return pair_at(product, item);
}
// Where an item's input begins in shared memory: the number of units before the first one.
uint staged_before(uint product, uint item) {
  return product == down ? 0u - item % experts_together * units_of(down) : 0u;
}
uint64_t matrix_of(uint64_t weight, uint product, uint item) {
  return biased_experts && product == gate_up && is_up(item) ? up_weight : weight;
}
#else
#define items_of own_pairs
#define row_pair pair_at
#define staged_before(product, item) 0u
#define matrix_of(weight, product, item) weight
#endif

void stage(uint count, uint coded, uint first, uint end, bool part);
#if MIXED
// The last subgroups take all rows of v's own matrix: enough that they need no more turns than the others. If it has
// k's rows too, they are as many as q's rows leave.
const uint most_values = (kv_size / 2u + parts - 1u) / parts,
           most_heads = ((q_size + kv_size) / 2u + parts - 1u) / parts,
           turns_apart = (most_values + most_heads + members - 1u) / members,
           value_members = (most_values + turns_apart - 1u) / turns_apart;
const uint most_both = (kv_size + parts - 1u) / parts, most_queries = (q_size / 2u + parts - 1u) / parts,
           turns_of_both = (most_both + most_queries + members - 1u) / members,
           beside_queries = members - (most_queries + turns_of_both - 1u) / turns_of_both,
           both_members = beside_queries > 0u ? beside_queries : 1u;
uint apart_members() { return keys_apart() ? both_members : value_members; }
#endif
struct pair_unit {
  raw_codes row[2];
  raw_factors factors;
};
const uint slots = ROUNDS_AHEAD;  // rounds whose weights are in flight
pair_unit next_units[slots];
// Address of a lane's first unit of a pair of rows: planes of 8 or 4 bits, of 2 and of 1, factors, and factors that 256
// columns share; also the distance from the first row to the second.
struct pair_addresses {
  uint64_t codes, upper, lowest, factors, more;
  uint row, units, factors_shift;
};
#include "coded_pairs.glsl"
#if MIXED
#define codec second_codec
#define OF_CODEC(name) second_##name
#include "once_more.glsl"
#undef codec
#undef OF_CODEC
#define codec third_codec
#define OF_CODEC(name) third_##name
#include "once_more.glsl"
#undef codec
#undef OF_CODEC
#define codec fourth_codec
#define OF_CODEC(name) fourth_##name
#include "once_more.glsl"
#undef codec
#undef OF_CODEC
#define OF_CODEC(name) name
#endif

// A quad of a block as integers of 24 bits: words of the upper, middle and lower bytes.
uvec3 digits_of(vec4 x, float factor, inout ivec2 sums_) {
  precise vec4 scaled = x * factor;
  // Nearest integers, half to even, as 256 * m + n: adding 1.5 * 2^31 and 1.5 * 2^23 leaves m and n in the lowest bits.
  // lane >> 5 is always 0; it keeps the optimizer from cancelling the first addition with its subtraction.
  precise vec4 m = scaled + 3221225472.0;
  precise vec4 upper = uintBitsToFloat(floatBitsToUint(m) ^ uvec4(lane >> 5)) - 3221225472.0;
  precise vec4 rest = scaled - upper;
  precise vec4 n = rest + 12582912.0;
  ivec4 q = min(floatBitsToInt(m) * 256 + floatBitsToInt(n) - ivec4(0x8B400000), ivec4(8388607));
  uvec4 w = uvec4(q);
  uint xy = (w.x & 0x00ff00ffu) | (w.y & 0x00ff00ffu) << 8, zw = (w.z & 0x00ff00ffu) | (w.w & 0x00ff00ffu) << 8;
  uint middle = ((w.x >> 8) & 0xffu) | (w.y & 0xff00u) | ((w.z & 0xff00u) << 8) | ((w.w & 0xff00u) << 16);
  uvec3 words = uvec3((xy >> 16) | (zw & 0xffff0000u), middle, (xy & 0xffffu) | zw << 16);
  sums_.x += dotPacked4x8EXT(int(words.x), 0x01010101);
  sums_.y += int(dotPacked4x8EXT(words.y, 0x01010101u) * 256u + dotPacked4x8EXT(words.z, 0x01010101u));
  return words;
}
#if MIXED  // each in its own constant, since glslang loses constants made of several
const uint sums_taken = (takes_sums ? 1u : 0u) | (second_takes_sums ? 1u : 0u) | (third_takes_sums ? 1u : 0u) |
                        (fourth_takes_sums ? 1u : 0u);
const bool needs_sums = sums_taken != 0u;
#else
#define needs_sums takes_sums
#endif
uint exponent_from(uint greatest_bits) { return clamp(greatest_bits >> 23, 23u, 254u); }
uint scale_from(uint greatest_bits) {
  return greatest_bits < 0x7f800000u ? (exponent_from(greatest_bits) - 22u) << 1 : floatBitsToUint(not_a_number) >> 22;
}

// Writes v to shared memory in the form that a product reads, all of it or the units from `first` on; `coded` quads are
// in that form already. The previous content has been read.
void stage(uint count, uint coded, uint first, uint end, bool part) {
  const uint units = x_units;
  [[unroll]] for (uint a = 0u; a < 5u; ++a)
    if (a * 2u * threads < count) {
      uint pair = pair_of(a), e = lane & 3u;
      vec4 near = v[2u * a], far = v[2u * a + 1u];
      if (dense) {
        if (2u * pair < count && (!part || pair >= first && pair < end)) {
          pool[pair - first] = floatBitsToUint(near);
          pool[units + pair - first] = floatBitsToUint(far);
        }
      } else {
        uvec3 words[2];
        uvec2 scale_;
        bool all_coded = (a + 1u) * 2u * threads <= coded;
        if (all_coded) {
          words[0] = floatBitsToUint(near.xyz);
          words[1] = floatBitsToUint(far.xyz);
          scale_ = floatBitsToUint(vec2(near.w, far.w));
        } else {
          uvec4 bits = max(floatBitsToUint(near) & 0x7fffffffu, floatBitsToUint(far) & 0x7fffffffu);
          uint greatest_bits = max(max(bits.x, bits.y), max(bits.z, bits.w));
          greatest_bits = max(greatest_bits, subgroupShuffleXor(greatest_bits, 1u));
          greatest_bits = max(greatest_bits, subgroupShuffleXor(greatest_bits, 2u));
          float factor = uintBitsToFloat((276u - exponent_from(greatest_bits)) << 23);
          ivec2 sums_ = ivec2(0);
          words[0] = digits_of(near, factor, sums_);
          words[1] = digits_of(far, factor, sums_);
          if (needs_sums) {
            sums_ += ivec2(subgroupShuffleXor(sums_.x, 1u), subgroupShuffleXor(sums_.y, 1u));
            sums_ += ivec2(subgroupShuffleXor(sums_.x, 2u), subgroupShuffleXor(sums_.y, 2u));
          }
          scale_ = uvec2(scale_from(greatest_bits) | uint(sums_.x) << 16, uint(sums_.y));
          if (a * 2u * threads < coded && 2u * pair < coded) {
            words[0] = floatBitsToUint(near.xyz);
            words[1] = floatBitsToUint(far.xyz);
            scale_ = floatBitsToUint(vec2(near.w, far.w));
          }
        }
        uint at = (pair >> 2) - first, half_ = e >> 1, word = 2u * (e & 1u);
        if (2u * pair < count && (!part || pair >> 2 >= first && pair >> 2 < end)) {
          [[unroll]] for (uint k = 0u; k < 3u; ++k) {
            pool[(2u * k + half_) * units + at][word] = words[0][k];
            pool[(2u * k + half_) * units + at][word + 1u] = words[1][k];
          }
          if (e == 0u) x_scales[at] = scale_;
        }
      }
    }
  barrier();
}

// Codes a quad of an input that the next product's workgroups use unchanged: eight neighbouring lanes have a block.
uvec4 coded_quad(vec4 x) {
  uvec4 bits = floatBitsToUint(x) & 0x7fffffffu;
  uint greatest_bits = max(max(bits.x, bits.y), max(bits.z, bits.w));
  [[unroll]] for (uint d = 1u; d < 8u; d <<= 1)
    greatest_bits = max(greatest_bits, subgroupShuffleXor(greatest_bits, d));
  ivec2 sums_ = ivec2(0);
  uvec3 words = digits_of(x, uintBitsToFloat((276u - exponent_from(greatest_bits)) << 23), sums_);
  if (needs_sums) [[unroll]]
    for (uint d = 1u; d < 8u; d <<= 1) sums_ += ivec2(subgroupShuffleXor(sums_.x, d), subgroupShuffleXor(sums_.y, d));
  uint which = lane & 7u;
  return uvec4(words, which == 0u ? scale_from(greatest_bits) | uint(sums_.x) << 16 : which == 1u ? uint(sums_.y) : 0u);
}
// Writes whole coded blocks of gate and up for the workgroups that wait for them.
void hand_on(uint64_t to) {
  barrier();
  const uint quads_ = 8u * whole_blocks;
  if (sub * 32u < quads_) {
    uint t = 32u * sub + lane, own = min(t, quads_ - 1u);
    uvec4 its = coded_quad(fresh[own]);
    if (t < quads_) SharedQuads(to).at[gl_WorkGroupID.x * quads_ + own] = uintBitsToFloat(its);
  }
}

#include "norms_of_heads.glsl"

#include "layers_attention.glsl"

uint64_t weight, x;  // of the next product: weights and input
#if EXPERTS
#include "layers_experts.glsl"
#endif

// A product with the wait and norm before it; attention follows the first product. Products after norms are one piece
// of code: all have the stream's columns.
void step(uint layer, uint product, bool normalises) {
  // Addresses are read before the wait.
  uint shift = two_sublayers ? 0u : shift_of(half_);
  uint64_t to = output_of(layer, product, shift), next_weight = next_weight_of(layer, product, shift), norm = 0ul,
           next_address = 0ul;
  if (normalises) {
    norm = outer_norms ? weight_of(layer, product, 0u, shift) : address_of(layer, argument_after_attention);
    load_norm(inner_norms == 0u || (product == qkv && layer == 0u) ? norm
              : product == qkv                                     ? address_of(layer - 1u, argument_after_down)
                                                                   : address_of(layer, argument_after_attention),
              norm_of);
    if (inner_norms != 0u && outer_norms) load_norm(norm, norm_after);
  }
  if (product == gate_up) next_address = read_addresses(layer + 1u);
  uint quads_ = columns_of(product) / 4u;
  if (touches_weights) {  // workgroups that compute attention start the projection late anyway
    nearer = first_addresses(weight, product, sub).codes + uint64_t(lane * 16u);
    touched_most = product == projection && gl_WorkGroupID.x < heads ? 0u : min(8u, units_of(product) / 16u);
#if EXPERTS
    if (product == gate_up) touched_most = 0u;  // the experts are not known yet
#endif
  }
#if EXPERTS
  if (product == gate_up) touch_router(address_of(layer, argument_router));
#endif
#if MIXED
  layer_codecs = codecs_of(layer);
  apart = normalises && product == qkv && values_apart();
  takes_values = apart && sub >= members - apart_members();
  uint64_t v_weight = address_of(layer, argument_v);
#endif
#if EXPERTS
  if (!normalises && product == down) {
    lower_experts(layer, to);
    weight = next_weight;
    x = to;
    return;
  }
#endif
#if EXPERTS
  if (biased_experts) up_weight = address_of(layer, argument_up);
  if (biased_projection && product == projection)
    load_row_biases(projection, address_of(layer, argument_projection_bias), 0ul);
#endif
  take_in(x, quads_, product == down ? coded_columns / 4u : 0u);
#if MIXED
  if (normalises) {
#if EXPERTS  // the experts whose weights gate and up need are not known yet
    if (product != gate_up)
#endif
    {
      WITH_NORMED_CODEC(NORMED_FETCH, fetch);
    }
  } else if (product == projection) {
    WITH_CODEC(of_projection, fetch(weight, product, sub));
  } else {
    WITH_CODEC(of_down, fetch(weight, product, sub));
  }
#else
  fetch(weight, product, sub);
#endif
  if (normalises) {
    if (inner_norms == 0u) {
      keep(two_sublayers ? (product == qkv ? 0u : 1u) : half_ & 1u);
    } else if (product == qkv && layer == 0u) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i)
        stream[i] = v[i];
    } else {
      add_normalised();
    }
    if (outer_norms) normalise(1u);
#if EXPERTS
    if (product == gate_up) stage_floats();
#endif
  } else {
    barrier();  // the previous x has been read
  }
  if (product == gate_up) keep_address(layer + 1u, next_address);
  bool parts = in_parts && !normalises && product == down;
  if (!parts) stage(quads_, product == down ? coded_columns / 4u : 0u, 0u, 0u, false);
#if EXPERTS
  if (product == gate_up) {
    write_logits(address_of(layer, argument_router), address_of(layer, argument_logits),
                 biased_experts ? address_of(layer, argument_router_bias) : 0ul);
    choose_experts(address_of(layer, argument_logits));
    WITH_NORMED_CODEC(NORMED_FETCH, fetch);
    if (biased_experts)
      load_row_biases(gate_up, address_of(layer, argument_gate_bias), address_of(layer, argument_up_bias));
  }
#endif
#if MIXED
  if (normalises) {
    WITH_NORMED_CODEC(NORMED_MULTIPLY, multiply);
  } else if (product == projection) {
    WITH_CODEC(of_projection, multiply(product, weight, to, sub, members, false));
  } else {
    WITH_CODEC(of_down, multiply(product, weight, to, sub, members, parts));
  }
#else
  multiply(product, weight, to, sub, members, parts);
#endif
  if (whole_blocks != 0u && product == gate_up) hand_on(to);
  weight = next_weight;
  x = to;
  if (product == qkv) {
    x = input_of(layer, projection);
    if (head_norms == norms_all_heads) find_norms_of_all_heads(to);
    if (shares_heads) attention_of_shares(layer, to, x);
    else attention(layer, to, x);
  }
}

vec2 turn_of(uvec2 turns) {
  vec2 turn = rope_from_turns(position, turns);
  if (rope_factor != 1.0 && (turns.x | turns.y) != 0u) turn = turn * rope_factor;
  return turn;
}

void main() {
  lane = gl_SubgroupInvocationID;
  sub = gl_SubgroupID;
  timed_out = false;
  uint t = gl_LocalInvocationIndex;
  keep_address(0u, read_addresses(0u));
  barrier();
  position = state.at[state_position];
  if (t < head_dim / 2u) {
    rotation[t] = turn_of(WordPairs(arguments.at[(full_every - 1u) * argument_count + argument_rope]).at[t]);
    if (full_every != 1u) rotation[head_dim / 2u + t] = turn_of(WordPairs(arguments.at[argument_rope]).at[t]);
  }
  // The code below is written for these values; the plan uses no others.
  uint end = layers;
  if (workgroup_size != threads || subgroup_width != 32u) {
    end = 0u;
    time_out();
  }
  weight = weight_of(0u, ffns_before == 0u ? qkv : gate_up, 1u, two_sublayers ? 0u : shift_of(0u));
  x = input_of(0u, qkv);
  BY_CODEC for (uint sublayer = 0u; sublayer < sublayers_each * end; ++sublayer) {
    if (!two_sublayers) half_ = sublayer;
    uint layer = two_sublayers ? sublayer >> 1 : sublayer / sublayers_each;
    step(layer, two_sublayers ? qkv + (sublayer & 1u) * gate_up : attends(sublayer) ? qkv : gate_up, true);
    if (two_sublayers ? (sublayer & 1u) == 0u : attends(sublayer)) step(layer, projection, false);
    else step(layer, down, false);
  }
  uint64_t result = inner_norms != 0u ? address_of(layers - 1u, argument_result) : x;
  if (inner_norms != 0u && gl_WorkGroupID.x == 0u) {
    load_norm(address_of(layers - 1u, argument_after_down), norm_of);
    take_in(x, hidden_size / 4u, 0u);
    norm_after = norm_of;
    add_normalised();
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      uint quad = 2u * pair_of(i >> 1) + (i & 1u);
      if ((i >> 1) * 2u * threads < hidden_size / 4u && quad < hidden_size / 4u) FloatQuads(result).at[quad] = v[i];
    }
    memoryBarrierBuffer();
  }
  barrier();
  if (t == 0u) {
    uint left = atomicAdd(progress.at[progress_left], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                          gl_SemanticsAcquireRelease) +
                1u;
    bool last = left == gl_NumWorkGroups.x;
    if (last) progress.at[progress_left] = 0u;
#if EXPERTS
    if (touched == 0x9e3779b9u)
#else
    if (touches_weights && touched == 0x9e3779b9u)
#endif
      progress.at[progress_left + 1u] = 0u;  // only keeps the touching reads from being removed
    leaves_last = last && SharedWords(progress).at[progress_timed_out] != 0u;
  }
  barrier();
  if (leaves_last)
    for (uint i = t; i < hidden_size / 4u; i += workgroup_size) FloatQuads(result).at[i] = vec4(not_a_number);
}
