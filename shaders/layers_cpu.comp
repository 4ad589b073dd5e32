// SPDX-License-Identifier: MIT
// All layers of a decode pass in one resident dispatch, for llvmpipe, where a dispatch costs as much as a layer's share
// of this one. Workgroups of one subgroup compute the steps of each layer together, each a part of every step, and
// record finished parts in `progress`. No workgroup ever has to wait for another: one that finds a step unfinished for
// long computes its missing parts itself. That is safe because a step only reads results of earlier steps and no two
// steps write the same bytes: every workgroup that computes a part writes the same numbers. llvmpipe's atomics are
// sequentially consistent and order all accesses around them; each of its memory barriers suspends the shader. It ends
// all loops of an invocation after 65,535 turns in all: plan/resident.hpp counts them, and `spin_limit` is the number
// left for waiting. The SPIR-V is not optimised, which would inline the product at each call; the driver does that.
// variant: layers_cpu -O0 -DINTEGER_DOT=0 -DWIDE_LOADS=1
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint hidden_size = 256;
layout(constant_id = 2) const uint intermediate_size = 1024;
layout(constant_id = 3) const uint layers = 8;
layout(constant_id = 4) const uint parts = 2;
layout(constant_id = 5) const float eps = 1e-5;
layout(constant_id = 6) const uint spin_limit = 512;
layout(constant_id = 7) const uint head_dim = 64;
layout(constant_id = 8) const uint heads = 4;
layout(constant_id = 9) const uint kv_heads = 2;
layout(constant_id = 10) const uint context = 256;
layout(constant_id = 11) const float rope_theta = 500000.0;
layout(constant_id = 12) const uint cache_element = 0;
layout(constant_id = 13) const uint heads_together = 1;
layout(constant_id = 14) const uint subgroup_width = 0;
layout(constant_id = 15) const uint ffns_before = 0;
layout(constant_id = 16) const uint ffns_after = 1;
layout(local_size_x_id = 0) in;

// The product's shape, set before each product.
uint columns, rows, epilogue, part;
const uint q_size = heads * head_dim, kv_size = kv_heads * head_dim, tile_tokens = 1u;
const uint narrow = hidden_size > q_size ? hidden_size : q_size,
           columns_max = intermediate_size > narrow ? intermediate_size : narrow;
#define quantises true
#define norm_width columns
#define norm_width_max columns_max
#define product_part part
#define product_parts parts
#define reads_ahead false  // the models for which it runs are small
#include "subgroup.glsl"
#include "norm.glsl"
#include "ternary.glsl"
#include "attention.glsl"

layout(push_constant, scalar) uniform Push { Words arguments, progress, state; }
pushed;
Words arguments, progress, state;
void take_pushed() {
  arguments = pushed.arguments;
  progress = pushed.progress;
  state = pushed.state;
}

Words input_, norm_weight, factors, weight, scales, output_, keys, values, query, stream;
#define added_to stream
#include "epilogue.glsl"
#include "ternary_product.glsl"
#define CACHE_OF_FLOATS
#include "attention_cpu.glsl"

// kernels::layers: indices of a layer's arguments and of words in `progress`.
const uint argument_count = 21u, steps = 5u;
const uint end = ffns_before == 0u && ffns_after == 1u ? layers : 0u;  // other forms of layers are not computed
const uint progress_started = 0u, progress_left = 1u, progress_layer = 2u, progress_steps = 4u;

const uint every_part = (1u << parts) - 1u;

// Sets bits of a word of `progress`. @return the word after that
uint arrive(uint word, uint bits) {
  uint found = 0u;
  if (lane == 0u) found = atomicOr(progress.at[word], bits);
  return subgroupBroadcastFirst(found) | bits;
}
uint count_in(uint word) {
  uint found = 0u;
  if (lane == 0u) found = atomicAdd(progress.at[word], 1u);
  return subgroupBroadcastFirst(found) + 1u;
}

// A pointer of the arguments, visibly the same for all lanes (memory.glsl). Not a function: Debian 12's validation
// layer fails on pointers that are returned.
#define argument(index) Words(subgroupBroadcastFirst(Longs(arguments).at[index]))

// The first part that is not done, counted from this workgroup's own part.
uint next_part(uint done) {
  uint own = gl_WorkGroupID.x % parts, left = every_part & ~done;
  return (findLSB((left >> own) | (left << (parts - own)) & every_part) + own) % parts;
}

// Marks `part` as done, then waits a limited time for the others. @return the parts that are done then
uint finish_part(uint word, uint done, bool alone) {
  if (done != every_part) done = arrive(word, 1u << part);
  for (uint turn = 0u; turn < spin_limit; ++turn) {
    if (done == every_part || alone) break;
    done = arrive(word, 0u);
  }
  return done;
}

// Rows of a product and the norm before it. `at` is the argument index of the norm weight; weight and scales follow.
void product(uint at, uint columns_in, uint rows_out, uint how) {
  norm_weight = argument(at);
  weight = argument(at + 1u);
  scales = argument(at + 2u);
  columns = columns_in;
  rows = rows_out;
  epilogue = how;
  int sum;
  float factor = quantise_input(sum);
  subgroupMemoryBarrier();
  read_epilogue();
  multiply(0u, 1u, factor, sum);
}

void attention() {
  uint count = min(state.at[state_position] + 1u, context);
  for (uint head = part * heads_together; head < heads; head += parts * heads_together)
    attend(0u, head, first_seen(count), count);
}

// A loop around the body even for one part: llvmpipe always runs the code after an `if`, masked.
#define each_part(index, body)                                                   \
  {                                                                              \
    uint word = progress_steps + layer * steps + index, done = arrive(word, 0u); \
    do {                                                                         \
      part = next_part(done);                                                    \
      if (done != every_part) { body; }                                          \
      done = finish_part(word, done, alone);                                     \
    } while (done != every_part);                                                \
  }

void main() {
  take_pushed();
  find_lane();
  uint first = arrive(progress_layer, 0u);
  count_in(progress_started);
  for (uint layer = first; layer < end; ++layer) {
    bool alone = arrive(progress_started, 0u) == 1u;
    uint at = layer * argument_count;
    Words residual = argument(at), attended = argument(at + 4u), middle = argument(at + 5u),
          gate_up = argument(at + 6u), next = argument(at + 7u);
    keys = argument(at + 1u);
    values = argument(at + 2u);
    query = argument(at + 3u);
    input_ = residual;
    output_ = query;
    each_part(0u, product(at + 8u, hidden_size, q_size + 2u * kv_size, epilogue_rope_cache)) output_ = attended;
    each_part(1u, attention())
        // One loop, so that the driver compiles the product twice and not four times: that takes it seconds.
        for (uint step = 2u; step < steps; ++step) {
      bool projects = step == 2u, gates = step == 3u;
      input_ = projects ? attended : gates ? middle : gate_up;
      stream = projects ? residual : middle;
      output_ = projects ? middle : gates ? gate_up : next;
      each_part(step, product(at + 5u + 3u * step,
                              projects ? q_size
                              : gates  ? hidden_size
                                       : intermediate_size,
                              gates ? 2u * intermediate_size : hidden_size, gates ? epilogue_gated : epilogue_add))
    }
    if (lane == 0u) atomicMax(progress.at[progress_layer], layer + 1u);
  }
  // The last workgroup to leave resets `progress` for the next pass.
  if (count_in(progress_left) == gl_NumWorkGroups.x)
    for (uint i = lane; i < progress_steps + layers * steps; i += workgroup_size) progress.at[i] = 0u;
}
