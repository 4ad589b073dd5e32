// SPDX-License-Identifier: MIT
// Sums in shared memory, for shaders that define `pooled`.
#ifndef INTAGLIO_BLOCK_SUM
#define INTAGLIO_BLOCK_SUM

// The butterfly sum of 32 numbers in pool.
float block_sum(uint at) {
  precise vec4 q[4];
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    q[i] = pooled(at + i) + pooled(at + 4u + i);
  precise vec4 two[2];
  [[unroll]] for (uint i = 0u; i < 2u; ++i)
    two[i] = q[i] + q[i + 2u];
  precise vec4 one = two[0] + two[1];
  precise float sum = (one.x + one.z) + (one.y + one.w);
  return sum;
}

#endif
