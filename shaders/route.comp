// SPDX-License-Identifier: MIT
// Which experts a token has, and what they count. There are few, so one invocation of a workgroup does it. One
// workgroup a token (y).
// variant: route -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint experts = 8;
layout(constant_id = 2) const uint experts_used = 2;
layout(constant_id = 3) const uint over_all = 0;  // the softmax is over all experts
layout(constant_id = 4) const uint biased = 0;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push {
  Floats logits, bias;
  Words choice, state;
};

float logit_of(uint token, uint expert) {
  precise float logit = logits.at[token * experts + expert];
  if (biased != 0u) logit = logit + bias.at[expert];
  return logit;
}

void main() {
  uint token = gl_WorkGroupID.y;
  if (token >= state.at[state_count] || gl_LocalInvocationIndex != 0u) return;
  uint taken[(experts + 31u) / 32u];
  for (uint i = 0u; i < (experts + 31u) / 32u; ++i) taken[i] = 0u;
  uint first = token * 2u * experts_used;
  float largest = 0.0;
  precise float sum = 0.0;
  for (uint j = 0u; j < experts_used; ++j) {
    uint best = experts;
    float best_logit = 0.0;
    for (uint e = 0u; e < experts; ++e) {
      float logit = logit_of(token, e);
      if ((taken[e / 32u] >> (e % 32u) & 1u) != 0u || !(best == experts || logit > best_logit)) continue;
      best = e;
      best_logit = logit;
    }
    taken[best / 32u] |= 1u << (best % 32u);
    if (j == 0u) largest = best_logit;
    precise float below = best_logit - largest;
    float part = canonical_exp(below);
    sum = sum + part;
    choice.at[first + j] = best;
    choice.at[first + experts_used + j] = floatBitsToUint(part);
  }
  if (over_all != 0u) {
    sum = 0.0;
    for (uint e = 0u; e < experts; ++e) {
      precise float below = logit_of(token, e) - largest;
      sum = sum + canonical_exp(below);
    }
  }
  for (uint j = 0u; j < experts_used; ++j) {
    precise float share = uintBitsToFloat(choice.at[first + experts_used + j]) / sum;
    choice.at[first + experts_used + j] = floatBitsToUint(share);
  }
}
