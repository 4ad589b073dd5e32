// SPDX-License-Identifier: MIT
// For tests, on devices that multiply no matrices: f16 of 16 tokens in `staged` by 16 rows of weights, elements spread
// over 32 invocations as NVIDIA's devices have them, multiplied through shared memory. All invocations of a workgroup
// have to come by together.
#ifndef INTAGLIO_EMULATED_FRAGMENTS
#define INTAGLIO_EMULATED_FRAGMENTS

shared float matrix_weights[workgroup_size * 8u];

// Invocation 4 g + t of 32 has rows g and g + 8 of weights; of each 8 columns those at 2 t and 2 t + 1. Of sums it has
// tokens g and g + 8, rows 2 t, 2 t + 1 and these + 8.
float[8] multiply_add(uint first_x, float16_t w[8], float c[8]) {
  uint own = gl_LocalInvocationIndex, first = own & ~31u;
  barrier();
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) matrix_weights[own * 8u + i] = float(w[i]);
  barrier();
  float y[8];
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint token = (own & 31u) / 4u + 8u * (i / 2u % 2u), row = 2u * (own & 3u) + (i & 1u) + 8u * (i / 4u);
    y[i] = c[i];
    LATER_UNROLLED for (uint k = 0u; k < 16u; ++k) {
      vec2 two = unpackHalf2x16(staged[first_x + token * stride + k / 8u][k % 8u / 2u]);
      y[i] += ((k & 1u) == 0u ? two.x : two.y) *
              matrix_weights[(first + row % 8u * 4u + k % 8u / 2u) * 8u + row / 8u * 4u + k / 8u * 2u + (k & 1u)];
    }
  }
  return y;
}

void store_fragment(uint at, uint pitch, float c[8]) {
  LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) {
    uint token = LANE / 4u + 8u * (i / 2u % 2u), row = 2u * (LANE & 3u) + (i & 1u) + 8u * (i / 4u);
    staged[at + token * pitch + row / 4u][row % 4u] = floatBitsToUint(c[i]);
  }
}

#define strip_barrier() barrier()

#endif
