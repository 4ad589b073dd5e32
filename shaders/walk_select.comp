// SPDX-License-Identifier: MIT
// Which features a sparse walk takes: the `count` gate scores of the largest size, by counting: four passes of 8 bits find the size of the last one that is
// taken, then every invocation lists its stretch of features. One workgroup.
// variant: walk_select -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint columns = 1024;
layout(constant_id = 2) const uint count = 64;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push { Words input_, choice, state; };

shared uint counts[256];
shared uint sixteens[16];
// Of each invocation's stretch: scores above the limit, scores of its very size.
shared uint above[workgroup_size], same[workgroup_size];

uint size_of(uint feature) { return input_.at[feature] & 0x7fffffffu; }

void main() {
  if (state.at[state_count] == 0u) return;
  uint me = gl_LocalInvocationIndex;
  // The size of the last one that is taken, from its upper bits on; `wanted` of those with the same upper bits are still to be found.
  uint limit = 0u, wanted = count;
  for (uint shift = 24u; ; shift -= 8u) {
    for (uint i = me; i < 256u; i += workgroup_size) counts[i] = 0u;
    barrier();
    for (uint f = me; f < columns; f += workgroup_size) {
      uint size = size_of(f);
      if (shift == 24u || (size >> (shift + 8u)) == (limit >> (shift + 8u))) atomicAdd(counts[(size >> shift) & 255u], 1u);
    }
    barrier();
    for (uint g = me; g < 16u; g += workgroup_size) {
      uint sum = 0u;
      for (uint i = 0u; i < 16u; ++i) sum += counts[16u * g + i];
      sixteens[g] = sum;
    }
    barrier();
    // All do the same. From the largest on, until `wanted` are there; they surely are.
    uint group = 15u;
    for (uint turn = 0u; turn < 15u; ++turn) {
      bool further = sixteens[group] < wanted;
      wanted -= further ? sixteens[group] : 0u;
      group -= further ? 1u : 0u;
      if (!further) break;
    }
    uint digit = 16u * group + 15u;
    for (uint turn = 0u; turn < 15u; ++turn) {
      bool further = counts[digit] < wanted;
      wanted -= further ? counts[digit] : 0u;
      digit -= further ? 1u : 0u;
      if (!further) break;
    }
    limit |= digit << shift;
    barrier();
    if (shift == 0u) break;
  }

  uint stretch = (columns + workgroup_size - 1u) / workgroup_size, first = min(me * stretch, columns), behind = min(first + stretch, columns);
  uint own_above = 0u, own_same = 0u;
  for (uint f = first; f < behind; ++f) {
    uint size = size_of(f);
    own_above += size > limit ? 1u : 0u;
    own_same += size == limit ? 1u : 0u;
  }
  above[me] = own_above;
  same[me] = own_same;
  barrier();
  uint before_above = 0u, before_same = 0u;
  for (uint i = 0u; i < me; ++i) {
    before_above += above[i];
    before_same += same[i];
  }
  // Of those of the limit's size the first `wanted` count.
  uint place = before_above + min(before_same, wanted);
  for (uint f = first; f < behind; ++f) {
    uint bits = input_.at[f], size = bits & 0x7fffffffu;
    bool taken = size > limit || (size == limit && before_same < wanted);
    before_same += size == limit ? 1u : 0u;
    if (taken && place < count) WordPairs(choice).at[place] = uvec2(f, bits);
    place += taken ? 1u : 0u;
  }
}
