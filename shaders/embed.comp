// SPDX-License-Identifier: MIT
// Looks up rows of the embedding table for the tokens of the pass, to which a row per position and a row per kind may
// be added; also writes the tokens to the history. One workgroup per token (y). If later dispatches wait for exchanged
// words, further workgroups (x, of all y) write the unwritten pattern where these will be: everywhere in some buffers
// and, among attention's results of spans, for the spans of the pass.
// variant: embed -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint vocab_size = 4096;
layout(constant_id = 3) const uint table_element = 0;
layout(constant_id = 4) const uint max_tokens = 1;
layout(constant_id = 5) const uint context = 256;
layout(constant_id = 6) const float scale = 0.0;
layout(constant_id = 7) const uint slot_words = 0;
layout(constant_id = 8) const uint blank_quads = 0;  // of 16 bytes; 0: nothing is blanked
layout(constant_id = 9) const uint stretches = 1;    // of attention's results of spans
layout(constant_id = 10) const uint span_quads = 0;
layout(constant_id = 11) const uint spans = 1;
layout(constant_id = 12) const uint stretch_quads = 0;  // from one to the next
layout(constant_id = 13) const uint positions = 0;      // rows of position_table; 0: none is added
layout(constant_id = 14) const uint kinds = 0;          // rows of kind_table; 0: none is added
const uint state_second_text = 12u;                     // kernels/state.hpp
layout(local_size_x_id = 0) in;

#define LATER_UNROLLED [[dont_unroll]]
#define codec table_element
#define columns width
#include "codec.glsl"

layout(push_constant, scalar) uniform Push {
  Words table, output_, state, blank, blank_spans, position_table, kind_table;
};
#include "slots.glsl"

void make_blank() {
  uint workers = (gl_NumWorkGroups.x - 1u) * gl_NumWorkGroups.y * workgroup_size,
       me =
           ((gl_WorkGroupID.x - 1u) * gl_NumWorkGroups.y + gl_WorkGroupID.y) * workgroup_size + gl_LocalInvocationIndex;
  for (uint i = me; i < blank_quads; i += workers) WordQuads(uvec2(blank)).at[i] = uvec4(0xffffffffu);
  if (span_quads == 0u) return;
  uint wanted = min(state.at[state_position] / 256u + 1u, spans) * span_quads;
  for (uint i = me; i < stretches * wanted; i += workers)
    WordQuads(uvec2(blank_spans)).at[i / wanted * stretch_quads + i % wanted] = uvec4(0xffffffffu);
}

void main() {
  if (blank_quads != 0u && gl_WorkGroupID.x != 0u) {
    make_blank();
    return;
  }
  uint token = gl_WorkGroupID.y;
  uint own = batched ? slot_at(token) : 0u, of_pass = batched ? 0u : token;
  if (token >= (batched ? state.at[state_count] : min(state.at[state_count], max_tokens)) ||
      (batched && state.at[own + state_count] == 0u))
    return;
  uint id = state.at[own + state_tokens + of_pass];
  uint position = state.at[own + state_position] + of_pass;
  if (gl_LocalInvocationIndex == 0u && position < context) state.at[own + state_tokens + max_tokens + position] = id;
  uint second = state.at[own + state_second_text], kind = second != 0u && position >= second ? 1u : 0u;
  uint quads = width / 4u, row = id < vocab_size ? id : 0u;
  for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
    precise vec4 x = load_columns(table, row, quad);
    if (scale != 0.0) x = x * scale;
    if (kinds != 0u) x = x + float_quad(kind_table, min(kind, kinds - 1u) * quads + quad);
    if (positions != 0u) x = x + float_quad(position_table, min(position, positions - 1u) * quads + quad);
    FloatQuads(output_).at[token * quads + quad] = x;
  }
}
