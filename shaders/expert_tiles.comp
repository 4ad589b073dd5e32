// SPDX-License-Identifier: MIT
// Groups tokens by the experts that route chose for them into tiles that share one read of an expert's weights. One
// workgroup per expert (x), each of which counts the tokens of all experts: an invocation has neighbouring pairs of
// token and choice, so that an expert's pairs keep their order whichever invocation comes first.
// variant: expert_tiles -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint experts = 8;
layout(constant_id = 2) const uint experts_used = 2;
layout(constant_id = 3) const uint list_tokens = 8;
layout(constant_id = 4) const uint tiles = 8;
layout(constant_id = 5) const uint max_tokens = 4;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words choice, output_, state; };

shared uint of_expert[experts], of_invocation[workgroup_size];

uint expert_of(uint pair) { return choice.at[pair / experts_used * 2u * experts_used + pair % experts_used]; }
uint tiles_of(uint count) { return (count + list_tokens - 1u) / list_tokens; }

void main() {
  uint expert = gl_WorkGroupID.x, own = gl_LocalInvocationIndex,
       pairs = min(state.at[state_count], max_tokens) * experts_used;
  for (uint e = own; e < experts; e += workgroup_size) of_expert[e] = 0u;
  barrier();
  uint share = (pairs + workgroup_size - 1u) / workgroup_size, first = min(own * share, pairs),
       end = min(first + share, pairs), found = 0u;
  for (uint pair = first; pair < end; ++pair) {
    uint e = expert_of(pair);
    if (e < experts) atomicAdd(of_expert[e], 1u);  // a count: any order will do
    if (e == expert) ++found;
  }
  of_invocation[own] = found;
  barrier();
  uint tile = 0u, rank = 0u;
  for (uint e = 0u; e < expert; ++e) tile += tiles_of(of_expert[e]);
  for (uint i = 0u; i < own; ++i) rank += of_invocation[i];
  for (uint pair = first; pair < end; ++pair) {
    if (expert_of(pair) != expert) continue;
    uint at = (tile + rank / list_tokens) * (list_tokens + 2u), entry = rank % list_tokens;
    if (entry == 0u) {
      output_.at[at] = expert;
      output_.at[at + 1u] = min(of_expert[expert] - rank, list_tokens);
    }
    output_.at[at + 2u + entry] = pair;
    ++rank;
  }
  if (expert + 1u == experts)
    for (uint none = tile + tiles_of(of_expert[expert]) + own; none < tiles; none += workgroup_size)
      output_.at[none * (list_tokens + 2u) + 1u] = 0u;
}
