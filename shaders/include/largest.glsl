// SPDX-License-Identifier: MIT
// Finds the `count` largest of `columns` numbers with one workgroup, by counting: four passes of 8 bits find the
// smallest number that is taken, then every invocation takes those of its stretch. The including shader has
// workgroup_size, columns and count, and defines
// uint size_of(uint j, uint index): number index, the j-th of an invocation's stretch
// void take(uint j, uint index, uint rank): called for each number that is taken; ranks rise with indices; of equal
// numbers those with the lowest indices are taken
#ifndef INTAGLIO_LARGEST
#define INTAGLIO_LARGEST

shared uint counts[256];
shared uint sixteens[16];
// For each invocation's stretch: sizes above the limit, and sizes equal to it; also for each 32 stretches.
shared uvec2 found[workgroup_size];
shared uvec2 found_by_32[(workgroup_size + 31u) / 32u];

// An invocation's numbers are adjacent; short stretches stay in registers (keeps).
const uint stretch = (columns + workgroup_size - 1u) / workgroup_size;
const bool keeps = stretch <= 128u;
// A loop over an invocation's numbers: of constant length if they are in registers.
#define each_own(j)                                                   \
  [[dont_unroll]] for (uint j = 0u; j < (keeps ? stretch : own); ++j) \
    if (!keeps || j < own)

uint size_of(uint j, uint index);
void take(uint j, uint index, uint rank);

void take_largest() {
  uint me = gl_LocalInvocationIndex, first = me * stretch, own = first < columns ? min(stretch, columns - first) : 0u;
  // Finds the smallest size that is taken, from its upper bits on; `wanted` of the sizes with these upper bits are
  // still to be found.
  uint limit = 0u, wanted = count;
  for (uint shift = 24u;; shift -= 8u) {
    for (uint i = me; i < 256u; i += workgroup_size) counts[i] = 0u;
    barrier();
    each_own(j) {
      uint size = size_of(j, first + j);
      if (shift == 24u || (size >> (shift + 8u)) == (limit >> (shift + 8u)))
        atomicAdd(counts[(size >> shift) & 255u], 1u);
    }
    barrier();
    for (uint g = me; g < 16u; g += workgroup_size) {
      uint sum = 0u;
      [[dont_unroll]] for (uint i = 0u; i < 16u; ++i)
        sum += counts[16u * g + i];
      sixteens[g] = sum;
    }
    barrier();
    // All invocations search alike: from the largest digit down until `wanted` sizes are found, which always happens.
    uint group = 0u, digit = 0u, before = wanted;
    uint left = wanted;
    [[dont_unroll]] for (uint i = 0u; i < 16u; ++i) {
      uint at = 15u - i, many = sixteens[at];
      bool here = left != 0u && many >= left;
      group = here ? at : group;
      before = here ? left : before;
      left = here ? 0u : left - min(left, many);
    }
    left = before;
    [[dont_unroll]] for (uint i = 0u; i < 16u; ++i) {
      uint at = 16u * group + 15u - i, many = counts[at];
      bool here = left != 0u && many >= left;
      digit = here ? at : digit;
      wanted = here ? left : wanted;
      left = here ? 0u : left - min(left, many);
    }
    limit |= digit << shift;
    barrier();
    if (shift == 0u) break;
  }

  uvec2 mine = uvec2(0u);  // above the limit, equal to it
  each_own(j) {
    uint size = size_of(j, first + j);
    mine += uvec2(size > limit ? 1u : 0u, size == limit ? 1u : 0u);
  }
  found[me] = mine;
  barrier();
  for (uint g = me; g < (workgroup_size + 31u) / 32u; g += workgroup_size) {
    uvec2 sum = uvec2(0u);
    uint end = min(32u * g + 32u, workgroup_size);
    for (uint i = 32u * g; i < end; ++i) sum += found[i];
    found_by_32[g] = sum;
  }
  barrier();
  uvec2 before = uvec2(0u);
  for (uint g = 0u; g < me / 32u; ++g) before += found_by_32[g];
  for (uint i = me & ~31u; i < me; ++i) before += found[i];
  // The first `wanted` of the sizes equal to the limit are taken.
  uint rank = before.x + min(before.y, wanted);
  each_own(j) {
    uint size = size_of(j, first + j);
    bool taken = size > limit || (size == limit && before.y < wanted);
    before.y += size == limit ? 1u : 0u;
    if (taken && rank < count) take(j, first + j, rank);
    rank += taken ? 1u : 0u;
  }
}

#endif
