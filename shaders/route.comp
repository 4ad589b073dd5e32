// SPDX-License-Identifier: MIT
// Chooses a token's experts and their weights. An expert's rank is the number of experts ahead of it, so no round waits
// for an earlier one. With `stated` it is the expert that the session of the token's row asks for. One workgroup per
// token (y).
// variant: route -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"
#include "arithmetic.glsl"
#include "route.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint experts = 8;
layout(constant_id = 2) const uint experts_used = 2;
layout(constant_id = 3) const uint over_all = 0;  // the softmax is over all experts
layout(constant_id = 4) const uint biased = 0;
layout(constant_id = 5) const uint scaled = 0;
layout(constant_id = 6) const uint stated = 0;      // 1: the state has the choice; 2: it is all experts, in order
layout(constant_id = 7) const uint slot_words = 0;  // of a batch: words of a slot's state
layout(constant_id = 8) const uint score = 0;       // expert_score: the number by which an expert is judged
layout(constant_id = 9) const float factor = 1.0;
layout(constant_id = 10) const float added = 0.0;  // to the sum of scores that are not logits
layout(constant_id = 11) const float least = 0.0;  // the smallest such sum
layout(constant_id = 12) const uint groups = 1;    // of neighbouring experts; only those of the best ones are chosen
layout(constant_id = 13) const uint groups_used = 1;
layout(local_size_x_id = 0) in;

const uint score_logit = 0u, score_logistic = 1u, score_probability = 2u;           // core/decoder_config.hpp
const uint state_adapter = 13u, state_adapter_scale = 14u, state_first_slot = 16u;  // kernels/state.hpp

layout(push_constant, scalar) uniform Push {
  Floats logits, bias;
  Words choice, state;
  Floats scale;
};

const uint expert_quads = (experts + 3u) / 4u;
shared vec4 logits_[expert_quads];
shared uvec4 keys[expert_quads];
shared float chosen[experts_used];
shared uint group_keys[groups];
shared uint numbers[scaled != 0u ? experts_used : 1u];
const uint counted = over_all != 0u ? experts : experts_used;
shared vec4 parts[(counted + 3u) / 4u];

float gate_of(float logit) {
  precise float below = 1.0 + canonical_exp(-logit);
  return 1.0 / below;
}

// An expert's weight before the division. first: that of the first expert chosen
float part_of(float value, float first) {
  precise float below = value - first;
  return score != score_logit ? value : canonical_exp(below);
}

// Writes the softmax over all experts of a token to logits_. After it each invocation may read its own experts.
void softmax_over_all(uint token, uint lane) {
  for (uint e = lane; e < 4u * expert_quads; e += workgroup_size)
    logits_[e / 4u][e % 4u] = logits.at[token * experts + min(e, experts - 1u)];
  barrier();
  vec4 most = logits_[0];
  for (uint q = 1u; q < expert_quads; ++q) most = max(most, logits_[q]);
  float largest = max(max(most.x, most.y), max(most.z, most.w));
  barrier();
  for (uint e = lane; e < 4u * expert_quads; e += workgroup_size) {
    precise float below = logits_[e / 4u][e % 4u] - largest;
    logits_[e / 4u][e % 4u] = e < experts ? canonical_exp(below) : 0.0;
  }
  barrier();
  // Each invocation adds all of them, in their order.
  precise float sum = 0.0;
  for (uint q = 0u; q < expert_quads; ++q) {
    vec4 part = logits_[q];
    sum = (((sum + part.x) + part.y) + part.z) + part.w;
  }
  barrier();
  for (uint e = lane; e < 4u * expert_quads; e += workgroup_size) {
    precise float share = logits_[e / 4u][e % 4u] / sum;
    logits_[e / 4u][e % 4u] = share;
  }
}

// The number by which an expert with a score is judged.
float judged_of(uint e) {
  precise float judged = logits_[e / 4u][e % 4u];
  if (biased != 0u) judged = judged + bias.at[e];
  return judged;
}

