// SPDX-License-Identifier: MIT
// A causal convolution of each channel over its last tokens. One workgroup per some quads of channels (x) of a token
// (y); the first (y) has all tokens that need inputs from before the pass. With a batch each (y) has a slot's token.
// variant: short_conv -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint taps = 3;
layout(constant_id = 3) const uint multiplied = 1;
layout(constant_id = 4) const uint slot_words = 0;
layout(constant_id = 5) const uint slot_floats = 0;  // of `recurrent`, from one slot to the next
layout(constant_id = 6) const uint biased = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, weight, bias, output_, recurrent, state; };
#include "slots.glsl"

uint first_row, kept, position;  // row of the pass's first token; first quad of the kept inputs

// The input of a token, counted from the pass's first one; negative: inputs kept by earlier passes.
vec4 convolved(int token, uint quad) {
  uint quads = width / 4u;
  if (token < 0)
    return position == 0u ? vec4(0.0) : float_quad(recurrent, kept + uint(token + int(taps) - 1) * quads + quad);
  if (multiplied == 0u) return float_quad(input_, (first_row + uint(token)) * quads + quad);
  uint row = (first_row + uint(token)) * 3u * quads;
  precise vec4 z = float_quad(input_, row + quad) * float_quad(input_, row + 2u * quads + quad);
  return z;
}

void convolve(uint token, uint quad) {
  uint quads = width / 4u;
  precise vec4 sum = vec4(0.0);
  for (uint k = 0u; k < taps; ++k) {
    vec4 z = convolved(int(token + k) - int(taps) + 1, quad);
    vec4 w;
    for (uint c = 0u; c < 4u; ++c) w[c] = uintBitsToFloat(weight.at[(4u * quad + c) * taps + k]);
    precise vec4 part = w * z;
    sum = sum + part;
  }
  if (biased != 0u) sum = sum + float_quad(bias, quad);
  precise vec4 y;
  uint row = first_row + token;
  if (multiplied != 0u) {
    y = float_quad(input_, (row * 3u + 1u) * quads + quad) * sum;
  } else {
    for (uint c = 0u; c < 4u; ++c) y[c] = sum[c] / (1.0 + canonical_exp(-sum[c]));
  }
  FloatQuads(output_).at[row * quads + quad] = y;
}

void main() {
  uint quads = width / 4u, count = state.at[state_count], before = taps - 1u, own = 0u;
  first_row = batched ? gl_WorkGroupID.y : 0u;
  if (batched) {
    own = slot_at(first_row);
    if (first_row >= count || state.at[own + state_count] == 0u) return;
    count = 1u;
  }
  kept = first_row * (slot_floats / 4u);
  position = state.at[own + state_position];
  bool first = batched || gl_WorkGroupID.y == 0u;
  uint token = first ? 0u : gl_WorkGroupID.y + before - 1u, end = first ? min(count, before) : min(count, token + 1u);
  for (uint quad = gl_GlobalInvocationID.x; quad < quads; quad += gl_NumWorkGroups.x * workgroup_size) {
    for (uint t = token; t < end; ++t) convolve(t, quad);
    if (!first) continue;
    // In rising order: reads are ahead of writes.
    for (uint row = 0u; row < before; ++row)
      FloatQuads(recurrent).at[kept + row * quads + quad] = convolved(int(count + row) - int(before), quad);
  }
}