// Takes the experts out of the choice whose groups are not among the best ones. A group has the number of its best
// expert or, with a bias, the sum of its two best ones.
void keep_best_groups(uint lane) {
  uint size = experts / groups;
  for (uint g = lane; g < groups; g += workgroup_size) {
    float best = uintBitsToFloat(0xff800000u), second = best;
    for (uint e = g * size; e < (g + 1u) * size; ++e) {
      float judged = judged_of(e);
      second = judged > best ? best : max(second, judged);
      best = max(best, judged);
    }
    precise float sum = best + second;
    group_keys[g] = key_of(biased != 0u ? sum : best);
  }
  barrier();
  for (uint e = lane; e < experts; e += workgroup_size) {
    uint key = group_keys[e / size], ahead = 0u;
    for (uint g = 0u; g < groups; ++g) ahead += uint(group_keys[g] > key || (group_keys[g] == key && g < e / size));
    if (ahead >= groups_used) keys[e / 4u][e % 4u] = 0u;
  }
  barrier();
}

void main() {
  uint token = gl_WorkGroupID.y, lane = gl_LocalInvocationIndex;
  if (token >= state.at[state_count]) return;
  if (stated == 2u) {
    for (uint e = lane; e < experts; e += workgroup_size) {
      choice.at[2u * token * experts + e] = e;
      choice.at[(2u * token + 1u) * experts + e] = floatBitsToUint(1.0);
    }
    return;
  }
  if (stated != 0u) {
    uint slot = slot_words == 0u ? 0u : state_first_slot + token * slot_words;
    if (lane == 0u) {
      choice.at[2u * token] = min(state.at[slot + state_adapter], experts - 1u);
      choice.at[2u * token + 1u] = state.at[slot + state_adapter_scale];
    }
    return;
  }
  if (score == score_probability) softmax_over_all(token, lane);
  for (uint e = lane; e < 4u * expert_quads; e += workgroup_size) {
    uint from = min(e, experts - 1u);
    precise float logit = score == score_probability ? logits_[e / 4u][e % 4u] : logits.at[token * experts + from];
    if (score == score_logistic) logit = gate_of(logit);
    precise float judged = logit;
    if (biased != 0u) judged = judged + bias.at[from];
    logits_[e / 4u][e % 4u] = score != score_logit ? logit : judged;
    keys[e / 4u][e % 4u] = e < experts ? key_of(judged) : 0u;
  }
  barrier();
  if (groups > 1u) keep_best_groups(lane);
  uint first = token * 2u * experts_used;
  for (uint e = lane; e < experts; e += workgroup_size) {
    uint key = keys[e / 4u][e % 4u], ahead = 0u;
    for (uint q = 0u; q < expert_quads; ++q) ahead += ahead_of(keys[q], 4u * q + uvec4(0u, 1u, 2u, 3u), key, e);
    if (ahead < experts_used) {
      choice.at[first + ahead] = e;
      chosen[ahead] = logits_[e / 4u][e % 4u];
      if (scaled != 0u) numbers[ahead] = e;
    }
  }
  barrier();
  for (uint i = lane; i < (counted + 3u) / 4u * 4u; i += workgroup_size) {
    uint of = min(i, counted - 1u);
    float value = over_all != 0u ? logits_[of / 4u][of % 4u] : chosen[of];
    parts[i / 4u][i % 4u] = i < counted ? part_of(value, chosen[0]) : 0.0;
  }
  barrier();
  // Each invocation adds all of them, in their order.
  precise float sum = 0.0;
  for (uint q = 0u; q < (counted + 3u) / 4u; ++q) {
    vec4 part = parts[q];
    sum = (((sum + part.x) + part.y) + part.z) + part.w;
  }
  for (uint j = lane; j < experts_used; j += workgroup_size) {
    precise float share = part_of(chosen[j], chosen[0]);
    if (score == score_logit) share = share / sum;
    else if (over_all == 0u) share = share / ((sum < least ? least : sum) + added);
    if (factor != 1.0) share = share * factor;
    if (scaled != 0u) share = share * scale.at[numbers[j]];
    choice.at[first + experts_used + j] = floatBitsToUint(share);
  }
}
